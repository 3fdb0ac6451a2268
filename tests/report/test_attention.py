"""The state of a recommender without its page: the same as on the page, from standings alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.history.snapshot import RecommenderState, RuleInfo, Series, Snapshot
from monitor.report.attention import attention_of
from monitor.report.page import recommender_view
from tests.service import pictured_bands, pictured_models, pictures
from tests.service.made import HOUR, LAST, NOW, metric, rule, series

STATES = {
    "in trouble": pictures.shop(),
    "well": pictures.news(),
    "cannot run": pictures.broken(),
    "nothing judged": pictures.empty().recommenders[0],
    "anomalies": pictured_bands.feeds(),
    "models": pictured_models.ranker(),
    "no series": RecommenderState("shop"),
}


def with_standing(state: RecommenderState, place: int, standing: Status) -> RecommenderState:
    many = list(state.series)
    one = many[place]
    many[place] = replace(one, standing=standing, result=replace(one.result, status=standing))
    return replace(state, series=tuple(many))


def agrees(state: RecommenderState) -> None:
    """The page and the short way say the same: the state, and how many rows need attention."""
    view = recommender_view(state, Snapshot(NOW, (state,)), NOW)
    short = attention_of(state)
    assert short.status.value == view.verdict.key
    assert [one.standing.value for one in short.series] == [row.verdict.key for row in view.attention]
    assert sorted(one.since.strftime("%Y-%m-%dT%H:%M:%SZ") for one in short.series) == sorted(
        row.since.iso for row in view.attention if row.since
    )


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_state_and_what_needs_attention_are_those_of_the_page(state: RecommenderState) -> None:
    agrees(state)


@pytest.mark.parametrize("standing", Status)
@pytest.mark.parametrize("name", ["in trouble", "well", "anomalies", "models"])
def test_they_are_those_of_the_page_whatever_one_series_says(name: str, standing: Status) -> None:
    state = STATES[name]
    for place in range(0, len(state.series), 3):
        agrees(with_standing(state, place, standing))


def of_kind(kind: ResultKind, name: str, standing: Status, **labels: str) -> Series:
    bound = {"threshold": 1.0, "bound": "max"} if kind.is_of_the_platform else {}
    result = Result(
        kind=kind, metric=name, status=standing, definition="1", labels=labels, value=2.0, **bound
    )
    return series(result)


@pytest.mark.parametrize("standing", Status)
def test_the_platform_and_forecasts_need_attention_as_on_the_page(standing: Status) -> None:
    substitution = of_kind(ResultKind.SUBSTITUTION, "substitution", standing, total="clicks", system="search")
    pair = of_kind(
        ResultKind.FORECAST, "forecast_correlation", standing, metric="ndcg", target="sales", role="used"
    )
    agrees(replace(pictures.news(), series=(substitution,)))
    agrees(replace(pictures.news(), series=(pair,)))
    if standing is not Status.VIOLATED:  # the record of the days has no bound
        basis = of_kind(ResultKind.FORECAST, "forecast_basis", standing, reason="used")
        agrees(replace(pictures.news(), series=(basis,)))


def test_a_rule_that_waits_for_its_first_window_hides_no_log_that_stands_still() -> None:
    log = series(metric("volume", "rows", Status.LATE, labels={"log": "exposures"}), hours=2)
    state = RecommenderState("shop", series=(log,))
    assert attention_of(state).status is Status.LATE
    assert attention_of(replace(state, rules=(RuleInfo("a", pictures.Kind.HARD),))).status is Status.NO_DATA


def test_the_state_began_with_the_longest_violation() -> None:
    young = series(rule("young", status=Status.VIOLATED, violations=1), hours=1)
    old = series(rule("old", status=Status.VIOLATED, violations=1), hours=5)
    blind = series(rule("blind", status=Status.NO_DATA), hours=9)
    found = attention_of(RecommenderState("shop", series=(young, old, blind)))
    assert found.since == LAST.start - 5 * HOUR
    assert [one.result.labels["rule"] for one in found.violated] == ["young", "old"]
    assert [one.result.labels["rule"] for one in found.unjudged] == ["blind"]
    assert attention_of(RecommenderState("shop")).since is None
