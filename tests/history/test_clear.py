"""A bound to fire at and an easier one to clear at: what stands between them, and how it is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.core.results import Result, ResultKind, Status
from monitor.history.read_snapshot import read_snapshot
from monitor.history.standing import Signal, fold, from_last, signal_of
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import NOON, put

FAILURE = Result(
    metric="failure",
    status=Status.OK,
    definition="1",
    labels={"by": "pv"},
    value=0.015,
    threshold=0.02,
    bound="max",
    clear=0.01,
)
DEVIATION = Result(
    kind=ResultKind.BAND,
    metric="deviation",
    status=Status.OK,
    definition="1",
    labels={"metric": "failure", "by": "pv", "of": ""},
    value=-3.0,
    threshold=-4.5,
    bound="min",
    clear=-2.7,
)


def judged(value: float, like: Result = FAILURE) -> Result:
    """A result with this value, violated where it is beyond the threshold."""
    assert like.threshold is not None
    beyond = value < like.threshold if like.bound == "min" else value > like.threshold
    return replace(like, value=value, status=Status.VIOLATED if beyond else Status.OK)


@pytest.mark.parametrize(
    ("result", "signal"),
    [
        (judged(0.021), Signal.FIRE),
        (judged(0.02), Signal.HOLD),
        (judged(0.0101), Signal.HOLD),
        (judged(0.01), Signal.CLEAR),
        (replace(judged(0.015), clear=None), Signal.CLEAR),  # then it clears at the threshold
        (replace(judged(0.015), clear=0.02), Signal.CLEAR),
        (replace(judged(0.015), threshold=None), Signal.CLEAR),  # judged by nobody
        (judged(-4.6, DEVIATION), Signal.FIRE),
        (judged(-3.0, DEVIATION), Signal.HOLD),
        (judged(-2.7, DEVIATION), Signal.CLEAR),
        (judged(9.0, DEVIATION), Signal.CLEAR),  # the other side is another bound's matter
        (replace(DEVIATION, value=3.0, threshold=4.5, clear=2.7, bound="max"), Signal.HOLD),
        (replace(DEVIATION, status=Status.NO_DATA, value=None), Signal.NO_DATA),
    ],
)
def test_between_the_two_bounds_a_window_holds(result: Result, signal: Signal) -> None:
    assert signal_of(result) is signal


def test_a_series_that_flaps_at_the_edge_fires_once(store: Store) -> None:
    values = [0.005, 0.021, 0.019, 0.022, 0.015, 0.021, 0.011, 0.009, 0.015, 0.019]
    told: dict[float | None, list[Status]] = {0.01: [], None: []}
    for clear, standings in told.items():
        for number, value in enumerate(values):
            put(store, [replace(judged(value), clear=clear)], number, recommender=str(clear))
            (series,) = read_snapshot(store, [str(clear)], NOON).recommenders[0].series
            standings.append(series.standing)
    well, bad = Status.OK, Status.VIOLATED
    assert told[0.01] == [well, *[bad] * 6, well, well, well]
    assert told[None] == [well, bad, well, bad, well, bad, well, well, well, well]


def test_the_bound_to_clear_at_is_kept_and_can_be_taken_away(store: Store) -> None:
    put(store, [FAILURE])
    assert [one.result for one in store.results()] == [FAILURE]
    assert put(store, [FAILURE]).changed is False
    assert put(store, [replace(FAILURE, clear=None)]).changed is True
    assert [one.result.clear for one in store.results()] == [None]


def test_a_bound_that_is_no_number_is_an_error_and_not_kept(store: Store) -> None:
    put(store, [replace(FAILURE, clear=float("nan"))])
    (kept,) = store.results()
    assert (kept.result.status, kept.result.clear, kept.result.threshold) == (Status.ERROR, None, 0.02)
    assert "clear nan" in kept.result.detail


values = st.lists(st.integers(-40, 40).map(lambda number: number / 8), min_size=1, max_size=30)


@given(values, st.integers(8, 32), st.integers(0, 8))
def test_a_violation_ends_exactly_where_a_value_is_back_at_the_bound_to_clear_at(
    found: list[float], fire: int, easier: int
) -> None:
    like = replace(FAILURE, threshold=fire / 8, clear=(fire - easier) / 8)
    signals = [signal_of(judged(value, like)) for value in found]
    holds = False
    for number, value in enumerate(found):
        holds = value > fire / 8 or (holds and value > (fire - easier) / 8)
        standing = fold([(hour(place), signals[place]) for place in range(number + 1)])
        assert (standing.status is Status.VIOLATED) == holds
    last = {signal: hour(place).end for place, signal in enumerate(signals)}
    assert from_last(last)[0] is standing.status


@given(st.integers(-40, 40), st.integers(8, 32), st.integers(0, 8))
def test_a_lower_bound_mirrors_an_upper_bound(value: int, fire: int, easier: int) -> None:
    above = replace(FAILURE, threshold=float(fire), clear=float(fire - easier))
    below = replace(above, threshold=-float(fire), clear=-float(fire - easier), bound="min")
    assert signal_of(judged(value, above)) is signal_of(judged(-value, below))
