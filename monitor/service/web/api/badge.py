"""The state of a recommender as a small picture, for a wiki or a README."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape

from monitor.core.results import Status
from monitor.core.text import NAME_LENGTH, visible
from monitor.history.snapshot import RecommenderState
from monitor.report.attention import attention_of
from monitor.report.judged import NOT_TEXT
from monitor.service.web.api.context import status_word

_COLOURS: Final = {
    Status.OK: "#1a7f37",
    Status.VIOLATED: "#b3261e",
    Status.ERROR: "#7b2d8b",
    Status.LATE: "#8a5a00",
    Status.NO_DATA: "#5b6470",
    Status.UNDEFINED: "#5b6470",
}
_CHARACTER: Final = 7  # pixels of a narrow character of 11 px Verdana, with room to spare
_PADDING: Final = 12


def badge(state: RecommenderState, now: datetime) -> str:
    """An SVG with the name and the status; beside a status that is not ok, how many series have it."""
    attention = attention_of(state, now)
    same = sum(one.standing is attention.status for one in attention.series)
    word = status_word(attention.status) + (f" ({same})" if same else "")
    return drawn(state.name, word, _COLOURS[attention.status])


def drawn(name: str, word: str, colour: str) -> str:
    """A badge of two fields. Texts may be anything.

    >>> "&lt;b&gt;: ok" in drawn("<b>", "ok", "#1a7f37")
    True
    """
    left, right = (escape(visible(text, NAME_LENGTH).translate(NOT_TEXT)) for text in (name, word))
    first, second = (_width(visible(text, NAME_LENGTH)) for text in (name, word))
    whole = first + second
    style = 'font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" '
        f'aria-label="{left.replace(chr(34), "&quot;")}: {right}">'
        f"<title>{left}: {right}</title>"
        f'<rect width="{whole}" height="20" rx="3" fill="#3b4350"/>'
        f'<path d="M{first} 0h{second - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{second - 3}z" fill="{colour}"/>'
        f"<g {style}>"
        f'<text x="{first / 2:g}" y="14">{left}</text><text x="{first + second / 2:g}" y="14">{right}</text>'
        "</g></svg>"
    )


def _width(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return _PADDING + _CHARACTER * (len(text) + wide)
