"""What an alert goes by: worked cases, and properties over every order of recording."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.core.results import Kind, Result, ResultKind, Status, Window, worst_status
from monitor.history.read_snapshot import read_snapshot
from monitor.history.snapshot import Series
from monitor.history.standing import Signal, fold, from_last, signal_of
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import NOON, record

LETTERS = dict(zip("CHFNLEU", Signal, strict=True))  # clear, hold, fire, no data, late, error, undefined


def numbered(signals: Sequence[Signal]) -> list[tuple[Window, Signal]]:
    return [(hour(number), signal) for number, signal in enumerate(signals)]


@pytest.mark.parametrize(
    ("history", "status", "since"),
    [
        ("C", Status.OK, 0),
        ("H", Status.OK, 0),  # over the threshold, but never fired
        ("CHHC", Status.OK, 0),
        ("CCF", Status.VIOLATED, 2),
        ("FFF", Status.VIOLATED, 0),
        ("CFH", Status.VIOLATED, 1),  # still beyond the bound: no flapping
        ("CFHC", Status.OK, 3),
        ("CFHCH", Status.OK, 3),
        ("CFCF", Status.VIOLATED, 3),
        ("CFN", Status.VIOLATED, 1),  # what could not be judged does not end a violation
        ("CFLEUN", Status.VIOLATED, 1),
        ("CFNC", Status.OK, 3),
        ("CFNH", Status.VIOLATED, 1),
        ("CN", Status.NO_DATA, 1),  # and an empty window is never ok
        ("CNNLL", Status.LATE, 3),
        ("CE", Status.ERROR, 1),
        ("CEC", Status.OK, 2),
        ("NH", Status.OK, 1),
        ("CUU", Status.UNDEFINED, 1),
        ("FNCNN", Status.NO_DATA, 3),
    ],
)
def test_the_standing_of_worked_histories(history: str, status: Status, since: int) -> None:
    standing = fold(numbered([LETTERS[letter] for letter in history]))
    assert (standing.status, standing.since) == (status, hour(since))


def test_a_series_without_a_window_has_no_standing() -> None:
    with pytest.raises(ValueError, match="no standing"):
        fold([])


@given(st.lists(st.sampled_from(Signal), min_size=1, max_size=40))
def test_a_few_seeks_give_the_same_standing_as_the_whole_past(signals: list[Signal]) -> None:
    history = numbered(signals)
    last = {signal: window.end for window, signal in history}
    status, questions = from_last(last)
    answers = [
        min(
            window.end
            for window, signal in history
            if signal in question.signals and (question.after is None or window.end > question.after)
        )
        for question in questions
    ]
    standing = fold(history)
    assert (status, max(answers)) == (standing.status, standing.since.end)


@given(st.lists(st.sampled_from(Signal), min_size=2, max_size=20), st.data())
def test_a_fold_can_go_on_from_where_another_stopped(signals: list[Signal], data: st.DataObject) -> None:
    history = numbered(signals)
    cut = data.draw(st.integers(1, len(history) - 1))
    assert fold(history[cut:], fold(history[:cut])) == fold(history)


SOFT = Result(
    kind=ResultKind.RULE,
    metric="rule",
    status=Status.OK,
    definition="1",
    labels={"rule": "few_unknown", "kind": Kind.SOFT},
    value=0.02,
    lower=0.005,
    upper=0.04,
    threshold=0.01,
)
COVERED = replace(SOFT, kind=ResultKind.METRIC, metric="coverage", labels={"by": "pv"})


@pytest.mark.parametrize(
    ("result", "signal"),
    [
        (replace(SOFT, status=Status.VIOLATED, lower=0.015), Signal.FIRE),
        (SOFT, Signal.HOLD),
        (replace(SOFT, value=0.01), Signal.CLEAR),
        (replace(SOFT, value=None), Signal.CLEAR),
        (replace(SOFT, labels={"rule": "x", "kind": "numeric"}), Signal.HOLD),  # allows a rate as well
        (replace(SOFT, labels={"rule": "x", "kind": "numeric"}, threshold=0.0, value=0.0), Signal.CLEAR),
        (replace(SOFT, labels={"rule": "x", "kind": "hard"}, threshold=0.0, value=0.0), Signal.CLEAR),
        (replace(COVERED, bound="max"), Signal.HOLD),
        (replace(COVERED, bound="min"), Signal.CLEAR),
        (replace(COVERED, bound="min", threshold=0.03), Signal.HOLD),
        (COVERED, Signal.CLEAR),
        (replace(SOFT, status=Status.NO_DATA), Signal.NO_DATA),
        (replace(SOFT, status=Status.LATE), Signal.LATE),
        (replace(SOFT, status=Status.ERROR), Signal.ERROR),
        (replace(SOFT, status=Status.UNDEFINED), Signal.UNDEFINED),
    ],
)
def test_the_signal_of_one_window(result: Result, signal: Signal) -> None:
    assert signal_of(result) is signal


def test_the_worst_of_several_statuses_comes_first() -> None:
    order = [Status.VIOLATED, Status.ERROR, Status.LATE, Status.NO_DATA, Status.UNDEFINED, Status.OK]
    while order:
        assert worst_status(random.sample(order, len(order))) is order[0]
        order.pop(0)
    assert worst_status([]) is Status.NO_DATA


def result_for(signal: Signal) -> Result:
    """A soft rule's result that leaves this signal."""
    match signal:
        case Signal.CLEAR:
            return replace(SOFT, value=0.0)
        case Signal.HOLD:
            return SOFT
        case Signal.FIRE:
            return replace(SOFT, status=Status.VIOLATED, lower=0.015)
        case _:
            return replace(SOFT, status=Status(signal.name.lower()), value=None)


def shown(store: Store) -> Series:
    (series,) = read_snapshot(store, ["shop"], NOON, past=3).recommenders[0].series
    return series


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(st.tuples(st.sampled_from(Signal), st.sampled_from(Signal)), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_the_snapshot_does_not_depend_on_the_order_of_recording(
    tmp_path_factory: pytest.TempPathFactory, windows: list[tuple[Signal, Signal]], chance: random.Random
) -> None:
    """Each window is recorded with one signal and later corrected to another, in any order of windows."""
    jobs = [(number, revision) for number in range(len(windows)) for revision in (0, 1)]
    chance.shuffle(jobs)
    jobs.sort(key=lambda job: job[1])  # a correction comes after what it corrects, windows stay in disorder
    undisturbed = [(number, 1) for number in range(len(windows))]
    pictures = []
    for order in (jobs, undisturbed):
        with Store.open(tmp_path_factory.mktemp("order") / "history.sqlite") as store:
            for number, revision in order:
                record(
                    store, hour(number), [result_for(windows[number][revision])], fingerprint=str(revision)
                )
            pictures.append(shown(store))
    assert pictures[0] == pictures[1]
    standing = fold(numbered([final for _, final in windows]))
    assert (pictures[0].standing, pictures[0].since) == (standing.status, standing.since.start)


def test_the_order_does_not_matter_in_a_database_of_either_kind(url: str) -> None:
    signals = [LETTERS[letter] for letter in "CFHNCHHFEUNHLNCCNNHH"]
    order = list(range(len(signals)))
    random.Random(3).shuffle(order)
    with Store.open(url) as store:
        for number in order:
            record(store, hour(number), [result_for(signals[number])])
        for end in range(len(signals), 0, -1):
            standing = fold(numbered(signals[:end]))
            assert (shown(store).standing, shown(store).since) == (standing.status, standing.since.start)
            with store._database.writing() as connection:
                connection.exec_driver_sql(
                    "DELETE FROM windows WHERE window_end = (SELECT MAX(window_end) FROM windows)"
                )
