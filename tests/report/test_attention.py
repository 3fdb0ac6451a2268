"""The state of a recommender, and since when it has it."""

from __future__ import annotations

from dataclasses import replace

from monitor.core.results import Status
from monitor.history.snapshot import RecommenderState, RuleInfo
from monitor.report.attention import attention_of
from tests.service import pictures
from tests.service.made import HOUR, LAST, NOW, metric, rule, series


def test_a_rule_that_waits_for_its_first_window_hides_no_log_that_stands_still() -> None:
    log = series(metric("volume", "rows", Status.LATE, labels={"log": "exposures"}), hours=2)
    state = RecommenderState("shop", series=(log,))
    assert attention_of(state, NOW).status is Status.LATE
    assert (
        attention_of(replace(state, rules=(RuleInfo("a", pictures.Kind.HARD),)), NOW).status is Status.NO_DATA
    )


def test_the_state_began_with_the_longest_violation() -> None:
    young = series(rule("young", status=Status.VIOLATED, violations=1), hours=1)
    old = series(rule("old", status=Status.VIOLATED, violations=1), hours=5)
    blind = series(rule("blind", status=Status.NO_DATA), hours=9)
    found = attention_of(RecommenderState("shop", series=(young, old, blind)), NOW)
    assert found.since == LAST.start - 5 * HOUR
    assert [one.result.labels["rule"] for one in found.violated] == ["young", "old"]
    assert [one.result.labels["rule"] for one in found.unjudged] == ["blind"]
    assert attention_of(RecommenderState("shop"), NOW).since is None
