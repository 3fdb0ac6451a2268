"""Text for users has none of the phrases that CONTRIBUTING.md ("How we write") replaces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Each phrase with a sentence that must be found. To add one: clear every text of it first, then list it here.
PHRASES = {
    r"stands? violated|stood violated|standing violated": "Rules that stand violated now.",
    r"of late(?=[.,;:)]|$)": "It has failed of late.",
    r"your house|the house": "Change the receivers to what your house uses.",
    r"what is waited for": "It says what is waited for.",
    r"nobody need|no \w+ \w+ need show": "No single window need show it.",
    r"(stands?|stood) out of (its|their) bands?": "Series that stand out of their bands.",
    r"surely by more than": "It falls, surely by more than is allowed.",
    r"mend(s|ed|ing)?": "Format, and mend what the linter can mend.",
    r"(is|are|was|were|be|been|being) told": "An incident of days is told again.",
    r"tells? of": "The alerts that tell of it.",
    r"as a rule": "A day is 2 % off as a rule.",
    r"whoever": "Whoever ships the log.",
    r"held against": "The last days are held against the weeks before.",
    r"in vain": "It was looked for in vain.",
    r"and (its|their) kin": "The AUC and its kin.",
    r"by heart": "It has learnt its training by heart.",
    r"anew": "The bands begin anew.",
    r"no further time": "Scan the exposures no further time.",
    r"mean(t|s)? to be so": "It was meant to be so.",
}
GENERATED = {"config.md", "cli.md", "gauges.md", "incidents.md", "scoreboard.md", "experiments.md"}


def found(text: str, phrases: dict[str, str]) -> list[str]:
    """The phrases in this text, wherever its lines break."""
    words = " ".join(text.split())
    return [
        match.group()
        for phrase in phrases
        for match in re.finditer(rf"\b(?:{phrase})\b", words, re.IGNORECASE)
    ]


def pages() -> list[Path]:
    """The pages written by hand: not the decisions, which record their day, and not generated pages."""
    top = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    written = [path for path in top if path.name not in GENERATED]
    return [*written, *sorted((ROOT / "docs" / "runbooks").rglob("*.md"))]


def settings() -> list[Path]:
    """Alerts, packs, dashboards, templates and what runs the monitor: comments included."""
    return [
        *sorted((ROOT / "rules").rglob("*.yaml")),
        *sorted((ROOT / "grafana").rglob("*.py")),
        *sorted((ROOT / "grafana" / "dashboards").glob("*.json")),
        *sorted((ROOT / "monitor").rglob("*.html")),
        *(path for path in sorted((ROOT / "deploy").iterdir()) if path.is_file()),
        ROOT / "docker-compose.yml",
        ROOT / "Makefile",
    ]


def strings(source: str) -> Iterator[str]:
    """The string literals of a module that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def contributing() -> str:
    """CONTRIBUTING.md without the table that quotes the phrases."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    before, table = text.split("| not | but |\n", 1)
    return before + table[table.index("\n\n") :]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize(("phrase", "sentence"), PHRASES.items())
def test_a_phrase_is_found_across_line_ends(phrase: str, sentence: str) -> None:
    assert found(sentence, {phrase: sentence}) != []
    assert found(sentence.replace(" ", "\n    ").upper(), {phrase: sentence}) != []
    assert found(re.sub(rf"\b(?:{phrase})\b", "", sentence, flags=re.IGNORECASE), {phrase: sentence}) == []


def test_only_whole_words_are_found() -> None:
    assert found("An amendment: kindly recommended, of later days.", PHRASES) == []


def test_phrases_are_found_in_strings_and_not_in_docstrings() -> None:
    source = '''"""It stands violated."""
X = f"{1} stands violated"
def f():
    """Of late."""
    return "of late"
'''
    assert [phrase for text in strings(source) for phrase in found(text, PHRASES)] == [
        "stands violated",
        "of late",
    ]


@pytest.mark.parametrize("path", pages(), ids=name)
def test_a_page_is_plain(path: Path) -> None:
    assert found(path.read_text("utf-8"), PHRASES) == []


def test_contributing_is_plain_except_its_table_of_phrases() -> None:
    assert "## How we write" in contributing()
    assert found(contributing(), PHRASES) == []


@pytest.mark.parametrize("path", settings(), ids=name)
def test_alerts_packs_dashboards_templates_and_deploy_files_are_plain(path: Path) -> None:
    assert found(path.read_text("utf-8"), PHRASES) == []


def test_the_strings_of_the_monitor_are_plain() -> None:
    modules = sorted((ROOT / "monitor").rglob("*.py"))
    assert len(modules) > 100
    wrong = {name(path): found(" \n".join(strings(path.read_text("utf-8"))), PHRASES) for path in modules}
    assert {path: phrases for path, phrases in wrong.items() if phrases} == {}


@pytest.mark.parametrize(
    "path", [p for p in sorted((ROOT / "docs").glob("*.md")) if p.name in GENERATED], ids=name
)
def test_a_generated_page_is_plain(path: Path) -> None:
    assert found(path.read_text("utf-8"), PHRASES) == []
