"""The output of a comparison holds what a log may contain."""

from __future__ import annotations

import io
import json
import math
import re
from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest
from rich.console import Console

from monitor.comparison.compare import compare
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.report.comparison import Comparison, as_json, as_junit, print_comparison, slices_text, summary
from monitor.report.comparison_page import as_html

HOSTILE = "<b>\x1b[31m[red]\u202e\x00"
SPAN = Window(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 8, tzinfo=UTC))


def hostile() -> Comparison:
    one, other = (
        Result(
            metric="rule", kind=ResultKind.RULE, labels={"rule": HOSTILE, "kind": "hard"}, definition="1",
            status=Status.OK, value=value, samples=10, violations=int(10 * value), lower=value, upper=value,
        )
        for value in (0.0, 0.5)
    )  # fmt: skip
    lost = Result(metric="auc", status=Status.NO_DATA, definition="1", detail=HOSTILE)
    found = compare([one], [other, lost], margin=0.0)
    return Comparison((f"shop:model={HOSTILE}", "shop"), (SPAN, SPAN), found, [HOSTILE.replace("\x1b", "")])


def printed(found: Comparison, width: int = 120) -> str:
    stream = io.StringIO()
    print_comparison(found, Console(file=stream, width=width), everything=True)
    return stream.getvalue()


def test_what_a_log_holds_is_shown_and_does_nothing() -> None:
    text = printed(hostile())
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<b>" in text
    assert "[red]" in text
    content = json.loads(as_json(hostile()))
    assert content["compared"][0]["labels"]["rule"] == HOSTILE
    suite = ElementTree.fromstring(as_junit(hostile()))
    assert suite.get("failures") == "1"


def test_a_page_escapes_what_a_log_holds_and_loads_nothing() -> None:
    page = as_html(hostile())
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert "\x1b" not in page
    assert "http" not in page
    assert "<script" not in page


def metric(name: str, value: float, half: float) -> Result:
    return Result(
        metric=name, status=Status.OK, definition="1", value=value, samples=100, lower=value - half,
        upper=value + half,
    )  # fmt: skip


def drawn(name: str, value: float, other: float, half: float = 0.01) -> list[float]:
    """Where the margin, the interval and the value are in the picture."""
    found = compare([metric(name, value, half)], [metric(name, other, half)], margin=0.02)
    page = as_html(Comparison(("a", "b"), (SPAN, SPAN), found))
    read = re.search(
        r'class="margin" x="(.*?)" y="2" width="(.*?)".*?class="range" x1="(.*?)" x2="(.*?)".*?cx="(.*?)"',
        page,
    )
    return [] if read is None else [float(one) for one in read.groups()]


def test_the_picture_is_a_part_of_the_value_of_a() -> None:
    begin, width, lower, upper, at = drawn("ndcg", 0.5, 0.6)
    middle, half = 95.0, 89.0  # pixels; half of them are a change by 50 %
    assert at == pytest.approx(middle + half * 0.2 / 0.5, abs=0.1)
    reach = half * 0.01 * math.sqrt(2) / 0.5 / 0.5
    assert (at - lower, upper - at) == pytest.approx((reach, reach), abs=0.2)
    assert (begin + width / 2, width / 2) == pytest.approx((middle, half * 0.02 / 0.5), abs=0.1)


def test_a_large_change_is_drawn_at_the_edge_and_none_without_a_value_of_a() -> None:
    assert drawn("ndcg", 0.1, 0.9)[2:] == [184.0, 184.0, 184.0]
    assert drawn("ndcg", 0.9, 0.1)[2:] == [6.0, 6.0, 6.0]
    assert drawn("log_loss", 0.0, 0.1) == []


def test_nothing_to_compare_says_so() -> None:
    empty = Comparison(("a", "b"), (SPAN, SPAN), [])
    assert summary(empty) == "B against A: nothing to compare"
    assert printed(empty).splitlines()[-1] == summary(empty)
    assert json.loads(as_json(empty))["compared"] == []
    assert ElementTree.fromstring(as_junit(empty)).get("tests") == "0"


def of_slice(value: str, share: float) -> Result:
    labels = {"by": "pv", "dimension": "scene", "value": value}
    return Result(
        metric="failure", labels=labels, definition="1", status=Status.OK, value=share, samples=1000,
        lower=share - 0.01, upper=share + 0.01,
    )  # fmt: skip


def test_the_slices_that_win_and_lose_are_named() -> None:
    a = [of_slice(name, 0.5) for name in ("home", HOSTILE, "cart")]
    b = [of_slice("home", 0.3), of_slice(HOSTILE, 0.7), of_slice("cart", 0.5)]
    found = Comparison(("a", "b"), (SPAN, SPAN), compare(a, b, margin=0.1))
    lose, win = slices_text(found)
    assert lose.startswith("slices that lose: scene=<b>[U+001B]")
    assert win == "slices that win: scene=home (1 better)"
    assert win in printed(found)
    assert "<h2>The slices</h2>" in as_html(found)
    counts = json.loads(as_json(found))["slices"]
    assert {name: of["better"] for name, of in counts.items()} == {
        "scene=home": 1, f"scene={HOSTILE}": 0, "scene=cart": 0
    }  # fmt: skip
    assert list(slices_text(Comparison(("a", "b"), (SPAN, SPAN), compare(a, a, margin=0.1)))) == [
        "no slice of 3 wins or loses"
    ]
    assert list(slices_text(Comparison(("a", "b"), (SPAN, SPAN), compare(a, [], margin=0.1)))) == []
    many = [of_slice(f"s{number}", 0.5) for number in range(8)], [of_slice(f"s{n}", 0.9) for n in range(8)]
    (line,) = slices_text(Comparison(("a", "b"), (SPAN, SPAN), compare(*many, margin=0.1)))
    assert line.endswith("scene=s4 (1 worse), and 3 more")


def test_the_slices_of_one_side_are_named() -> None:
    a, b = [of_slice("home", 0.5), of_slice(HOSTILE, 0.5)], [of_slice("home", 0.5)]
    text = printed(Comparison(("a", "b"), (SPAN, SPAN), compare(a, b, margin=0.1)))
    assert "slices of A alone: scene=<b>[U+001B]" in text
    assert "slices of B alone" not in text


def test_a_narrow_terminal_has_the_numbers_on_a_line_of_their_own() -> None:
    found = Comparison(
        ("a", "b"), (SPAN, SPAN), compare([of_slice("home", 0.5)], [of_slice("home", 0.505)], margin=0)
    )
    stream = io.StringIO()
    print_comparison(found, Console(file=stream, width=80, force_terminal=True, no_color=True))
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("? unknown"))
    assert lines[at].split()[2:] == ["failure", "by=pv", "dimension=scene", "value=home"]
    assert lines[at + 1].split()[:3] == ["0.5", "0.505", "+0.005"]
    assert lines[at + 1].endswith(lines[at + 1].split()[-1])
    assert max(map(len, lines)) <= 80
