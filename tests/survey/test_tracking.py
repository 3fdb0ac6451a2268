"""Verdicts on metrics: tracks, against, does not track, unknown; and respondents against the others."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.core.results import Status
from monitor.settings.survey import SurveySettings
from monitor.statistics.effects import Moments, welch
from monitor.survey.findings import Verdict
from monitor.survey.tracking import compared, tracked
from monitor.survey.user_metrics import UserValues

SETTINGS = SurveySettings()
LENGTH, FAILURE, NDCG = ("list_length", ()), ("failure", (("by", "pv"),)), ("ndcg", (("k", "5"),))


def values(numbers) -> dict[str, float]:
    return {f"u{number}": float(value) for number, value in enumerate(numbers)}


def verdicts(metrics, answers, **settings) -> dict:
    found = tracked(UserValues(metrics), values(answers), SurveySettings(**settings))
    return {one.series: one for one in found}


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_a_metric_that_moves_with_the_answers_tracks_them(rng):
    answers = rng.normal(size=200)
    found = verdicts({LENGTH: values(answers + rng.normal(size=200))}, answers)[LENGTH]
    assert found.verdict is Verdict.TRACKS
    assert found.correlation.n == 200
    assert found.mean[0] == pytest.approx(np.mean(list(found.mean[1])), abs=1e-9)


def test_a_metric_that_should_be_high_and_is_low_for_happy_users_is_against_them(rng):
    answers = rng.normal(size=200)
    noise = rng.normal(size=200)
    found = verdicts({NDCG: values(noise - answers), FAILURE: values(noise - answers)}, answers)
    assert found[NDCG].verdict is Verdict.AGAINST
    assert found[FAILURE].verdict is Verdict.TRACKS  # fewer failures, happier users
    assert verdicts({FAILURE: values(answers + noise)}, answers)[FAILURE].verdict is Verdict.AGAINST
    assert verdicts({LENGTH: values(noise - answers)}, answers)[LENGTH].verdict is Verdict.TRACKS


def test_many_answers_without_a_correlation_do_not_track_and_few_are_unknown(rng):
    many, few = rng.normal(size=(2, 4000)), rng.normal(size=(2, 30))
    assert verdicts({LENGTH: values(many[0])}, many[1])[LENGTH].verdict is Verdict.DOES_NOT_TRACK
    found = verdicts({LENGTH: values(few[0])}, few[1])[LENGTH]
    assert found.verdict is Verdict.UNKNOWN
    assert found.needed > 30
    assert found.why == "chance alone may make such a correlation"


def test_more_metrics_need_a_stronger_correlation():
    answers = np.arange(60.0)
    rng = np.random.default_rng(1)
    one = values(answers + rng.normal(0, 40, 60))
    alone = verdicts({LENGTH: one}, answers)[LENGTH]
    others = {("action_rate", (("event", str(n)),)): values(rng.normal(size=60)) for n in range(40)}
    among = verdicts({LENGTH: one, **others}, answers)[LENGTH]
    assert (alone.verdict, among.verdict) == (Verdict.TRACKS, Verdict.UNKNOWN)
    assert among.p == pytest.approx(min(1, 41 * alone.p))
    assert among.together.lower < alone.together.lower
    assert among.correlation == alone.correlation


def test_what_cannot_be_tested_says_why():
    metrics = UserValues(
        {LENGTH: values([1.0] * 30), NDCG: values(range(5))}, {FAILURE: "RuntimeError: no such table"}
    )
    found = {one.series: one for one in tracked(metrics, values(range(30)), SETTINGS)}
    assert {one.verdict for one in found.values()} == {Verdict.NOT_MEASURED}
    assert found[LENGTH].why == "all respondents have the same value"
    assert found[NDCG].why == "5 respondents have a value, fewer than 20 (survey.least)"
    assert found[FAILURE].why == "RuntimeError: no such table"


def test_one_user_has_a_value_and_those_with_a_value_may_give_the_same_answer():
    few, equal = {"u1": 1.0}, values(range(30))
    answers = dict.fromkeys(equal, 4.0) | {f"v{number}": 2.0 for number in range(30)}
    found = {
        one.series: one.why for one in tracked(UserValues({LENGTH: few, NDCG: equal}), answers, SETTINGS)
    }
    assert found[LENGTH] == "1 respondent has a value, fewer than 20 (survey.least)"
    assert found[NDCG] == "all respondents with a value gave the same answer"
    (one,) = compared(UserValues({LENGTH: few}), UserValues({}), SETTINGS)
    assert one.difference.detail == (
        "1 respondent has a value, fewer than 20 (survey.least); "
        "0 others have a value, fewer than 20 (survey.least)"
    )


def test_what_only_follows_the_length_of_lists_has_no_partial_correlation(rng):
    length = rng.integers(2, 10, 400).astype(float)
    answers = length + rng.normal(size=400)
    metrics = {LENGTH: values(length), NDCG: values(-length + rng.normal(size=400))}
    found = verdicts(metrics, answers)
    assert found[NDCG].verdict is Verdict.AGAINST
    assert found[NDCG].partial.interval.lower < 0 < found[NDCG].partial.interval.upper
    assert found[LENGTH].partial is None  # nothing else is measured that could be held


def test_metrics_that_are_only_held_are_not_tested(rng):
    length, answers = rng.normal(size=(2, 50))
    metrics = UserValues({LENGTH: values(length), NDCG: values(rng.normal(size=50))})
    (one,) = tracked(metrics, values(answers), SETTINGS, ("ndcg",))
    assert one.series == NDCG
    assert one.p == one.correlation.p
    assert one.partial.n == 49


def test_only_users_with_both_count():
    answers = values(range(40))
    metrics = {f"u{number}": float(number) for number in range(10, 60)}
    (one,) = tracked(UserValues({LENGTH: metrics}), answers, SETTINGS)
    assert one.correlation.n == 30


def test_a_difference_is_in_standard_deviations_with_the_interval_of_welch():
    mine, others = [1.0, 2.0, 3.0, 4.0] * 10, [2.0, 3.0, 4.0, 7.0] * 10
    (found,) = compared(UserValues({LENGTH: values(mine)}), UserValues({LENGTH: values(others)}), SETTINGS)
    one, other = (Moments.of_sums(40, sum(v), sum(x * x for x in v)) for v in (mine, others))
    spread = ((one.variance + other.variance) / 2) ** 0.5
    assert found.difference.value == pytest.approx((2.5 - 4.0) / spread)
    expected = [end / spread for end in welch(other, one).interval]
    assert [found.difference.lower, found.difference.upper] == pytest.approx(expected)
    assert (found.difference.status, found.difference.samples) == (Status.VIOLATED, 80)


def test_a_clear_difference_that_is_small_is_no_warning():
    rng = np.random.default_rng(3)
    mine, others = rng.normal(0.15, 1, 5000), rng.normal(0, 1, 5000)
    (found,) = compared(UserValues({LENGTH: values(mine)}), UserValues({LENGTH: values(others)}), SETTINGS)
    assert found.difference.lower > 0
    assert found.difference.status is Status.OK


def test_groups_without_spread_or_values_say_so():
    settings = SETTINGS
    same = UserValues({LENGTH: values([3.0] * 30)})
    (equal,) = compared(same, same, settings)
    (apart,) = compared(same, UserValues({LENGTH: values([4.0] * 30)}), settings)
    (few,) = compared(same, UserValues({LENGTH: values([4.0] * 3)}), settings)
    assert (equal.difference.status, equal.difference.value) == (Status.OK, 0)
    assert (apart.difference.status, apart.difference.value) == (Status.UNDEFINED, None)
    assert apart.difference.detail == "neither group has any spread"
    assert (few.difference.status, few.difference.detail) == (
        Status.NO_DATA, "3 others have a value, fewer than 20 (survey.least)",
    )  # fmt: skip


def test_false_warnings_are_rare_over_all_metrics_together():
    rng = np.random.default_rng(8)
    warned = 0
    for _ in range(300):
        sides = [
            UserValues({("action_rate", (("event", str(n)),)): values(rng.normal(size=40)) for n in range(8)})
            for _ in range(2)
        ]
        warned += any(one.difference.status is Status.VIOLATED for one in compared(*sides, SETTINGS))
    assert warned / 300 <= 0.08
