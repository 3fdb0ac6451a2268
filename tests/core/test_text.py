"""Whatever shows a text that it did not write takes its secrets out before it cuts it."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from monitor.core.redaction import keep_secret
from monitor.core.text import (
    MESSAGE_LENGTH,
    REASON_LENGTH,
    cut,
    encodable,
    fit,
    quoted,
    visible,
    visible_lines,
)
from monitor.history.errors import _detail
from monitor.logs.index import readable
from monitor.metrics.measure import explain
from monitor.rules.gx.messages import shorten

SECRET = "cut-in-the-middle"
SHOWN = "${CUT}"
WAYS = {
    "readable": (REASON_LENGTH, lambda text: readable(ValueError(text))),
    "explain": (MESSAGE_LENGTH, lambda text: explain(ValueError(text))),
    "shorten": (MESSAGE_LENGTH, shorten),
    "detail": (MESSAGE_LENGTH, lambda text: _detail(SQLAlchemyError(text), make_url("sqlite://"))),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_part_of_a_secret_is_left_when_a_text_is_cut(way):
    keep_secret(SECRET, SHOWN)
    limit, show = WAYS[way]
    for before in range(limit - 2 * len(SECRET), limit):
        text = show("x" * before + SECRET + "y" * limit)
        assert "cut-" not in text
        assert "x" * (before - len("ValueError: ")) in text
        assert len(text) <= limit + len("...")


def test_a_cut_says_so_and_a_fit_stays_within_the_limit():
    assert [cut("a" * n, 5) for n in (5, 6)] == ["aaaaa", "aaaaa..."]
    assert [fit("a" * n, 5) for n in (5, 6)] == ["aaaaa", "aa..."]
    assert fit("a" * 6, 5, "…") == "aaaa…"


def test_lines_that_are_left_out_are_counted():
    assert visible_lines("\n".join("abc"), 3) == "a\nb\nc"
    assert visible_lines("\n".join("abc"), 2) == "a\nb (and 1 more line)"
    assert visible_lines("\n".join("abc"), 1) == "a (and 2 more lines)"


def test_invisible_characters_are_named_and_unencodable_ones_replaced():
    assert quoted("a\u202eb\n") == "'a\\u202eb\\n'"
    assert visible("a\u202eb\n") == "a[U+202E]b[LF]"
    assert encodable("ü\ud800") == "ü?"
