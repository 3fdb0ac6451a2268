"""Standings read from the few signals that are stored, against the fold over the whole past."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from sqlalchemy import func, select

from monitor.core.results import Status, Window
from monitor.history import schema
from monitor.history.read_snapshot import read_snapshot
from monitor.history.standing import Signal, fold
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import COVERAGE, NOON, put, record

_VALUE = {Signal.CLEAR: 0.9, Signal.HOLD: 0.15, Signal.FIRE: 0.1}


def result_for(name: str, signal: Signal):
    """A result of a series that leaves this signal."""
    status = {Signal.FIRE: Status.VIOLATED, Signal.CLEAR: Status.OK, Signal.HOLD: Status.OK}.get(signal)
    return replace(
        COVERAGE, labels={"by": name}, value=_VALUE.get(signal), status=status or Status(signal.name.lower())
    )


@dataclass
class Model:
    """What a store must show: of each window the signals of its series, as they were recorded last."""

    windows: dict[Window, dict[str, Signal]] = field(default_factory=dict)

    def standings(self) -> dict[str, tuple[Status, object]]:
        newest = self.windows[max(self.windows, key=lambda one: one.end)]
        folded = {
            name: fold([(one, its[name]) for one, its in sorted(self.windows.items()) if name in its])
            for name in newest
        }
        return {name: (standing.status, standing.since.start) for name, standing in folded.items()}


def shown(store: Store) -> dict[str, tuple[Status, object]]:
    series = read_snapshot(store, ["shop"], NOON).recommenders[0].series
    return {one.result.labels["by"]: (one.standing, one.since) for one in series}


def signals_of(rng: random.Random, before: Mapping[str, Signal]) -> dict[str, Signal]:
    """Signals that mostly stay as they were; series come and go."""
    signals = {
        name: before[name] if name in before and rng.random() < 0.7 else rng.choice(list(Signal))
        for name in "abcd"
        if rng.random() < 0.85
    }
    return signals or {"a": Signal.CLEAR}


def act(store: Store, model: Model, rng: random.Random, step: int) -> None:
    """A window is recorded in order, late, again, or by another definition; or the oldest are dropped."""
    kind = rng.choices(["next", "late", "again", "definition", "drop"], [10, 3, 3, 2, 1])[0]
    if kind == "drop" and len(model.windows) > 3:
        before = sorted(model.windows)[rng.randrange(1, 3)].end
        store.drop_before(before)
        model.windows = {one: its for one, its in model.windows.items() if one.end >= before}
        return
    known = sorted(model.windows)
    newest = known[-1] if known else hour(0)
    window = Window.of(newest.start + rng.randint(1, 3) * newest.length, newest.length)
    if known and kind in ("again", "definition"):
        window = rng.choice(known[-6:])
    elif known and kind == "late":
        window = Window.of(rng.choice(known[-6:]).start - newest.length, newest.length)
    signals = signals_of(rng, model.windows.get(newest, {}))
    record(
        store, window, [result_for(*one) for one in signals.items()], fingerprint=str(step),
        definition=rng.choice("12") if kind == "definition" else "1",
    )  # fmt: skip
    model.windows[window] = signals


def judge(store: Store, seed: int, steps: int) -> None:
    rng, model = random.Random(seed), Model()
    for step in range(steps):
        act(store, model, rng, step)
        if model.windows:
            assert shown(store) == model.standings(), (seed, step)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_recorded_corrected_or_dropped_the_standings_are_those_of_the_whole_past(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    with Store.open(tmp_path_factory.mktemp("signals") / "history.sqlite") as store:
        judge(store, seed, 50)


def test_the_same_on_a_database_of_either_kind(store: Store) -> None:
    judge(store, 100, 40)


def stored_signals(store: Store) -> int:
    with store.reading() as connection:
        return connection.scalar(select(func.count()).select_from(schema.signals)) or 0


def test_a_signal_that_stays_is_stored_once(store: Store) -> None:
    for number in range(20):
        put(store, [result_for("a", Signal.CLEAR), result_for("b", Signal.NO_DATA)], number)
    assert stored_signals(store) == 2
    put(store, [result_for("a", Signal.FIRE), result_for("b", Signal.NO_DATA)], 20)
    put(store, [result_for("a", Signal.FIRE), result_for("b", Signal.NO_DATA)], 21)
    assert stored_signals(store) == 4


def test_a_series_that_lives_on_keeps_its_id_when_its_first_window_is_dropped(store: Store) -> None:
    for number in range(5):
        put(store, [result_for("a", Signal.CLEAR)], number)
    put(store, [result_for("a", Signal.CLEAR), result_for("z", Signal.CLEAR)], 5)
    assert store.drop_before(hour(3).end) == 3
    assert shown(store)["a"] == (Status.OK, hour(3).start)
    assert len(list(store.results())) == 4
