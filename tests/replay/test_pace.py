"""The rate rises to its limit and never passes it; the limits of a run look at its newest requests."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.replay.pace import Limits, Pace, least_seconds
from monitor.settings.replay import AbortSettings


def taken(pace, times):
    """How many requests were sent at each time, if all that is allowed is sent."""
    counts = []
    for at in times:
        count = pace.allowed(at)
        pace.sent(count)
        counts.append(count)
    return counts


def test_a_rate_is_reached_after_the_ramp():
    times = [n / 100 for n in range(1, 401)]
    counts = taken(Pace(rate=100, ramp_up=2, start=0.0), times)
    assert sum(counts[:100]) in (24, 25)  # the first second: 100 / 2 / 2
    assert sum(counts[100:200]) in (74, 75, 76)
    assert sum(counts[200:300]) in (99, 100, 101)


def test_without_a_ramp_the_rate_is_there_at_once():
    assert sum(taken(Pace(50, 0, 0.0), [n / 100 for n in range(1, 101)])) == 50


@pytest.mark.parametrize(("requests", "ramp_up"), [(8, 10), (200, 10), (400, 10), (100, 0)])
def test_a_dry_run_promises_no_longer_time_than_the_requests_take(requests, ramp_up):
    pace, sent, at = Pace(rate=50, ramp_up=ramp_up, start=0.0), 0, 0.0
    while sent < requests:
        at += 0.004
        sent += sum(taken(pace, [at]))
    assert least_seconds(requests, 50, ramp_up) == pytest.approx(at, abs=0.1)


def test_what_was_missed_is_not_made_up_for():
    pace = Pace(rate=100, ramp_up=0, start=0.0)
    assert pace.allowed(60.0) == 10  # a tenth of a second


def test_a_slow_rate_sends_one_at_a_time():
    assert sum(taken(Pace(0.5, 0, 0.0), [n / 10 for n in range(1, 101)])) == 5


@given(
    st.floats(0.1, 5_000),
    st.floats(0, 20),
    st.lists(st.floats(0.001, 2), min_size=2, max_size=60),
)
def test_no_span_has_more_than_its_rate_and_a_burst(rate, ramp_up, waits):
    times = [sum(waits[: n + 1]) for n in range(len(waits))]
    counts = taken(Pace(rate, ramp_up, 0.0), times)
    for first, (start, _) in enumerate(pairwise(times), 1):
        passed = times[-1] - start
        assert sum(counts[first:]) <= rate * passed + max(1, rate / 10) + 1e-6


def test_only_the_newest_requests_count():
    limits = Limits(AbortSettings(errors=0.2, of=10))
    for number in range(200):
        limits.add(failed=number % 5 == 0, seconds=1.0)  # 2 of 10
        assert limits.reason == ""
    limits.add(failed=True, seconds=1.0)
    assert limits.reason == ""
    limits.add(failed=True, seconds=1.0)
    assert limits.reason.startswith("3 of the newest 10 requests failed")


def test_a_reason_stays():
    limits = Limits(AbortSettings(errors=0.1, of=5))
    for failed in (True, True, True, True, True, False, False, False, False, False):
        limits.add(failed=failed, seconds=0.0)
    assert limits.reason == "5 of the newest 5 requests failed; the limit is 10 %"


def test_few_requests_never_abort():
    limits = Limits(AbortSettings(of=50))
    for _ in range(49):
        limits.add(failed=True, seconds=9.0)
    assert limits.reason == ""
