"""CONTRIBUTING.md: its recipes name files that exist, and its glossary has one meaning a word."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
RECIPES = PAGE[PAGE.index("## Recipes") : PAGE.index("## Glossary")]
GLOSSARY = re.findall(r"^\| ([a-z ]+) \| (.+) \| `(\w+)` \|$", PAGE, flags=re.MULTILINE)


@functools.cache
def definitions() -> dict[str, list[str]]:
    """Where each class, function and name of a module of monitor/ is defined."""
    found = defaultdict(list)
    for path in sorted((ROOT / "monitor").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[node.name].append(path.name)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id].append(path.name)
    return found


def test_the_glossary_is_short_and_has_no_duplicates() -> None:
    assert 20 <= len(GLOSSARY) <= 30
    assert len({term for term, _, _ in GLOSSARY}) == len({name for _, _, name in GLOSSARY}) == len(GLOSSARY)


@pytest.mark.parametrize(("term", "name"), [(term, name) for term, _, name in GLOSSARY])
def test_a_term_is_one_thing_in_the_code_and_is_used_in_the_docs(term: str, name: str) -> None:
    assert len(definitions()[name]) == 1, definitions()[name]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(re.search(rf"\b{term}s?\b", page.read_text("utf-8")) for page in pages)


def test_every_file_of_a_recipe_exists() -> None:
    named = set(re.findall(r"`((?:monitor|tests|rules|docs|benchmarks)/[\w./-]+\.\w+)`", RECIPES))
    assert len(named) >= 25
    assert [one for one in sorted(named) if not (ROOT / one).is_file()] == []


def test_every_recipe_ends_with_a_test_command_whose_paths_exist() -> None:
    recipes = RECIPES.split("\n### ")[1:]
    assert len(recipes) == 12
    for recipe in recipes:
        commands = re.findall(r"`pytest ([^`]+)`", recipe)
        assert commands, recipe.splitlines()[0]
        for path in " ".join(commands).split():
            assert "<" in path or (ROOT / path).exists(), path
