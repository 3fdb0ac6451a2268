"""The pages have an order for newcomers, each can be reached from the README, and each link works."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def without_code(text: str) -> str:
    """The text without blocks of code and without code between backticks."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^(?:    |\t).*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "code", text)


def links(page: Path) -> list[tuple[Path, str]]:
    """The file or folder, and the anchor, of each link into this repository."""
    targets = re.findall(r"\]\(<?([^)\s>]+)>?\)", without_code(page.read_text("utf-8")))
    inside = [target for target in targets if not re.match(r"[a-z]+:", target)]
    parts = [unquote(target).partition("#") for target in inside]
    return [((page.parent / path).resolve() if path else page, anchor) for path, _, anchor in parts]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    found: set[str] = set()
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.+?)\s*$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (one := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(one)
    return found


def test_the_parts_begin_with_what_a_newcomer_needs() -> None:
    parts = re.findall(r"^## \d+\. (.+)$", INDEX.read_text("utf-8"), re.M)
    assert parts[:4] == ["Tour", "Your first log", "Your first alert", "Run it"]
    assert parts.index("Reference") > parts.index("What it watches")
    assert [int(one) for one in re.findall(r"^## (\d+)\.", INDEX.read_text("utf-8"), re.M)] == list(
        range(1, len(parts) + 1)
    )


def test_the_readme_names_the_list_before_anything_else() -> None:
    assert links(README)[0] == (INDEX, "")


def test_every_page_is_listed_once() -> None:
    listed = [target for target, _ in links(INDEX) if target.parent == INDEX.parent]
    assert len(listed) == len(set(listed))
    pages = {*INDEX.parent.glob("*.md")} - {INDEX}
    assert {page for page in listed if page.suffix == ".md"} == pages


def test_every_page_is_reached_from_the_readme() -> None:
    """A link to a folder reaches its pages: a forge shows them as a list."""
    reached, new = {README}, [README]
    while new:
        page = new.pop()
        for target, _ in links(page):
            for found in sorted(target.glob("*.md")) if target.is_dir() else [target]:
                if found.suffix == ".md" and found not in reached:
                    reached.add(found)
                    new.append(found)
    assert {page.relative_to(ROOT) for page in set(PAGES) - reached} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_works(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n[a](#a-page) [b](#no-page) [c](absent.md) `[d](code.md)` [e](https://x.test)\n"
    )
    assert links(page) == [(page, "a-page"), (page, "no-page"), (tmp_path / "absent.md", "")]
    assert anchors(page) == {"a-page"}
