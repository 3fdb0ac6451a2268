"""A band or a day of drift that fails is an error, and the others are still judged."""

from __future__ import annotations

import pytest

from monitor.anomalies import band_check as bands
from monitor.anomalies import drift_check as drift
from monitor.core.results import Status
from monitor.history.errors import StoreError
from monitor.history.read_snapshot import read_snapshot
from tests.anomalies.banded import SHOP, hour
from tests.anomalies.test_schedule import gini, kept, put_hours, turn, turns_of, violated


def failing(monkeypatch, check_type, fails_at, error):
    """Make the check's judgement of the windows that start then fail."""
    judged = check_type.run

    def run(self, job):
        if job.window.start in fails_at:
            raise error
        return judged(self, job)

    monkeypatch.setattr(check_type, "run", run)


def ends(store, check):
    """How many runs of the check ended well, and how many in an error."""
    name = "recsys_check_runs_total"
    counted = {dict(labels)["status"]: number for (metric, labels), number in store.counters().items()
               if metric == name and dict(labels)["check"] == check}  # fmt: skip
    return counted.get("ok", 0), counted.get("error", 0)


def test_a_window_whose_band_fails_is_an_error_and_the_later_ones_and_the_drift_are_judged(
    store, monkeypatch, caplog
):
    put_hours(store, range(50), lambda number: 0.66 if number >= 48 else gini(number))
    with monkeypatch.context() as patch:
        failing(patch, bands.BandCheck, {hour(3).start}, ZeroDivisionError("by the fifth number"))
        assert turn(store) is False
    assert set(kept(store)) == {hour(number) for number in range(50) if number != 3}
    assert violated(store) == {49: ["few_items"]}
    assert ends(store, bands.NAME) == (49, 1)
    assert len(kept(store, drift.NAME)) == 5
    assert f"shop: check bands of {hour(3).start} failed" in caplog.text
    assert "ZeroDivisionError: by the fifth number" in caplog.text
    caplog.clear()
    assert turns_of(store) == []  # not at every turn again
    assert caplog.text == ""
    put_hours(store, [3], version="late data")
    assert turns_of(store) == list(range(3, 16))
    assert hour(3) in kept(store)


def test_a_day_whose_drift_fails_is_an_error_and_the_other_days_are_judged(store, monkeypatch, caplog):
    put_hours(store, range(75))
    failing(monkeypatch, drift.DriftCheck, {hour(24).start}, OverflowError("too far"))
    turn(store)
    days = [hour(number).start for number in (0, 6, 12, 18, 30, 36, 42, 48)]
    assert sorted(window.start for window in kept(store, drift.NAME)) == days
    assert ends(store, drift.NAME) == (8, 1)
    caplog.clear()
    turn(store)
    assert caplog.text == ""


def test_a_window_stays_due_if_the_history_fails(store, monkeypatch):
    put_hours(store, range(5))
    with monkeypatch.context() as patch:
        failing(patch, bands.BandCheck, {hour(3).start}, StoreError("the disk is full"))
        with pytest.raises(StoreError):
            turn(store)
    assert ends(store, bands.NAME) == (3, 0)
    turn(store)
    assert ends(store, bands.NAME) == (5, 0)


def test_an_incident_continues_through_a_window_whose_band_fails(store, monkeypatch):
    put_hours(store, range(41), lambda number: 0.9 if number >= 38 else gini(number))
    failing(monkeypatch, bands.BandCheck, {hour(40).start}, ZeroDivisionError())
    turn(store)
    (state,) = read_snapshot(store, [SHOP], hour(41).end).recommenders
    (cause,) = [one for one in state.series if one.result.labels.get("cause") == "few_items"]
    assert (cause.window, cause.result.status) == (hour(40), Status.ERROR)
    assert cause.standing is Status.VIOLATED
