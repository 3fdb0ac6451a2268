"""A runbook as a page: its Markdown as HTML in which nothing but the renderer's own elements can occur."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from monitor.history.snapshot import Snapshot
from monitor.report.frame import frame
from monitor.report.runbooks import FOLDER, INDEX, runbook_names, runbook_text
from monitor.report.views import Frame


@dataclass(frozen=True, slots=True)
class RunbookPage:
    """A runbook. `html` is escaped already."""

    frame: Frame
    title: str
    html: Markup


def runbook_page(snapshot: Snapshot, name: str, now: datetime, docs_url: str = "") -> RunbookPage | None:
    """The page of a runbook, None if there is no such runbook. An empty name is the list of all runbooks."""
    text = runbook_text(name or INDEX)
    if text is None:
        return None
    title, html = rendered(text, name or INDEX, docs_url)
    return RunbookPage(frame(snapshot, now), title, html)


def rendered(text: str, name: str = INDEX, docs_url: str = "") -> tuple[str, Markup]:
    """The title and the HTML of a runbook's Markdown.

    HTML within the Markdown is shown as text, and pictures are left out. Links to other runbooks lead to
    their pages. Links to other files of the repository lead below `docs_url`, or are plain text without it.

    >>> rendered("# A <b>\\n\\n[now](RecsysAnomaly.md#what-to-do)")[1]
    Markup('<h1 id="a-b">A &lt;b&gt;</h1>\\n<p><a href="RecsysAnomaly#what-to-do">now</a></p>\\n')
    """
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = markdown.parse(text)
    title = ""
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[place + 1].content
            title = title or heading
            token.attrSet("id", _slug(heading))
        if token.type == "th_open":
            token.attrSet("scope", "col")
        token.children = list(_linked(token.children or (), name, docs_url))
    # Escaped by the renderer: with `html` off it writes no text of the file as markup.
    return title, Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704


def _linked(tokens: Sequence[Token], name: str, docs_url: str) -> Iterator[Token]:
    """The tokens with their links replaced. A link that leads nowhere is its text alone."""
    dropped = False  # links are never nested
    for token in tokens:
        if token.type == "link_open":
            href = _address(str(token.attrGet("href") or ""), name, docs_url)
            dropped = not href
            token.attrSet("href", href)
        if token.type in ("link_open", "link_close") and dropped:
            continue
        yield token


def _address(href: str, name: str, docs_url: str) -> str:
    """Where a link of this runbook leads; empty if nowhere.

    >>> _address("../RecsysAnomaly.md#what-to-do", "causes/lists_empty", "")
    '../RecsysAnomaly#what-to-do'
    >>> _address("../bands.md", "RecsysDrift", "https://git.test"), _address("../bands.md", "RecsysDrift", "")
    ('https://git.test/docs/bands.md', '')
    """
    parts = urlsplit(href)
    if parts.scheme in ("http", "https") or not parts.path:
        return href
    if parts.scheme or parts.netloc:
        return ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    path = posixpath.normpath(posixpath.join(FOLDER, posixpath.dirname(name), parts.path))
    target = path.removeprefix(f"{FOLDER}/").removesuffix(".md")
    if target in runbook_names():
        shown = parts.path.removesuffix(".md")
        if target == INDEX:
            shown = posixpath.dirname(shown) or "."
            shown += "/"
        return f"{shown}{fragment}"
    return f"{docs_url}/{path}{fragment}" if docs_url and not path.startswith("..") else ""


def _slug(heading: str) -> str:
    """The name of a heading in links, as Git servers make it.

    >>> _slug("How to *see* it: `now`")
    'how-to-see-it-now'
    """
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")
