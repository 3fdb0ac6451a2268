"""A terminal sets how wide a table is; a pipe, a file or a CI log gets every name whole."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from rich.console import Console

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.models.feature_specs import FEATURE_DISTANCE, FEATURE_LABEL
from monitor.models.specs import AUC_GAP
from monitor.report.diagnosis import print_diagnosis
from monitor.report.judged import Judged, SpanSummary
from monitor.report.table import print_table
from tests.service import pictures

LONG = "shown_items_that_the_catalog_has_not_known_for_a_week"


def printed(show, judged, *, terminal):
    out = io.StringIO()
    show(judged, Console(file=out, width=80, force_terminal=terminal, color_system=None))
    return out.getvalue().splitlines()


def test_a_name_is_whole_and_on_the_line_of_its_numbers_in_a_pipe():
    rule = pictures.rule(LONG, value=0.25, samples=1200, violations=300)
    judged = [Judged("shop", "rules", pictures.LAST, rule)]
    (line,) = [one for one in printed(print_table, judged, terminal=False) if LONG in one]
    assert line.split()[-1] == "1,200"
    on_terminal = printed(print_table, judged, terminal=True)
    assert max(map(len, on_terminal)) <= 80
    assert any(LONG in one for one in on_terminal)  # below the line of its numbers


def test_large_bounds_and_intervals_have_no_exponent():
    volume = pictures.metric("volume", "requests", value=31234.0, threshold=30000, bound="min", samples=31234)
    latency = pictures.metric("latency", "mean", value=1500.0, lower=1456.7, upper=12345.6, samples=9)
    judged = [Judged("shop", "exposure", pictures.LAST, one) for one in (volume, latency)]
    lines = printed(partial(print_table, everything=True), judged, terminal=False)
    heading, first, second = lines[1:4]
    assert first.split()[-4:] == ["31,234", ">=", "30,000", "31,234"]
    assert "1,457 - 12,346 " in second
    assert heading.index("bound") + len("bound") == first.index("30,000") + len("30,000")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_name_of_a_feature_is_whole(terminal):
    names = (LONG, "age")
    distances = [
        Result(
            metric=FEATURE_DISTANCE.name, definition="1", status=Status.OK, value=0.5,
            labels={"model": "m", FEATURE_LABEL: name, "by": "psi"},
        )
        for name in names
    ]  # fmt: skip
    judged = [Judged("shop", "models", pictures.LAST, one) for one in distances]
    lines = printed(print_diagnosis, judged, terminal=terminal)
    first, second = (next(one for one in lines if name in one) for name in names)
    assert first.index("0.5") == second.index("0.5")


def test_a_gap_without_a_value_has_no_hole_before_its_bound():
    labels = {"model": "m", "pair": "test_online"}
    gap = Result(
        metric=AUC_GAP.name, definition="1", status=Status.NO_DATA, threshold=0.02, bound="max",
        kind=ResultKind.GAP, labels=labels, detail="too few rows",
    )  # fmt: skip
    lines = printed(print_diagnosis, [Judged("shop", "models", pictures.LAST, gap)], terminal=False)
    assert any("AUC test minus online  at most 0.02 is allowed" in one for one in lines)


def test_a_span_is_summed_up_by_verdict_and_by_violated_result():
    hours = [
        Window(pictures.LAST.start + timedelta(hours=n), pictures.LAST.end + timedelta(hours=n))
        for n in range(4)
    ]
    broken = pictures.rule("blacklist", status=Status.VIOLATED, detail="x")
    coverage = pictures.metric("coverage", "pv", status=Status.VIOLATED)
    other = pictures.rule("other", status=Status.ERROR, detail="x")
    summary = SpanSummary()
    summary.add(hours[0], Status.VIOLATED, [broken])
    summary.add(hours[0], Status.OK, [])
    summary.add(hours[1], Status.LATE, [broken, broken])
    summary.add(hours[1], Status.VIOLATED, [coverage])
    summary.add(hours[2], Status.ERROR, [other])
    summary.add(hours[3], Status.OK, [replace(coverage, status=Status.OK)])
    assert summary.windows == set(hours)
    assert list(summary.lines()) == [
        "windows: 1 ok, 2 violated, 1 error",
        "violated: rule blacklist (hard) in 2 windows",
        "violated: coverage by=pv in 1 window",
        "error: rule other (hard) in 1 window",
    ]
