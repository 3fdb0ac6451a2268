"""The numbers of a survey: means, shares, rates, arms, slices and weights, worked by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Status, Window
from monitor.report.survey import splits_of
from monitor.statistics.effects import Moments, welch
from monitor.statistics.intervals import bounded_mean, wilson
from monitor.survey.measure import SurveyError
from tests.survey.world import END, START, rows

COLUMNS = ("user_id", "ts", "question", "answer")
AT = END - pd.Timedelta(hours=1)
GIVEN = [1, 2, 3, 4, 5, 5, 5, 4, 3, 2, 5, 5]
EXPERIMENT = {"experiments": [{"name": "lists", "column": "arm", "split": {"control": 1, "new": 1}}]}


def lists(users: int = 40, each: int = 1, **columns) -> pd.DataFrame:
    """`each` lists of one item for each user; a column is a function of the user's number."""
    frame = pd.DataFrame({"number": np.repeat(np.arange(users), each)})
    frame["request_id"] = [f"r{n}" for n in range(len(frame))]
    frame["user_id"] = "u" + frame["number"].astype(str)
    frame["ts"] = START + pd.Timedelta(hours=1)
    frame["item_id"] = "i1"
    for name, of in columns.items():
        frame[name] = [of(number) for number in frame["number"]]
    return frame.drop(columns="number")


def answers(given=GIVEN, question="happy", first=0) -> pd.DataFrame:
    return rows(*((f"u{first + n}", AT, question, one) for n, one in enumerate(given)), columns=COLUMNS)


def test_the_mean_the_share_of_top_answers_and_the_rate_have_their_intervals(survey_of):
    (one,) = survey_of({"least": 10}, exposures=lists(), survey=answers()).found().questions
    of_01 = [(value - 1) / 4 for value in GIVEN]
    ends = bounded_mean(12, sum(of_01), sum(value**2 for value in of_01))
    assert one.answer.value == pytest.approx(44 / 12)
    assert (one.answer.lower, one.answer.upper) == pytest.approx([1 + 4 * end for end in ends])
    assert (one.top.value, one.top.lower, one.top.upper) == pytest.approx((5 / 12, *wilson(5, 12)))
    assert (one.rate.value, one.rate.lower, one.rate.upper) == pytest.approx((12 / 40, *wilson(12, 40)))
    assert (one.answer.samples, one.top.samples, one.rate.samples) == (12, 12, 40)


def test_a_question_has_its_own_scale_and_top(survey_of):
    asks = {"least": 10, "questions": {"happy": {"scale": [0, 10], "top": 4}}}
    (one,) = survey_of(asks, exposures=lists(), survey=answers()).found().questions
    assert one.scale == (0, 10)
    assert one.top.value == pytest.approx(7 / 12)
    assert 0 <= one.answer.lower < 44 / 12 < one.answer.upper <= 10


def test_a_user_with_several_answers_counts_once(survey_of):
    more = answers().assign(request_id=[f"r{n}" for n in range(12)])
    again = more.iloc[:1].assign(request_id="r40", answer=5)
    shown = pd.concat([lists(), lists(1).assign(request_id="r40")])
    (one,) = survey_of({"least": 10}, exposures=shown, survey=pd.concat([more, again])).found().questions
    assert one.answer.value == pytest.approx((44 - 1 + 3) / 12)  # u0 answers 1 and 5
    assert one.top.value == pytest.approx(5.5 / 12)
    assert one.answer.samples == 12


@pytest.mark.parametrize("value", [1, 3, 5])
def test_equal_answers_of_everybody_have_an_interval_with_a_width(survey_of, value):
    found = survey_of({"least": 10}, exposures=lists(), survey=answers([value] * 12)).found()
    one = found.questions[0]
    assert one.answer.status is Status.OK
    assert one.answer.value == value
    assert one.answer.upper - one.answer.lower > 0.3
    assert {pair.why for pair in one.tracked} == {"all users gave the same answer"}


@pytest.mark.parametrize(("given", "why"), [([], "no answer counts"), ([3], "1 respondent, fewer than 20")])
def test_few_or_no_respondents_are_no_data_with_the_reason(survey_of, given, why):
    some = answers(given) if given else rows(("u0", AT, "happy", "often"), columns=COLUMNS)
    found = survey_of({"questions": {"happy": {}}}, exposures=lists(), survey=some).found(
        weight=True, slices=True
    )
    one = found.questions[0]
    for result in (one.answer, one.top, one.weighted):
        assert result.status is Status.NO_DATA
        assert result.value is None
        assert why in result.detail
    assert one.tracked == []
    assert all(pair.difference.status is Status.NO_DATA for pair in found.bias)


@pytest.mark.parametrize("scale", [(0, 1e15), (-1e12, 1e12), (1e9, 1e9 + 4), (0, 1e-6)])
def test_huge_and_tiny_scales_keep_their_digits(survey_of, scale):
    low, high = scale
    given = [low + (high - low) * (value - 1) / 4 for value in GIVEN]
    (one,) = (
        survey_of({"least": 10, "scale": scale}, exposures=lists(), survey=answers(given)).found().questions
    )
    assert (one.answer.value - low) / (high - low) == pytest.approx(32 / 48, abs=1e-3)
    assert low <= one.answer.lower < one.answer.value < one.answer.upper <= high


def test_an_arm_is_compared_with_the_control_by_welch(survey_of):
    shown = lists(arm=lambda n: "new" if n % 2 else "control")
    control, new = [1, 2, 3, 4, 5, 5, 2, 3, 4, 3], [3, 4, 5, 5, 5, 4, 4, 2, 5, 5]
    given = [value for pair in zip(control, new, strict=True) for value in pair]
    survey = survey_of({"least": 10}, exposures=shown, survey=answers(given), config=EXPERIMENT)
    first, second = survey.found().questions[0].arms
    moments = [Moments.of_sums(10, sum(side), sum(v * v for v in side)) for side in (control, new)]
    expected = welch(*moments)
    assert (first.arm, first.answer.value, first.difference) == ("control", 3.2, None)
    assert (second.arm, second.answer.value) == ("new", 4.2)
    assert second.difference.value == pytest.approx(1.0)
    assert (second.difference.lower, second.difference.upper) == pytest.approx(expected.interval)
    assert survey.answer("happy", "lists", "new") == second.answer


def test_arms_without_any_spread_have_no_difference_and_are_not_called_equal(survey_of):
    shown = lists(arm=lambda n: "new" if n % 2 else "control")
    survey = survey_of({"least": 10}, exposures=shown, survey=answers([1, 5] * 10), config=EXPERIMENT)
    first, second = survey.found().questions[0].arms
    assert (first.answer.value, second.answer.value) == (1, 5)
    assert second.difference.status is Status.UNDEFINED
    assert second.difference.detail == (
        "within each arm all answers are equal, so nobody knows what chance does"
    )


def test_users_of_several_arms_or_none_are_in_no_arm(survey_of):
    shown = lists(30, 2).assign(arm="control")
    shown.loc[:1, "arm"] = ["control", "new"]
    shown.loc[2:3, "arm"] = None
    survey = survey_of({"least": 10}, exposures=shown, survey=answers([3] * 30), config=EXPERIMENT)
    control, new = survey.found().questions[0].arms
    assert control.answer.samples == 28
    assert (new.answer.status, new.difference.status) == (Status.NO_DATA, Status.NO_DATA)
    assert new.difference.detail == "the arm: no answer counts"


def test_the_arm_of_the_answers_is_used_if_the_exposures_have_none(survey_of):
    some = answers().assign(arm="new")
    survey = survey_of({"least": 10}, exposures=lists(), survey=some, config=EXPERIMENT)
    assert survey.answer("happy", "lists", "new").value == pytest.approx(44 / 12)


def test_means_are_split_by_columns_of_the_answers_and_by_slices_of_the_lists(survey_of):
    shown = lists(scene=lambda n: "home" if n < 20 else "feed")
    some = answers([5] * 15 + [1] * 15).assign(channel=["mail"] * 10 + [None] * 20)
    config = {"slices": {"by": ["scene"]}}
    survey = survey_of({"least": 10, "by": ["channel"]}, exposures=shown, survey=some, config=config)
    found = {
        (one.labels["dimension"], one.labels["value"]): (one.value, one.samples)
        for one in survey.found(slices=True).questions[0].splits
    }
    assert found == {
        ("survey.channel", "(none)"): (2, 20),
        ("survey.channel", "mail"): (5, 10),
        ("scene", "home"): (4, 20),
        ("scene", "feed"): (1, 10),
    }
    assert [one.labels["dimension"] for one in survey.found().questions[0].splits] == ["survey.channel"] * 2


def test_weights_give_each_class_of_activity_its_share_of_the_users_asked(survey_of):
    light, heavy = lists(60), lists(20, 5)
    heavy = heavy.assign(user_id="h" + heavy["user_id"], request_id="h" + heavy["request_id"])
    of_light, of_heavy = answers([2] * 10), answers([5] * 10).assign(user_id=[f"hu{n}" for n in range(10)])
    survey = survey_of(
        {"least": 10}, exposures=pd.concat([light, heavy]), survey=pd.concat([of_light, of_heavy])
    )
    one = survey.found(weight=True).questions[0]
    assert one.answer.value == pytest.approx(3.5)
    assert one.weighted.value == pytest.approx((60 * 2 + 20 * 5) / 80)
    assert (
        one.weighted.detail == "worth 16 respondents of equal weight"
    )  # (10 * 6 + 10 * 2)^2 / (10 * 36 + 10 * 4)
    assert one.weighted.lower < one.weighted.value < one.weighted.upper


def test_weights_by_a_slice_are_no_data_if_a_group_has_no_respondent(survey_of):
    shown = lists(scene=lambda n: "home" if n < 30 else "feed")
    survey = survey_of({"least": 10, "weight_by": ["scene"]}, exposures=shown, survey=answers())
    one = survey.found(weight=True).questions[0]
    assert (one.weighted.status, one.weighted.value) == (Status.NO_DATA, None)
    assert one.weighted.detail == "25 % of the users asked are in groups without a respondent"


def test_weights_by_a_slice_are_those_of_the_slice(survey_of):
    shown = lists(scene=lambda n: "home" if n < 10 else "feed")
    given = answers([5] * 8 + [1] * 8).assign(user_id=[f"u{n}" for n in [*range(8), *range(20, 28)]])
    survey = survey_of({"least": 10, "weight_by": ["scene"]}, exposures=shown, survey=given)
    assert survey.found(weight=True).questions[0].weighted.value == pytest.approx((10 * 5 + 30 * 1) / 40)


def test_weighting_of_the_config_needs_no_option(survey_of):
    asks = {"least": 10, "weighting": "inverse_response"}
    assert survey_of(asks, exposures=lists(), survey=answers()).found().questions[0].weighted is not None
    assert survey_of({"least": 10}, exposures=lists(), survey=answers()).found().questions[0].weighted is None


def test_one_number_can_be_asked_for_and_what_does_not_exist_is_an_error(survey_of):
    survey = survey_of({"least": 10}, exposures=lists(), survey=answers(), config=EXPERIMENT)
    assert survey.answer("happy").value == pytest.approx(44 / 12)
    assert survey.answer("happy", "lists", "new").status is Status.NO_DATA
    for wrong in (("sad",), ("happy", "pages", "new"), ("happy", "lists", "old")):
        with pytest.raises(SurveyError, match="has no"):
            survey.answer(*wrong)


@pytest.mark.parametrize(
    ("missing", "asks", "why"),
    [("survey", None, "has no answers"), ("", {"invited": "asked"}, "no column 'asked'")],
)
def test_what_a_survey_lacks_is_named(survey_of, missing, asks, why):
    logs = {"exposures": lists(), "survey": answers()}
    logs.pop(missing, None)
    with pytest.raises(SurveyError, match=why):
        survey_of(asks, **logs)


def test_its_tables_are_gone_after_it_is_closed(survey_of, runtime):
    survey = survey_of({"least": 10, "weight_by": ["scene"]}, exposures=lists(scene=str), survey=answers())
    survey.found(weight=True, slices=True)
    survey.close()
    assert runtime.engine.cursor.execute("SHOW TABLES").fetchall() == []


def test_lists_that_are_nested_in_their_request_are_read(survey_of):
    nested = lists().assign(item_id=[["i1", "i2", "i3"]] * 39 + [[]], score=[[0.3, 0.2, 0.1]] * 39 + [[]])
    (one,) = survey_of({"least": 10}, exposures=nested, survey=answers()).found().questions
    assert one.answer.value == pytest.approx(44 / 12)
    means = {pair.series[0]: pair.why for pair in one.tracked}
    assert means["list_length"] == "all respondents have the same value"


def test_answers_long_after_the_last_list_are_of_users_that_nobody_served(survey_of):
    late = answers().assign(ts=END + pd.Timedelta(days=60))
    span = Window(
        (END + pd.Timedelta(days=59)).to_pydatetime(), (END + pd.Timedelta(days=61)).to_pydatetime()
    )
    found = survey_of({"least": 10}, span=span, exposures=lists(), survey=late).found(
        weight=True, slices=True
    )
    assert dict(found.faults) == {"of users that nobody served": 12}
    assert (found.served, found.asked) == (0, 0)
    (one,) = found.questions
    assert (one.rate.status, one.rate.detail) == (Status.NO_DATA, "nobody who was served was asked")
    assert one.answer.status is Status.NO_DATA


@pytest.mark.parametrize("window", ["1h", "1d"])
def test_users_who_were_shown_lists_only_outside_the_span_were_not_served(survey_of, window):
    """A span may begin and end within a window."""
    early, late = lists(3), lists(4)
    early = early.assign(user_id="early", request_id="e" + early["request_id"], ts=START)
    late = late.assign(user_id="late", request_id="l" + late["request_id"], ts=END - pd.Timedelta(minutes=9))
    span = Window(
        (START + pd.Timedelta(hours=1, minutes=40)).to_pydatetime(),
        (END - pd.Timedelta(minutes=10)).to_pydatetime(),
    )
    some = answers().assign(ts=START + pd.Timedelta(hours=1, minutes=50))
    survey = survey_of(
        {"least": 10, "attribution": "1h"}, span=span, exposures=pd.concat([early, lists(), late]),
        survey=some, config={"window": window},
    )  # fmt: skip
    found = survey.found(weight=True)
    assert (found.counted, found.served, found.asked) == (12, 40, 40)
    assert found.shown == Window(span.start - pd.Timedelta(hours=1).to_pytimedelta(), span.end)


def test_nobody_invited_is_no_rate(survey_of):
    found = survey_of({"invited": "asked"}, exposures=lists(asked=lambda _: False), survey=answers()).found()
    assert dict(found.faults) == {"of users who were not invited": 12}
    assert found.questions[0].rate.status is Status.NO_DATA


def test_slices_by_users_and_activity_are_those_of_the_users(survey_of):
    plans = pd.DataFrame({"user_id": [f"u{n}" for n in range(40)], "plan": ["paid"] * 10 + ["free"] * 30})
    config = {"slices": {"by": ["users.plan", "user_activity", "gone"]}}
    survey = survey_of({"least": 10}, exposures=lists(), users=plans, survey=answers([4] * 20), config=config)
    found = {
        (one.labels["dimension"], one.labels["value"]): one.samples
        for one in survey.found(slices=True).questions[0].splits
    }
    assert found == {("users.plan", "paid"): 10, ("users.plan", "free"): 10, ("user_activity", "unknown"): 20}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("sceen", "the exposures have no column 'sceen'"),
        ("users.plan", "logs.users has no column 'plan'"),
        ("new_item", "the logs lack what 'new_item' needs"),
    ],
)
def test_a_slice_that_cannot_be_made_is_named_and_gives_no_weights(survey_of, name, what):
    config = {"slices": {"by": [name]}}
    survey = survey_of({"least": 10, "weight_by": [name]}, exposures=lists(), survey=answers(), config=config)
    found = survey.found(weight=True, slices=True)
    weighted = found.questions[0].weighted
    assert (weighted.status, weighted.samples) == (Status.NO_DATA, 12)
    assert weighted.detail == f"weight_by: {what}"
    assert f"slices.by: {what}" in found.notes
    assert not any("slices.by" in one for one in survey.found().notes)


RESERVED = (
    "value", "top", "fault", "low", "high", "place", "row_number", "n", "own", "of_user", "served_user",
    "list_user", "listed_row", "named_request", "invited_user", "survey_column_0",
)  # fmt: skip


@pytest.mark.parametrize("name", RESERVED)
def test_a_column_of_the_log_may_have_any_name(survey_of, name):
    some = answers([5] * 15 + [1] * 15).assign(**{name: ["ios"] * 15 + ["web"] * 15})
    asks = {"least": 10, "by": [name], "invited": "survey"}
    found = survey_of(asks, exposures=lists(), survey=some).found()
    assert (found.counted, dict(found.faults)) == (30, {})
    splits = {one.labels["value"]: (one.value, one.samples) for one in found.questions[0].splits}
    assert splits == {"ios": (5, 15), "web": (1, 15)}


def test_an_arm_that_only_the_answers_have_may_have_any_name(survey_of):
    some = answers([5] * 15 + [1] * 15).assign(value=["new"] * 15 + ["control"] * 15)
    config = {"experiments": [{"name": "lists", "column": "value", "split": {"control": 1, "new": 1}}]}
    survey = survey_of({"least": 10}, exposures=lists(), survey=some, config=config)
    assert survey.answer("happy", "lists", "new").value == 5


def test_requests_without_a_user_count_for_nobody(survey_of):
    shown = pd.concat([lists(), lists(5).assign(user_id=None, request_id=[f"x{n}" for n in range(5)])])
    found = survey_of({"least": 10}, exposures=shown, survey=answers()).found()
    assert (found.served, found.asked, found.respondents) == (40, 40, 12)


def test_more_users_than_are_measured_are_drawn_the_same_each_time(survey_of, monkeypatch):
    monkeypatch.setattr("monitor.survey.measure.MOST_USERS", 15)
    shown, some = lists(each=2), answers([n % 5 + 1 for n in range(30)])
    first, second = (survey_of({"least": 10}, exposures=shown, survey=some).found() for _ in range(2))
    (one,) = first.questions
    assert one.answer.samples == 30
    assert {pair.correlation.n for pair in one.tracked if pair.correlation} <= {15}
    assert [pair.difference.samples for pair in first.bias] == [
        pair.difference.samples for pair in second.bias
    ]
    assert max(pair.difference.samples for pair in first.bias) == 25


def test_a_slice_of_the_weights_and_one_of_the_means_do_not_mix(survey_of):
    shown = lists(scene=lambda n: "home" if n < 20 else "feed", plan=lambda n: "paid" if n % 2 else "free")
    config = {"slices": {"by": ["scene"]}}
    asks = {"least": 10, "weight_by": ["plan"]}
    survey = survey_of(asks, exposures=shown, survey=answers([5] * 20 + [1] * 15), config=config)
    one = survey.found(weight=True, slices=True).questions[0]
    values = {split.labels["value"]: (split.value, split.samples) for split in one.splits}
    assert values == {"home": (5, 20), "feed": (1, 15)}
    assert one.weighted.value == pytest.approx((20 * (50 + 8) / 18 + 20 * (50 + 7) / 17) / 40)


def test_the_values_of_a_slice_beyond_its_budget_are_together_in_other(survey_of):
    shown = lists(scene=lambda n: f"s{n % 4}" if n < 30 else "(several)")
    config = {"slices": {"by": [], "budget": 2}}
    some = answers([n % 5 + 1 for n in range(40)]).assign(channel=[f"c{n % 4}" for n in range(40)])
    survey = survey_of({"least": 10, "by": ["channel"]}, exposures=shown, survey=some, config=config)
    found = {split.labels["value"]: split for split in survey.found().questions[0].splits}
    assert {name: split.samples for name, split in found.items()} == {"c0": 10, "c1": 10, "other": 20}
    of_other = [n % 5 + 1 for n in range(40) if n % 4 > 1]
    assert found["other"].value == pytest.approx(np.mean(of_other))


def test_a_slice_beyond_its_budget_has_one_row_of_other_values(survey_of):
    shown = lists(60, scene=lambda n: "s0" if n < 15 else "s1" if n < 28 else f"x{n % 4}")
    again = lists(6).assign(request_id=[f"again{n}" for n in range(6)], scene="s1")  # users of several scenes
    config = {"slices": {"by": ["scene"], "budget": 2}}
    some = answers([n % 5 + 1 for n in range(60)])
    survey = survey_of({"least": 10}, exposures=pd.concat([shown, again]), survey=some, config=config)
    splits = survey.found(slices=True).questions[0].splits
    values = [(split.labels["value"], split.samples) for split in splits]
    assert values == [("other", 32), ("s1", 13), ("s0", 9), ("(several)", 6)]


def test_a_value_that_is_called_as_a_group_is_told_apart(survey_of):
    channel = ["other"] * 12 + ["(none)"] * 11 + [None] * 10 + ["mail"] * 9 + ["web"] * 8 + ["app"] * 7
    some = answers([n % 5 + 1 for n in range(57)]).assign(channel=channel)
    config = {"slices": {"by": [], "budget": 4}}
    survey = survey_of({"least": 10, "by": ["channel"]}, exposures=lists(60), survey=some, config=config)
    values = [(split.labels["value"], split.samples) for split in survey.found().questions[0].splits]
    assert values == [("other", 15), ('"other"', 12), ('"(none)"', 11), ("(none)", 10), ("mail", 9)]


def test_a_value_that_is_called_several_is_told_apart(survey_of):
    some = answers([3] * 20).assign(channel=["(several)"] * 10 + ["mail"] * 10)
    again = answers([3] * 1).assign(channel="web", request_id="r0")
    both = pd.concat([some, again])
    survey = survey_of({"least": 10, "by": ["channel"]}, exposures=lists(), survey=both)
    values = {one.labels["value"]: one.samples for one in survey.found().questions[0].splits}
    assert values == {'"(several)"': 9, "(several)": 1, "mail": 10}


def test_a_user_whose_requests_all_failed_was_not_served(survey_of):
    shown = lists(status=lambda n: "timeout" if n < 5 else "ok")
    shown.loc[:4, "item_id"] = None
    found = survey_of({"least": 10}, exposures=shown, survey=answers([n % 5 + 1 for n in range(20)])).found()
    assert dict(found.faults) == {"of users that nobody served": 5}
    assert (found.served, found.respondents) == (35, 15)


def test_a_difference_is_printed_with_the_name_of_the_baseline(survey_of):
    shown = lists(arm=lambda n: "new" if n % 2 else "control")
    config = {"experiments": [{**EXPERIMENT["experiments"][0], "control": "new"}]}
    survey = survey_of({"least": 10}, exposures=shown, survey=answers([1, 5, 2, 4] * 5), config=config)
    names = [name for name, _ in splits_of(survey.found().questions[0])]
    assert names == ["lists: control", "lists: control less new", "lists: new"]
