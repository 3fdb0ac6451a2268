"""Where the past of a window begins, and which states of it are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from monitor.anomalies.band_check import MEASURED, NAME
from monitor.anomalies.band_past import BandPast
from monitor.anomalies.band_state import BandState
from monitor.core.results import Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import HOUR, SHOP, START, a_check, hour, judge, run_of, store_hour, usual_hour

WINDOW = Window.of(datetime(2026, 11, 29, 12, tzinfo=UTC), timedelta(hours=1))


def anchor(*seasons: tuple[str, str]) -> datetime:
    given = [{"from": first, "to": last, "what": "sale"} for first, last in seasons]
    settings = BandSettings.model_validate({"seasons": given})
    return BandPast("shop", "exposure", "bands", settings).anchor(WINDOW)


def test_the_past_begins_before_a_season_even_if_another_one_ends_there() -> None:
    usual = anchor()
    assert usual == datetime(2026, 9, 28, tzinfo=UTC)
    assert anchor(("2026-10-01", "2026-10-09")) == usual
    assert anchor(("2026-09-28", "2026-10-07")) == usual - timedelta(days=10)
    summer, autumn = ("2026-08-01", "2026-09-27"), ("2026-09-28", "2026-10-07")
    assert anchor(summer, autumn) < datetime(2026, 8, 1, tzinfo=UTC)


def test_windows_of_two_lengths_in_turn_do_not_begin_the_past_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of `window` and a backfill, the history holds both lengths for the same days."""
    taken: list[Window] = []
    step = BandState.step
    monkeypatch.setattr(
        BandState, "step", lambda *given, **more: taken.append(given[2]) or step(*given, **more)
    )
    check = a_check()
    with Store.open(tmp_path / "history.db") as store:
        for number in range(40):
            store_hour(store, number, usual_hour(number))
            judge(store, check, number)
            for half in (2 * number, 2 * number + 1):
                window = Window(START + half * HOUR / 2, START + (half + 1) * HOUR / 2)
                run = CheckRun(check=MEASURED[NAME], results=usual_hour(number), outcome="ok")
                store.record_window(
                    SHOP, window, [run], fingerprint=str(half), rows=1, evaluated_at=window.end
                )
                last = run_of(check, store, window)
        assert len(taken) == len(set(taken)) == 3 * 40
        assert run_of(a_check(), store, window).results == last.results
        assert run_of(check, store, hour(39)).results == run_of(a_check(), store, hour(39)).results
