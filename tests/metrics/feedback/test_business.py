"""The metrics of the business: worked by hand, their states, their slices, and by brute force."""

from __future__ import annotations

import math
import random
from datetime import timedelta

import pytest
from pydantic import ValidationError

from monitor.core.results import Status
from monitor.metrics.measure import not_measured
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.feedback.business_oracle import expected
from tests.metrics.worlds import START, World, by_name, lists, results_of, shared_of

NAMES = (
    "action_rate",
    "conversion",
    "actions_per_user",
    "action_value",
    "completion",
    "top_user_share",
    "trimmed_action_rate",
)
LENGTHS = [
    {"item_id": item, "category": None, "length": length}
    for item, length in (("a", 10.0), ("b", 20.0), ("c", 0.0), ("d", None), ("e", 5.0))
]
CLICKS = MetricSettings()
PLAYS = MetricSettings(
    events={"click": EventSettings(), "play": EventSettings(length="length", complete=0.8)}
)


def did(request, items, event="click", value=None, user=None):
    """Actions on items of a list, a letter each, a second apart."""
    return [
        {
            "user_id": user,
            "item_id": item,
            "ts": START + timedelta(minutes=15, seconds=second),
            "event": event,
            "request_id": request,
            "value": value,
        }
        for second, item in enumerate(items)
    ]


def world(exposures, feedback, feedback_columns=("request_id", "value"), **more):
    more = {"catalog": LENGTHS, "catalog_columns": ("category", "length"), **more}
    return World(
        exposures, feedback=feedback, feedback_columns=feedback_columns, columns=("scene", "shelf"), **more
    )


def measured(exposures, feedback, settings=CLICKS, dimensions=None, **more):
    """(metric, by, event[, dimension, value]) -> result."""
    return by_name(results_of(world(exposures, feedback, **more), settings, dimensions, only=NAMES))


SHOWN = lists(("u", "abc"), ("u", "ab"), ("v", "abcde"), ("w", ""), (None, "ab"))
DONE = did("r0", "aab") + did("r1", "a") + did("r2", "e") + did("r4", "b") + did("r2", "z") + did("r9", "a")


def test_the_click_rates_by_page_view_user_and_exposure():
    found = measured(SHOWN, DONE)
    rates = {by: found["action_rate", by, "click"] for by in ("pv", "uv", "exposure")}
    assert (rates["pv"].value, rates["pv"].samples) == (6 / 5, 5)  # z was not shown, r9 is no list
    assert (rates["uv"].value, rates["uv"].samples) == (pytest.approx(5 / 3), 3)
    assert (rates["exposure"].value, rates["exposure"].samples) == (6 / 12, 12)
    alone = "1 of 5 requests have no user; each counts as a user of its own in the interval"
    assert rates["pv"].detail == rates["exposure"].detail == alone
    assert rates["uv"].detail == "left out: 1 of 5 requests without a user"


def test_users_are_the_units_of_the_interval_of_a_rate():
    found = measured(SHOWN, DONE)["action_rate", "exposure", "click"]
    # clicks and exposures of u, v and the request without a user; w was shown nothing
    pairs, ratio = [(4, 5), (1, 5), (1, 2)], 0.5
    squares = sum((x - ratio * y) ** 2 for x, y in pairs)
    half = 1.959963984540054 * math.sqrt(3 / 2 * squares) / 12
    assert (found.lower, found.upper) == pytest.approx((max(0, ratio - half), ratio + half))


def test_conversion_actions_per_user_and_top_user_share():
    found = measured(SHOWN, DONE)
    conversion = found["conversion", "", "click"]
    assert (conversion.value, conversion.samples) == (pytest.approx(2 / 3), 3)
    assert (found["actions_per_user", "", "click"].value, found["actions_per_user", "", "click"].samples) == (
        5 / 2,
        2,
    )
    share = found["top_user_share", "top_user", "click"]
    assert (share.value, share.samples, share.lower) == (4 / 5, 5, None)
    assert share.detail == "left out: 1 of 6 actions without a user"


def test_an_action_logged_twice_counts_twice_and_a_rate_may_pass_1():
    found = measured(lists(("u", "a"), ("v", "a")), did("r0", "a") * 3)
    assert found["action_rate", "exposure", "click"].value == 3 / 2
    assert found["conversion", "", "click"].value == 1 / 2


def test_a_robot_that_clicks_everything_is_visible_and_trimmed():
    honest = [(f"user {n:03}", "abcde") for n in range(200)]
    shown = lists(*honest, ("machine", "abcde"), ("another", "abcde"))
    done = [one for n in range(0, 200, 2) for one in did(f"r{n}", "a")]
    done += did("r200", "abcde" * 40) + did("r201", "abcde" * 20)
    found = measured(shown, done, MetricSettings(trim=0.02))
    assert found["action_rate", "exposure", "click"].value == pytest.approx(400 / 1010)
    # 102 users with an action: the top 1 % are two, and so are 2 % of them rounded up to three
    assert found["top_user_share", "top_user", "click"].value == 200 / 400
    assert found["top_user_share", "top_1_percent", "click"].value == 300 / 400
    trimmed = found["trimmed_action_rate", "", "click"]
    assert (trimmed.value, trimmed.samples) == (pytest.approx(99 / 995), 995)
    assert trimmed.detail == "left out: 3 of 102 users with an action"


def test_of_two_users_one_is_trimmed_and_of_one_none():
    two = measured(lists(("u", "ab"), ("v", "abcd")), did("r0", "a") + did("r1", "a"))
    assert two["trimmed_action_rate", "", "click"].value == 1 / 4  # a tie: u goes, the smaller id
    one = measured(lists(("u", "ab"), ("v", "abcd")), did("r0", "a"))
    assert one["trimmed_action_rate", "", "click"].value == pytest.approx(1 / 6)
    assert one["trimmed_action_rate", "", "click"].detail == ""


def test_rounding_does_not_change_the_number_of_trimmed_users():
    shown = lists(*((f"u{n:03}", "a") for n in range(100)))
    done = [one for n in range(100) for one in did(f"r{n}", "a")]
    found = measured(shown, done, MetricSettings(trim=0.07))  # 0.07 * 100 is 7.000000000000001
    assert found["trimmed_action_rate", "", "click"].samples == 93


def test_without_actions_a_rate_is_0_with_an_interval_from_the_number_of_users():
    found = measured(lists(("u", "abcde"), ("v", "abcde")), [])
    for by, below in (("pv", 2), ("uv", 2), ("exposure", 10)):
        rate = found["action_rate", by, "click"]
        assert (rate.value, rate.lower) == (0, 0)
        assert rate.upper == pytest.approx(0.657620 * 2 / below, rel=1e-5)  # Wilson's bound of 0 of 2
    assert found["conversion", "", "click"].value == 0
    for metric, by in (("actions_per_user", ""), ("top_user_share", "top_user")):
        assert found[metric, by, "click"].status is Status.NO_DATA


def test_each_status_has_its_detail():
    def said(found):
        return {
            (metric, by): result.detail for (metric, by, event), result in found.items() if event != "play"
        }

    nothing = said(measured([], [], PLAYS))
    assert nothing["action_rate", "pv"] == nothing["action_value", "sum"] == "the window holds no requests"
    assert nothing["conversion", ""] == "the window holds no requests"
    nobody = measured(lists((None, "ab")), did("r0", "a"))
    assert nobody["action_rate", "pv", "click"].value == 1
    assert nobody["action_rate", "pv", "click"].lower is None  # one unit says nothing of the spread
    assert (
        said(nobody)["conversion", ""] == said(nobody)["action_rate", "uv"] == "no request has a known user"
    )
    assert said(nobody)["top_user_share", "top_user"] == "no known user acted"
    assert said(nobody)["action_value", "sum"] == "none of 1 actions has a finite value"
    empty = measured(lists(("u", "")), [])
    assert empty["action_rate", "pv", "click"].value == 0
    assert said(empty)["action_rate", "exposure"] == said(empty)["trimmed_action_rate", ""]
    assert empty["action_rate", "exposure", "click"].status is Status.NO_DATA


def test_missing_values_lengths_or_feedback_are_named():
    bare = world(lists(("u", "a")), [], feedback_columns=("request_id",))
    lacking = not_measured(shared_of(bare), PLAYS)
    assert lacking["action_value"] == lacking["completion"] == "needs the column value of the log feedback"
    full = not_measured(shared_of(world(lists(("u", "a")), [])), CLICKS)
    assert full["completion"] == "needs a length in one of metrics.events"
    short = world(lists(("u", "a")), did("r0", "a"), catalog_columns=("category",))
    assert not_measured(shared_of(short), PLAYS)["completion"] == "needs the column length of the log catalog"
    assert {one.status for one in results_of(short, PLAYS, only=("action_rate",))} == {Status.OK}
    without = not_measured(shared_of(World(lists(("u", "a")))), CLICKS)
    assert without["action_rates"] == without["busy_users"] == "needs the log feedback"


@pytest.mark.parametrize("trim", [0, 0.51, -0.1])
def test_trim_must_lie_between_0_and_a_half(trim):
    with pytest.raises(ValidationError):
        MetricSettings(trim=trim)


def test_a_further_event_does_not_change_the_series_of_the_others():
    one = measured(SHOWN, DONE)["action_rate", "pv", "click"]
    assert measured(SHOWN, DONE, PLAYS)["action_rate", "pv", "click"] == one


USERS = ["u", "v'", "w", "x", None, "<y>"]
VALUES = [None, 0.0, 1.0, 4.0, 8.0, 20.0, -3.0, math.nan, math.inf]


def some_world(dice):
    """Random lists in two scenes, some items shown twice, and actions on them and on others."""
    rows, actions = [], []
    for number in range(dice.choice([0, 1, 2, 8, 25])):
        base = {
            "request_id": f"r{number}",
            "user_id": dice.choice(USERS[: dice.choice([1, 6])]),
            "ts": START + timedelta(minutes=dice.randrange(10)),
            "scene": dice.choice(["home", "feed"]),
        }
        shown = [dice.choice("abcde") for _ in range(dice.randrange(5))]
        rows += [{**base, "item_id": item} for item in shown or [None]]
        for item in dice.choices("abcdez", k=dice.choice([0, 0, 1, 3, 9])):
            event = dice.choice(["click", "play", "scroll"])
            actions.append((f"r{number}", item, event, dice.choice(VALUES)))
    return rows, actions


@pytest.mark.parametrize("seed", range(25))
def test_random_windows_agree_with_the_definitions_overall_and_by_slice(seed):
    dice = random.Random(seed)
    rows, actions = some_world(dice)
    settings = PLAYS.model_copy(update={"trim": dice.choice([0.01, 0.3, 0.5])})
    feedback = [
        {
            "user_id": None,
            "item_id": item,
            "event": event,
            "request_id": request,
            "value": value,
            # each of its own time, so that none is the same action logged again
            "ts": START + timedelta(minutes=15, seconds=second),
        }
        for second, (request, item, event, value) in enumerate(actions)
    ]
    found = measured(rows, feedback, settings, {"scene": "scene"})
    assert not [result for result in found.values() if result.status is Status.ERROR]
    for scene in (None, "home", "feed"):
        own = [row for row in rows if scene in (None, row["scene"])]
        if scene is not None and not own:
            continue
        held = {(row["request_id"], row["item_id"]) for row in own}
        wanted = expected(own, [one for one in actions if one[:2] in held], settings, LENGTHS)
        where = () if scene is None else ("scene", scene)
        assert_same({key[:3]: one for key, one in found.items() if key[3:] == where}, wanted)


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for key, want in wanted.items():
        result = found[key]
        if isinstance(want, str):
            assert (key, result.status.value, result.value) == (key, want, None)
            assert result.detail
            continue
        _, value, samples, interval = want
        assert (key, result.status, result.samples) == (key, Status.OK, samples)
        assert result.value == pytest.approx(value, rel=1e-9, abs=1e-12), key
        if interval is None:
            assert (key, result.lower, result.upper) == (key, None, None)
        else:
            assert (result.lower, result.upper) == pytest.approx(tuple(interval), rel=1e-6, abs=1e-7), key
