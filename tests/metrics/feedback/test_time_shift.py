"""The shift of the feedback's times after which most actions join, on worlds whose shift is known."""

from __future__ import annotations

from datetime import datetime, timedelta

import ibis
import numpy as np
import pytest

from monitor.metrics.feedback.time_shift import (
    ACTIONS_OF_A_USER,
    USERS,
    JoiningShift,
    joining_shift,
    shift_text,
)

HALF_AN_HOUR = timedelta(minutes=30)
START = datetime(2026, 1, 5)


def world(
    shift: timedelta = timedelta(0),
    *,
    users: int = 300,
    organic: float = 0.1,
    mean_delay: float = 120.0,
    seed: int = 1,
) -> tuple[ibis.Table, ibis.Table]:
    """Two days of lists and clicks; the feedback's clock is wrong by `shift`."""
    draw = np.random.default_rng(seed)
    n = users * 20
    user = draw.integers(0, users, n)
    item = draw.integers(0, 500, n)
    at = np.datetime64(START) + draw.integers(0, 2 * 86_400, n).astype("timedelta64[s]")
    clicked = draw.random(n) < 0.1
    delay = draw.exponential(mean_delay, n).astype("int64").astype("timedelta64[s]")
    elsewhere = draw.random(n) < organic
    shown = {"user_id": user.astype(str), "item_id": item.astype(str), "ts": at.astype("datetime64[us]")}
    acted = {
        "user_id": user.astype(str)[clicked],
        "item_id": np.where(elsewhere, item + 1000, item).astype(str)[clicked],
        "ts": (at + delay).astype("datetime64[us]")[clicked] + np.timedelta64(shift),
    }
    return (
        ibis.memtable({name: list(values) for name, values in shown.items()}),
        ibis.memtable({name: list(values) for name, values in acted.items()}),
    )


@pytest.mark.parametrize("hours", [8, -5, 1, -1, 14, -14, 5.5, -3.5, 5.75, -9.5])
@pytest.mark.parametrize("attribution", [timedelta(minutes=10), HALF_AN_HOUR])
def test_the_shift_of_a_wrong_zone_is_found(hours, attribution):
    exposures, feedback = world(timedelta(hours=hours))
    found = joining_shift(exposures, feedback, attribution)
    assert found.shift == timedelta(hours=-hours)
    assert found.joined < 0.05
    assert found.shifted > 0.85
    assert found.helps


def test_times_that_are_right_need_no_shift():
    exposures, feedback = world()
    found = joining_shift(exposures, feedback, HALF_AN_HOUR)
    assert found.shift == timedelta(0)
    assert found.joined == found.shifted > 0.85
    assert not found.helps


def test_slow_clicks_with_a_short_attribution_do_not_look_like_a_wrong_zone():
    exposures, feedback = world(mean_delay=3 * 3600.0)
    found = joining_shift(exposures, feedback, timedelta(minutes=5))
    assert found.joined < 0.1
    assert not found.helps


def test_actions_on_items_never_shown_do_not_look_like_a_wrong_zone():
    exposures, feedback = world(organic=1.0)
    found = joining_shift(exposures, feedback, HALF_AN_HOUR)
    assert (found.joined, found.shift, found.helps) == (0.0, timedelta(0), False)


def test_a_request_id_joins_actions_of_other_users():
    exposures, feedback = world(timedelta(hours=3))
    exposures = exposures.mutate(request_id=exposures.user_id)
    feedback = feedback.mutate(request_id=feedback.user_id, user_id=ibis.null("string"))
    found = joining_shift(exposures, feedback, HALF_AN_HOUR)
    assert found.shift == timedelta(hours=-3)
    assert found.shifted > 0.85


def test_numbers_in_one_log_join_text_in_the_other():
    exposures, feedback = world(timedelta(hours=3))
    numbers = exposures.mutate(
        user_id=exposures.user_id.cast("int64"), item_id=exposures.item_id.cast("float64")
    )
    assert joining_shift(numbers, feedback, HALF_AN_HOUR) == joining_shift(exposures, feedback, HALF_AN_HOUR)


def test_no_action_gives_no_answer():
    exposures, feedback = world()
    assert joining_shift(exposures, feedback.limit(0), HALF_AN_HOUR) is None
    nameless = feedback.mutate(user_id=ibis.null("string"))
    assert joining_shift(exposures, nameless, HALF_AN_HOUR) is None


def test_the_sample_is_bounded_and_the_same_each_time():
    exposures, feedback = world(timedelta(hours=-2), users=3 * USERS)
    found = joining_shift(exposures, feedback, HALF_AN_HOUR)
    assert USERS <= found.actions <= USERS * ACTIONS_OF_A_USER
    assert found.actions < feedback.count().to_pyarrow().as_py() / 2
    assert found == joining_shift(exposures, feedback, HALF_AN_HOUR)
    assert found.shift == timedelta(hours=2)


def test_a_million_views_of_one_item_by_one_user_do_not_multiply_with_actions():
    bot = ibis.range(1_000_000).unnest().name("n").as_table()
    at = ibis.timestamp("2026-01-01") + (bot.n // 20).cast("int64").as_interval("s")
    views = bot.select(user_id=ibis.literal("bot"), item_id=ibis.literal("a"), ts=at)
    found = joining_shift(views, views, HALF_AN_HOUR)
    assert found == JoiningShift(1, 1.0, timedelta(0), 1.0)


def test_a_shift_is_written_with_its_sign():
    assert shift_text(timedelta(hours=-9, minutes=-30)) == "-9:30 h"
    assert shift_text(timedelta(hours=14)) == "+14 h"
