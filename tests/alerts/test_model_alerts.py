"""One incident of a model, one alert, one message: what promtool's cases of rules/alerts/tests cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from monitor.models.diagnosis.registry import RUNBOOKS
from monitor.models.specs import PAIRS
from tests.alerts.posted import Group, alert, assert_groups, post, running
from tests.end_to_end.servers import Alertmanager
from tests.processes import ROOT

ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for rule in yaml.safe_load((ROOT / "rules/alerts/models.yaml").read_text("utf-8"))["groups"][0]["rules"]
}
OF_CAUSES = [
    (found[1], name)
    for name, rule in ALERTS.items()
    if (
        found := re.search(
            r'and on \([^)]*\)\s+(?:\(\s+)?max by \([^)]*\) \(\s+1 \+ \S+cause="(\w+)"', rule["expr"]
        )
    )
]
KEYS = "(recommender, pair, model)"
ENDS = f'unless on {KEYS} max by {KEYS} (recsys_auc_gap_status{{status!="violated"}} == 1)'


def ranked(causes: tuple[str, ...]) -> str:
    """What a cause is ranked by, as every expression writes it."""
    chosen = "|".join(causes)
    selector = f'{{cause{"=~" if len(causes) > 1 else "="}"{chosen}"}}' if causes else ""
    ratio = f"recsys_auc_gap_cause_ratio{selector}"
    return f"max by {KEYS} ( 1 + last_over_time({ratio}[15m]) or last_over_time({ratio}[1d]) )"


def test_every_cause_has_one_alert_that_is_named_as_its_runbook() -> None:
    assert sorted(OF_CAUSES) == sorted(RUNBOOKS.items())


def test_the_alerts_of_causes_differ_only_in_the_cause_so_exactly_one_fires() -> None:
    """The first of them stands while the gap does, and Alertmanager holds the others back."""
    before: tuple[str, ...] = ()
    for cause, name in OF_CAUSES:  # in the order of the file, which is that of equal shares
        pages = ALERTS[name]["labels"]["severity"] == "page"
        pair = 'pair="test_online", ' if pages else ""
        words = [
            f'max by {KEYS} (last_over_time(recsys_auc_gap_status{{{pair}status="violated"}}[15m])) == 1',
            ENDS,
            f"and on {KEYS} {ranked((cause,))} >= {ranked(())}",
        ]
        if not before:
            stands = f'max by {KEYS} (ALERTS{{alertname="{name}", alertstate="firing"}})'
            words[2] = f"and on {KEYS} ( {ranked((cause,))} >= {ranked(())} or {stands} )"
        else:
            words.append(f"unless on {KEYS} {ranked(before)} >= {ranked(())}")
        assert " ".join(ALERTS[name]["expr"].split()) == " ".join(words)
        before += (cause,)


def test_the_causes_that_page_come_first_and_the_rest_of_them_is_a_ticket_without_a_cause() -> None:
    paging = tuple(cause for cause, name in OF_CAUSES if ALERTS[name]["labels"]["severity"] == "page")
    first = tuple(cause for cause, _ in OF_CAUSES[: len(paging)])
    assert paging == first, "or a ticket of the same share would go before a page"
    rest = " ".join(ALERTS["RecsysAucGap"]["expr"].split())
    others = [pair for pair in PAIRS if pair != "test_online"]
    for pair in others:
        verdict = f'last_over_time(recsys_auc_gap_status{{pair="{pair}", status="violated"}}[15m])'
        assert f"{verdict}) == 1 {ENDS} and on {KEYS} {ranked(paging)} >= {ranked(())}" in rest


@pytest.fixture
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with running(tmp_path_factory.mktemp("alertmanager")) as server:
        yield server


def test_trouble_of_several_models_of_a_recommender_is_one_message(alertmanager: Alertmanager) -> None:
    post(
        alertmanager,
        [
            alert("RecsysServingSkew", pair="test_online", model="v1"),
            alert("RecsysPrunedFeatures", pair="test_online", model="v2"),
            alert("RecsysScoreShift", pair="test_online", model="v3"),
            alert("RecsysFeatureSkew", model="v4", feature="age"),
            alert("RecsysFeatureSkew", model="v4", feature="city"),
            alert("RecsysTimeTravel", recommender="news", pair="test_online", model="v1"),
        ],
    )
    assert_groups(
        alertmanager,
        Group("page", "shop", ("RecsysPrunedFeatures", "RecsysServingSkew")),
        Group("ticket", "news", ("RecsysTimeTravel",)),
        Group("ticket", "shop", (), held=("RecsysFeatureSkew", "RecsysFeatureSkew", "RecsysScoreShift")),
    )


def test_skew_of_returning_features_is_not_reported_but_that_of_another_model_is(
    alertmanager: Alertmanager,
) -> None:
    post(
        alertmanager,
        [
            alert("RecsysPrunedFeatures", "video", pair="test_online", model="v1"),
            alert("RecsysServingSkew", "video", pair="test_online", model="v1"),
            alert("RecsysServingSkew", "video", pair="test_online", model="v2"),
        ],
    )
    told = Group("page", "video", ("RecsysPrunedFeatures", "RecsysServingSkew"), held=("RecsysServingSkew",))
    assert_groups(alertmanager, told)
