"""A history that is full for three hours, as the alerts see it by the minute: one page from first to last."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

from tests.alerts.timed import fired, is_one_message

BEGINS, LASTS, END = 7 * 60, 180, 13 * 60  # minutes; runs every minute for hours before it
QUIET = 30  # until something has to be written
NAMES = ("RecsysHistoryErrors", "RecsysRunsFail", "RecsysMonitorStuck")


def test_a_history_that_is_full_for_hours_is_one_message(tmp_path: Path) -> None:
    fails = [BEGINS + QUIET <= minute < BEGINS + LASTS for minute in range(END)]
    failed = list(accumulate(map(int, fails)))
    last_run = list(accumulate((0 if bad else 60 * minute for minute, bad in enumerate(fails)), max))
    runs = 'recsys_scheduler_runs_total{instance="m",recommender="shop",outcome='
    found = fired(
        tmp_path,
        "monitor.yaml",
        {
            'recsys_store_errors_total{instance="m",fault="full"}': failed,
            f'{runs}"failed"}}': failed,
            f'{runs}"ok"}}': [minute - bad for minute, bad in enumerate(failed)],
            'recsys_last_run_timestamp_seconds{instance="m",recommender="shop"}': last_run,
            'recsys_windows_total{instance="m",recommender="shop",status="ok"}': [7] * END,
        },
        NAMES,
        range(BEGINS - 60, END),
    )
    told = {**found[""], **found["shop"]}
    assert set(told) == set(NAMES)
    page = told["RecsysHistoryErrors"]
    assert page == list(range(page[0], page[-1] + 1)), "it neither resolves nor fires again in between"
    assert page[0] <= BEGINS + QUIET + 10
    assert page[-1] < BEGINS + LASTS + 45, "it resolves"
    assert is_one_message(told, ("RecsysRunsFail", "RecsysMonitorStuck"), by="RecsysHistoryErrors")
