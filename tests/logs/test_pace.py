"""How long a log may be silent, learned from simulated and from real arrivals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from monitor.logs.pace import Arrival, allowed_silence

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def files(minutes: list[int] | range, lag: timedelta = timedelta(0)) -> list[Arrival]:
    """Files that come at these minutes after the start, each with rows up to `lag` before."""
    return [(START + minute * MINUTE, START + minute * MINUTE - lag) for minute in minutes]


def pages(arrivals: list[Arrival], since: datetime) -> list[datetime]:
    """The arrivals before which the log counted as stalled: right before one, the silence is longest."""
    found = []
    for place in range(1, len(arrivals)):
        (before, newest), (after, _) = arrivals[place - 1], arrivals[place]
        if after < since or after - before <= 3 * MINUTE:
            continue
        # Every quarter of an hour of the silence, since more may be allowed later than at its beginning.
        for now in pd.date_range(before + 4 * MINUTE, after - MINUTE, freq="15min").to_pydatetime():
            allowed = allowed_silence(arrivals[:place], now, MINUTE)
            if allowed is not None and now - newest > allowed:
                found.append(after)
                break
    return found


@pytest.mark.parametrize(
    ("every", "allowed"),
    [(1, 4), (5, 16), (10, 56), (15, 61), (30, 76), (60, 106)],
    ids="by {} minutes".format,
)
def test_a_quick_log_may_miss_two_files_and_a_slow_one_may_be_45_minutes_late(
    every: int, allowed: int
) -> None:
    log = files(range(0, 2 * 24 * 60, every))
    assert allowed_silence(log, log[-1][0], MINUTE) == allowed * MINUTE
    assert allowed_silence(log, log[-1][0] + 2 * HOUR, MINUTE) == allowed * MINUTE


def test_the_age_of_rows_on_arrival_is_added() -> None:
    assert allowed_silence(files(range(600), 7 * MINUTE), START + 10 * HOUR, MINUTE) == 11 * MINUTE


def test_the_time_between_two_looks_is_added() -> None:
    assert allowed_silence(files(range(600)), START + 10 * HOUR, 10 * MINUTE) == 13 * MINUTE


@pytest.mark.parametrize("minutes", [[], [0], range(9), range(0, 20, 2)], ids=["none", "one", "few", "brief"])
def test_the_pace_of_few_files_is_unknown(minutes: list[int] | range) -> None:
    assert allowed_silence(files(minutes), START + HOUR, MINUTE) is None


def test_files_copied_at_once_give_no_pace() -> None:
    copied = [(START + number * timedelta(milliseconds=5), START - number * HOUR) for number in range(5000)]
    assert allowed_silence(copied, START + HOUR, MINUTE) is None


def test_an_old_log_copied_file_by_file_gives_no_pace() -> None:
    copied = [(START + number * MINUTE, START - DAY + number * MINUTE) for number in range(100)]
    assert allowed_silence(copied, START + 2 * HOUR, MINUTE) is None


@pytest.mark.parametrize(
    "minutes",
    [
        range(0, 14 * 24 * 60, 24 * 60),
        [day * 24 * 60 + part for day in range(14) for part in range(15)],
        [day * 24 * 60 + hour * 60 for day in range(14) for hour in range(9, 17)],
    ],
    ids=["one a day", "fifteen in a row once a day", "hourly in office hours"],
)
def test_a_mostly_silent_log_gives_no_pace(minutes: list[int] | range) -> None:
    log = files(minutes)
    assert allowed_silence(log, log[-1][0] + 3 * DAY, MINUTE) is None


def test_no_quiet_night_pages_after_the_first_and_the_day_is_still_sharp() -> None:
    by_day = range(6 * 60, 24 * 60)
    log = files([day * 24 * 60 + minute for day in range(12) for minute in by_day])
    assert pages(log, START + 2 * DAY) == []
    assert allowed_silence(log[:-600], log[-600][0], MINUTE) == 4 * MINUTE
    stopped = [one for one in log if one[0] < START + 11 * DAY]
    at_seven, at_eight = START + 11 * DAY + 7 * HOUR, START + 11 * DAY + 8 * HOUR
    assert allowed_silence(stopped, at_eight, MINUTE) == 4 * MINUTE, "it did not come back in the morning"
    assert allowed_silence(stopped, at_seven - MINUTE, MINUTE) > 6 * HOUR, "it may come back a little later"


def test_one_outage_in_two_weeks_does_not_lengthen_the_silence() -> None:
    outage = range(9 * 24 * 60 + 600, 9 * 24 * 60 + 900)
    log = files([minute for minute in range(12 * 24 * 60) if minute not in outage])
    for now in (START + 11 * DAY + 11 * HOUR, START + 9 * DAY + 16 * HOUR):
        assert allowed_silence([one for one in log if one[0] <= now], now, MINUTE) == 4 * MINUTE


def test_a_slower_pace_is_learned_from_its_second_gap() -> None:
    log = files([*range(3 * 24 * 60), 3 * 24 * 60 + 19, 3 * 24 * 60 + 39])
    assert allowed_silence(log, log[-1][0], MINUTE) >= 40 * MINUTE


@pytest.mark.parametrize("seed", range(3))
def test_bursts_do_not_page(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bursts = [hour * 60 + part for hour in range(10 * 24) for part in range(int(rng.integers(3, 20)))]
    assert allowed_silence(files(bursts), START + 10 * DAY, MINUTE), "its pace is known"
    assert pages(files(bursts), START + DAY) == []


def test_late_rows_and_files_without_newer_rows_are_no_arrivals() -> None:
    log = files(range(0, 2 * 24 * 60, 15))
    backfilled = [(at + 5 * MINUTE, newest - DAY) for at, newest in log]
    assert allowed_silence([*backfilled, *log], log[-1][0], MINUTE) == 61 * MINUTE


def test_a_real_news_log_pages_only_in_its_first_sunday_night(shared: Path) -> None:
    rows = pd.read_csv(shared / "data" / "ebnerd" / "exposures.csv.gz", usecols=["ts"], parse_dates=["ts"])
    minutes = sorted(rows["ts"].dt.tz_localize("UTC").dt.ceil("min").unique())
    log = [(at.to_pydatetime(), at.to_pydatetime()) for at in minutes]
    found = pages(log, log[0][0] + 4 * HOUR)
    assert [f"{at:%a %H:%M}" for at in found] == ["Sun 04:38"]
    assert next(b - a for (a, _), (b, _) in pairwise(log) if b == found[0]) == 234 * MINUTE
