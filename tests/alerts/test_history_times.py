"""A history that is full for three hours, as the alerts see it by the minute: one page from first to last."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from tests.alerts.timed import fired, is_one_message

BEGINS, LASTS, END = 7 * 60, 180, 13 * 60  # minutes; runs succeed for hours before it
NAMES = ("RecsysHistoryErrors", "RecsysNotRecorded", "RecsysRunsFail", "RecsysMonitorStuck")


@pytest.mark.parametrize(
    ("every", "quiet"),
    [
        pytest.param(1, 30, id="runs every minute, and for half an hour nothing has to be written"),
        pytest.param(15, 0, id="the last good run is 15 minutes old already"),
    ],
)
def test_a_history_that_is_full_for_hours_is_one_message(tmp_path: Path, every: int, quiet: int) -> None:
    fails = [BEGINS + quiet <= minute < BEGINS + LASTS for minute in range(END)]
    good = [not bad and minute % every == 0 for minute, bad in enumerate(fails)]
    failed = list(accumulate(map(int, fails)))
    last_run = list(accumulate((60 * minute * ran for minute, ran in enumerate(good)), max))
    runs = 'recsys_scheduler_runs_total{instance="m",recommender="shop",outcome='
    found = fired(
        tmp_path,
        "monitor.yaml",
        {
            'recsys_store_errors_total{instance="m",fault="full"}': failed,
            'recsys_recommender_info{instance="m",recommender="shop",owned_by=""}': [1] * END,
            f'{runs}"failed"}}': failed,
            f'{runs}"ok"}}': list(accumulate(map(int, good))),
            'recsys_last_run_timestamp_seconds{instance="m",recommender="shop"}': last_run,
            'recsys_windows_total{instance="m",recommender="shop",status="ok"}': [7] * END,
        },
        NAMES,
        range(BEGINS - 60, END),
    )
    told = {**found[""], **found["shop"]}
    assert set(told) == set(NAMES) - {"RecsysMonitorStuck"}, "a monitor without a history is not stuck"
    page = told["RecsysHistoryErrors"]
    assert page == list(range(page[0], page[-1] + 1)), "it neither resolves nor fires again in between"
    assert page[0] <= BEGINS + quiet + 10
    assert page[-1] < BEGINS + LASTS + 45, "it resolves"
    assert is_one_message(told, ("RecsysRunsFail",), by="RecsysNotRecorded")
