"""A command that finds many files shares their index with further processes."""

from __future__ import annotations

import logging
import multiprocessing
import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import yaml

from monitor.cli import share
from monitor.cli.one_off import one_off
from monitor.config.load import load_checked
from monitor.core.redaction import keep_secret
from monitor.engines.duckdb import Spread
from monitor.settings.engine import EngineSettings
from tests.processes import exposures, land
from tests.service.test_watch import FIRST

NOW = FIRST.replace(year=FIRST.year + 1)
FILES = 40


def square(number: int) -> int:
    return number * number


def process(_: int) -> int:
    return os.getpid()


def die(number: int) -> int:
    if number == 50:
        os._exit(9)
    return number


@pytest.fixture
def spread() -> Spread:
    made = share.shared_by(2)
    assert made is not None
    return made


def test_every_item_is_worked_on_once_by_other_processes(spread: Spread) -> None:
    assert sorted(spread.apply(square, range(100))) == [number * number for number in range(100)]
    assert os.getpid() not in set(spread.apply(process, range(100)))


def test_a_process_that_dies_is_an_error_and_no_wait_without_end(spread: Spread) -> None:
    with pytest.raises(BrokenProcessPool):
        list(spread.apply(die, range(100)))


def test_no_process_is_left_when_the_command_stops(spread: Spread) -> None:
    before = set(multiprocessing.active_children())
    working = spread.apply(square, range(10_000))
    assert next(working) == 0
    assert set(multiprocessing.active_children()) > before
    working.close()
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize(
    ("settings", "processes"),
    [({"threads": 4, "workers": 3}, 3), ({"threads": 1, "workers": 3}, 1), ({"kind": "spark"}, 1)],
)
def test_a_command_uses_the_processes_that_the_config_allows(settings: dict, processes: int) -> None:
    assert share.most_processes(EngineSettings(**settings)) == processes


def test_one_process_shares_nothing() -> None:
    assert share.shared_by(1) is None


def world(folder: Path) -> Path:
    for number in range(FILES):
        land(folder / f"log/{number:02}.parquet", exposures(FIRST.replace(hour=number % 24), 3600))
    (folder / "log/broken.parquet").write_bytes(b"nothing")
    logs = {"exposures": {"path": str(folder / "log/*.parquet")}}
    config = {"engine": {"threads": 2}, "recommenders": [{"name": "shop", "window": "1h", "logs": logs}]}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder / "config.yaml"


@pytest.mark.parametrize("fewest", [10, 1000])
def test_the_index_is_that_of_one_process(
    fewest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config, (checked,) = load_checked(world(tmp_path))
    monkeypatch.setattr(share, "FEWEST", fewest)
    taken: list[int] = []
    pool = share.ProcessPoolExecutor

    def counted(*arguments: object, **further: object) -> object:
        taken.append(1)
        return pool(*arguments, **further)  # type: ignore[arg-type]

    monkeypatch.setattr(share, "ProcessPoolExecutor", counted)
    said: list[str] = []
    with caplog.at_level(logging.WARNING), one_off(config, checked, "salt") as judging:
        judging.look(NOW, said.append)
        found = judging.evaluator.source.exposures.entries
        judging.runtime.index.spread = None
        judging.evaluator.source.exposures.entries = {}
        judging.look(NOW)
        assert found == judging.evaluator.source.exposures.entries
    assert len(taken) == (1 if fewest == 10 else 0)
    assert len(found) == len(said) == FILES + 1
    assert [Path(path).name for path, one in found.items() if one.reason] == ["broken.parquet"]
    assert "workers" not in caplog.text


def test_the_reason_of_an_unreadable_file_names_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, (checked,) = load_checked(world(tmp_path))
    (tmp_path / "log/open-sesame-4711.parquet").write_bytes(b"PAR1 nothing that could be read PAR0")
    keep_secret("open-sesame-4711", "${TOKEN}")
    monkeypatch.setattr(share, "FEWEST", 10)
    with one_off(config, checked, "salt") as judging:
        judging.look(NOW)
        reasons = [one.reason for one in judging.evaluator.source.exposures.entries.values() if one.reason]
    assert len(reasons) == 2
    assert any("${TOKEN}" in reason for reason in reasons)
    assert not any("sesame" in reason for reason in reasons)
