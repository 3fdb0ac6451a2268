"""The section on forecasts: the stored days as a scatter, and what needs attention."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.forecast.check import ForecastCheck
from monitor.forecast.schedule import ForecastScheduler
from monitor.history.read_snapshot import read_snapshot
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.report.page import RecommenderView, recommender_page
from monitor.report.views import ForecastView
from tests.forecast.past_days import DAY, SHOP, START, put, put_days, related, settings
from tests.service.web.test_app import client

NOW = START + 91 * DAY
PLACE = re.compile(r'<circle class="(\w+)" cx="([\d.]+)" cy="([\d.]+)" r="3"><title>([^<]*)</title>')


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/history.sqlite") as opened:
        yield opened


def judged(store: Store, **more: object) -> Snapshot:
    """The snapshot after the check of forecasts has run, as the daemon runs it."""
    of = settings(**more)
    ForecastScheduler(of, store, [ForecastCheck(of)]).turn(NOW)
    return read_snapshot(store, [SHOP], NOW)


def view(snapshot: Snapshot) -> RecommenderView:
    page = recommender_page(snapshot, SHOP, NOW)
    assert page is not None
    return page.recommender


def section(snapshot: Snapshot) -> ForecastView:
    found = view(snapshot).forecast
    assert found is not None
    return found


def test_each_stored_day_is_a_dot_and_the_better_day_is_higher_and_further_right(store: Store) -> None:
    put_days(store, 60, *related(noise=0.0))
    (target,) = section(judged(store)).targets
    (pair,) = target.pairs
    assert (pair.row.name, pair.row.note, pair.row.value) == ("ndcg k=10", "used to predict ctr", "1")
    assert pair.picture is not None
    assert len(pair.picture.dots) == 60
    weekdays = [one for one in pair.picture.dots if "2026-03-0" in one.said]
    by_x = sorted(weekdays[:5], key=lambda one: one.x)
    assert [one.y for one in by_x] == sorted((one.y for one in by_x), reverse=True)
    (left, low), (right, high) = [map(float, one.split(",")) for one in pair.picture.line.split()]
    assert left < right
    assert low > high  # as in SVG, y grows downwards
    assert len(pair.picture.band.split()) == 18
    assert target.record == "Forecasts: no candidate with a forecast has been online for `truth_days` days."


def test_days_that_are_left_out_are_hollow_and_counted(store: Store) -> None:
    put_days(store, 60, *related())
    bad = Result(
        kind=ResultKind.RULE, metric="rule", labels={"rule": "blacklist", "kind": "hard"}, definition="1",
        status=Status.VIOLATED, value=0.1, samples=10, violations=1, threshold=0.0,
    )  # fmt: skip
    put(store, 30, "rules", [bad])
    found = section(judged(store, bands={"holidays": ["2026-04-06"]}))
    assert found.days == "58 of 60 days are used; left out: 1 (a violated hard rule), 1 (a day off)"
    picture = found.targets[0].pairs[0].picture
    assert picture is not None
    hollow = {one.said.partition(":")[0]: one.kind for one in picture.dots if one.kind != "used"}
    assert hollow == {"2026-04-01": "incident", "2026-04-06": "holiday"}
    (told,) = [one.said for one in picture.dots if one.kind == "holiday"]
    assert told.endswith(", left out: a day off")


def test_a_metric_that_no_longer_predicts_needs_attention_and_links_to_its_days(store: Store) -> None:
    ndcg, ctr = related()
    _, other = related(5)
    put_days(store, 90, ndcg, lambda number: ctr(number) if number < 60 else other(number))
    found = view(judged(store, forecast={"days": 84, "recent": 28}))
    (row,) = found.problems
    assert (row.name, row.verdict.key) == ("ndcg k=10", "violated")
    assert row.href == f"recommenders/{SHOP}#forecast"
    assert "no longer predicts" in row.sentence
    assert found.verdict.key == "violated"


def test_a_run_that_failed_is_an_error_of_the_forecast_and_invents_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_days(store, 60, *related())
    judged(store)
    put_days(store, 1, *related(), first=60)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("monitor.forecast.check.study", broken)
    snapshot = judged(store)
    found = view(snapshot)
    (row,) = found.problems
    assert (row.name, row.verdict.key) == ("forecast", "error")
    assert found.verdict.key == "error"
    (pair,) = section(snapshot).targets[0].pairs
    assert (pair.row.verdict.key, pair.row.value, pair.picture) == ("error", "", None)


def test_too_few_days_are_no_data_without_a_line(store: Store) -> None:
    put_days(store, 9, *related())
    found = view(judged(store))
    assert found.forecast is not None
    (pair,) = found.forecast.targets[0].pairs
    assert (pair.row.verdict.key, pair.row.value, pair.picture) == ("no_data", "", None)
    assert "9 of 60 days can be used, and 21 are needed" in pair.row.detail
    assert found.problems == ()


def test_the_page_draws_the_days_once_and_escapes_the_name_of_a_model(store: Store) -> None:
    put_days(store, 60, *related())
    snapshot = judged(store)
    (state,) = snapshot.recommenders
    hostile = "<script>\u202eboom"
    series = tuple(
        replace(
            one,
            result=replace(
                one.result,
                evidence=tuple(
                    row | {"model": hostile} if "model" in row else row for row in one.result.evidence
                ),
            ),
        )
        for one in state.series
    )
    snapshot = replace(snapshot, recommenders=(replace(state, series=series),))
    with client(snapshot) as web:
        text = web.get(f"/recommenders/{SHOP}/sections/forecast").text
    places = PLACE.findall(text)
    assert len(places) == 60
    assert {kind for kind, *_ in places} == {"used"}
    assert all(0 <= float(x) <= 340 and 0 <= float(y) <= 200 for _, x, y, _ in places)
    assert all("&lt;script&gt;" in said and "\u202e" not in said for *_, said in places)
    assert "<script>" not in text
    assert "forecast_correlation" not in text  # its rows are in the section, not in the table of metrics
    drawn = text[text.index('<svg viewBox="0 0 340') : text.index("</figure>")]
    assert ElementTree.fromstring(drawn[: drawn.index("</svg>") + 6]).tag == "svg"


def test_without_a_forecast_there_is_no_section(store: Store) -> None:
    put_days(store, 3, *related())
    assert view(read_snapshot(store, [SHOP], NOW)).forecast is None
