"""A short series through the whole sweep: bands, alert rules, Prometheus, figures."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real_traffic import outcomes, peers, sweep
from benchmarks.real_traffic.__main__ import main
from benchmarks.real_traffic.draws import Change
from benchmarks.real_traffic.incidents import Bar, Incident
from benchmarks.real_traffic.outcomes import Figures
from benchmarks.real_traffic.sweep import Sample
from benchmarks.real_traffic.traffic import HOUR, SERIES, Hours
from benchmarks.scoreboard.rates import Share
from tests.conftest import need

START = datetime(2014, 9, 2, tzinfo=UTC)
LEARNED = timedelta(days=2)
NEARLY_ALL = Incident(
    "half", "nearly all requests are gone", lambda *_: Change(requests=0.02), Bar(0.99, 2, 4), watched=4,
    by="page", only_volume=True,
)  # fmt: skip


@pytest.mark.timeout(1800)
def test_a_loss_pages_in_time_and_the_rest_of_the_series_has_no_alert(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for program in ("prometheus", "promtool"):
        need(program, "prometheus")
    for module in (sweep, outcomes):
        monkeypatch.setattr(module, "LEARNED", LEARNED)
        monkeypatch.setattr(module, "INCIDENTS", {"half": NEARLY_ALL})
    monkeypatch.setattr(sweep, "SWITCHED_ON", LEARNED - 4 * HOUR)
    rate = np.full(76, 400.0)
    rate[60] = np.nan
    hours, said = Hours(START, rate, []), list[str]()
    found = sweep.sweep(SERIES["taxi-large"], hours, Sample(), said.append)

    assert found.requests[60] is None
    assert sum(one is not None for one in found.requests) == 75
    assert all(one is None for one in found.deviations[:44])
    assert found.deviations[50] is not None
    (struck,) = found.struck
    assert (struck.begins - START) // HOUR >= 56
    assert all(one is None or one < 40 for one in struck.requests)
    figures = Figures.of(found, hours)
    assert figures.outcomes[0].in_time
    assert figures.named_traffic() == Share(1, 1)
    assert not figures.pages
    assert said == ["taxi-large: week 0 of 0"]


def test_the_command_sweeps_in_processes_and_prints_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("prometheus", "promtool"):
        need(program, "prometheus")
    monkeypatch.setattr(peers, "WORK", tmp_path / "work")
    series = SERIES["exchange"]
    rows = [f"2011-07-01 {hour:02}:15:01,0.{hour + 10}" for hour in range(6)]
    (tmp_path / f"{series.file}.gz").write_bytes(
        gzip.compress("\n".join(["timestamp,value", *rows]).encode())
    )
    (tmp_path / "labels.json").write_text(json.dumps({series.file: []}))
    asked = ["--only", "exchange", "--folder", str(tmp_path), "--without-peers"]
    assert main(asked) == 0
    assert "| exchange | 0.0 | 0 |" in capsys.readouterr().out
    assert main(["--only", "twitter", "--folder", str(tmp_path)]) == 2
