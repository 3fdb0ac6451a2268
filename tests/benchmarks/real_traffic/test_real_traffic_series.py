"""The real series as hours, and the hours in which incidents strike."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real_traffic.__main__ import FOLDER
from benchmarks.real_traffic.incidents import INCIDENTS
from benchmarks.real_traffic.sweep import LEARNED, Sample, strikes
from benchmarks.real_traffic.traffic import DAY, HOUR, SERIES, Hours, Traffic, read
from monitor.core.results import Window

START = datetime(2014, 9, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", list(SERIES))
def test_a_real_series_has_its_mean_and_its_labels(name: str) -> None:
    traffic = SERIES[name]
    if not (FOLDER / f"{traffic.file}.gz").is_file():
        pytest.skip(f"the real series are not in {FOLDER}")
    hours = read(traffic, FOLDER)
    if traffic.requests is not None:
        assert np.nanmean(hours.rate) == pytest.approx(traffic.requests)
    assert np.isnan(hours.rate).mean() < 0.1
    assert len(hours.labelled) >= 3
    assert all(hours.start <= one.start < hours.start + len(hours.rate) * HOUR for one in hours.labelled)
    assert any(strikes(hours, Sample(), len(hours.rate)).values())


def test_rows_become_hours_and_a_gap_stays_a_gap(tmp_path: Path) -> None:
    rows = ["2014-09-01 00:00:00,10", "2014-09-01 00:30:00,30"]
    rows += ["2014-09-01 02:00:00,5", "2014-09-01 02:30:00,7", "2014-09-01 03:00:00,6"]
    text = "\n".join(["timestamp,value", *rows])
    (tmp_path / "taxi.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "labels.json").write_text(
        json.dumps({"taxi.csv": [["2014-09-01 01:00:00", "2014-09-01 02:00:00"]]})
    )
    hours = read(Traffic("taxi", "taxi.csv", None, ""), tmp_path)
    assert hours.start == START
    assert hours.rate.tolist() == pytest.approx([40.0, np.nan, 12.0, 12.0], nan_ok=True)
    assert hours.labelled == [Window(START + HOUR, START + 2 * HOUR)]
    scaled = read(Traffic("taxi", "taxi.csv", 100.0, ""), tmp_path)
    assert np.nanmean(scaled.rate) == pytest.approx(100.0)


def test_incidents_strike_on_ordinary_days_after_four_weeks() -> None:
    start = datetime(2014, 10, 1, tzinfo=UTC)
    labelled = [Window(start + 33 * DAY, start + 34 * DAY)]
    hours = Hours(start, np.full(60 * 24, 100.0), labelled)
    found = strikes(hours, Sample(), len(hours.rate))
    for number, struck in found.items():
        for one in struck:
            span = Window(start + number * HOUR, start + (number + one.incident.watched) * HOUR)
            assert span.start >= start + LEARNED
            assert span.end <= start + 60 * DAY
            assert hours.is_ordinary(span)
            clock = span.start.hour
            assert clock < 4 if one.incident.at_night else 8 <= clock < 20
    names = [one.incident.name for struck in found.values() for one in struck]
    assert set(names) <= set(INCIDENTS)
    scenes = [one.incident.change(one.place, 0).lost for struck in found.values() for one in struck]
    assert {"home", "detail", "search", "cart"} < set(scenes)  # and none, of the other incidents
    veterans_day = (datetime(2014, 11, 11, tzinfo=UTC) - start) // HOUR
    assert not any(veterans_day <= number < veterans_day + 24 for number in found)


def test_a_sample_strikes_a_part_of_the_same_hours() -> None:
    hours = Hours(START, np.full(60 * 24, 100.0), [])
    every, some = (set(strikes(hours, Sample(every=number), len(hours.rate))) for number in (1, 5))
    assert some < every
    assert len(every) > 3 * len(some)


def test_a_fall_is_one_percent_a_day() -> None:
    fall = INCIDENTS["requests_fall"].change
    assert fall(0, 0).requests == 1.0
    assert fall(0, 10 * 24).requests == pytest.approx(0.99**10)
    assert INCIDENTS["clicks_fall"].change(0, 24).clicks == pytest.approx(0.99)
    assert timedelta(hours=INCIDENTS["clicks_fall"].watched) == timedelta(days=10)
