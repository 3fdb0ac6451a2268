from __future__ import annotations

import errno
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from monitor.config.load import load_config
from monitor.logs.listing import list_files
from monitor.simulate import demo
from monitor.simulate.traffic import Simulator, Traffic

NOW = datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC)
SMALL = Traffic(users=40, items=60)


def exposures(folder: Path) -> pd.DataFrame:
    files = sorted((folder / "exposures").glob("*.parquet"))
    return pd.concat([pq.read_table(f).to_pandas() for f in files], ignore_index=True)


class Clock:
    """Each look moves the time on by `step`; after `looks` the demo is told to stop."""

    def __init__(self, stop: threading.Event, steps: list[float]) -> None:
        self.now, self.stop, self.steps = NOW, stop, list(steps)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=self.steps.pop(0))
        if not self.steps:
            self.stop.set()
        return self.now


def run_live(folder: Path, steps: list[float]) -> None:
    stop = threading.Event()
    demo.live(folder, stop, start=NOW, traffic=SMALL, every=0.0, clock=Clock(stop, steps))


def test_prepare_writes_a_history_without_violations_that_ends_now(tmp_path: Path) -> None:
    config = demo.prepare(tmp_path, NOW, traffic=SMALL)
    frame = exposures(tmp_path)
    assert frame.ts.min() < pd.Timestamp("2026-03-01 11:57:10")
    assert pd.Timestamp("2026-03-01 12:00:06") < frame.ts.max() < pd.Timestamp("2026-03-01 12:00:07")
    blacklist = (tmp_path / "blacklist.csv").read_text().splitlines()
    assert blacklist[0] == "item_id"
    assert len(blacklist) == 6
    catalog = set(pq.read_table(tmp_path / "catalog.parquet")["item_id"].to_pylist())
    assert set(blacklist[1:]) < catalog
    assert not frame.item_id.isin(blacklist).any()
    assert config == tmp_path / "recsys-monitor.yaml"


def test_the_traffic_of_an_earlier_demo_stays_and_goes_on(tmp_path: Path) -> None:
    demo.prepare(tmp_path, NOW, traffic=SMALL)
    before = exposures(tmp_path)
    demo.prepare(tmp_path, NOW + timedelta(minutes=10), traffic=SMALL)
    after = exposures(tmp_path)
    new = after[~after.request_id.isin(before.request_id)]
    assert len(after) == len(before) + len(new)  # nothing is lost, and no request id comes twice
    assert timedelta(0) < new.ts.min() - before.ts.max() < timedelta(seconds=2)
    assert new.ts.max() > pd.Timestamp("2026-03-01 12:10:05")
    demo.prepare(tmp_path, NOW + timedelta(hours=2), traffic=SMALL)  # the earlier traffic is too old by now
    assert exposures(tmp_path).ts.min() > pd.Timestamp("2026-03-01 13:56")


@pytest.mark.parametrize("name", ["exposures/2025-01-01.parquet", "catalog.parquet", "recsys-monitor.yaml"])
def test_a_folder_with_files_that_no_demo_wrote_is_refused_and_stays_as_it_is(
    name: str, tmp_path: Path
) -> None:
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("mine")
    with pytest.raises(demo.OtherFilesError, match=name.split("/", maxsplit=1)[0]):
        demo.prepare(tmp_path, NOW, traffic=SMALL)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]
    assert own.read_text() == "mine"


def test_a_copy_of_the_config_of_a_demo_makes_no_folder_that_of_a_demo(tmp_path: Path) -> None:
    config = demo.prepare(tmp_path / "demo", NOW, history=timedelta(seconds=1), traffic=SMALL)
    copy = tmp_path / config.name
    copy.write_text(config.read_text())
    with pytest.raises(demo.OtherFilesError, match=config.name):
        demo.prepare(tmp_path, NOW, traffic=SMALL)


def test_a_demo_goes_on_after_a_power_failure_that_left_a_file_without_rows(tmp_path: Path) -> None:
    demo.prepare(tmp_path, NOW, traffic=SMALL)
    empty = tmp_path / "exposures" / "20260301T120007.000000.parquet"
    empty.touch()
    demo.prepare(tmp_path, NOW + timedelta(seconds=10), traffic=SMALL)
    assert not empty.exists()
    assert exposures(tmp_path).ts.max() > pd.Timestamp("2026-03-01 12:00:15")


def test_a_demo_that_was_interrupted_while_it_wrote_its_history_can_be_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(demo, "write_batch", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            demo.prepare(tmp_path, NOW, traffic=SMALL)
    demo.prepare(tmp_path, NOW, traffic=SMALL)
    assert len(exposures(tmp_path)) > 0


def test_the_configs_name_existing_files_even_in_an_awkward_folder(tmp_path: Path) -> None:
    folder = tmp_path / "it's: a #folder {x} [1] ${HOME} $${y}"
    (demonstrated,) = load_config(demo.prepare(folder, NOW, traffic=SMALL)).recommenders
    logs = demonstrated.logs.named()
    assert {one.path.rsplit("/", 1)[0] for one in list_files(logs["exposures"])} == {f"{folder}/exposures"}
    assert [one.path for one in list_files(logs["catalog"])] == [f"{folder}/catalog.parquet"]
    assert Path(demonstrated.rules[0].parameters["blacklist"]).is_file()
    lengths = (demonstrated.window, demonstrated.every, demonstrated.lateness)
    assert lengths == tuple(timedelta(seconds=seconds) for seconds in (10, 2, 3))
    launch = load_config(demo.prepare_launch(folder, "http://127.0.0.1:9109"))
    assert launch.state == folder / "launch" / "state"
    recorded, replayed = (one.logs.named() for one in launch.recommenders[:2])
    for log in ("exposures", "feedback"):
        assert [one.path for one in list_files(recorded[log])] == [f"{folder}/launch/{log}.parquet"]
    answers = folder / "launch" / "replays" / "current" / "log" / "0.parquet"
    answers.parent.mkdir(parents=True)
    answers.touch()
    assert [one.path for one in list_files(replayed["exposures"])] == [str(answers)]


def test_live_leaks_one_blacklisted_item_within_the_first_half_minute(tmp_path: Path) -> None:
    demo.prepare(tmp_path, NOW, history=timedelta(seconds=10), traffic=SMALL)
    run_live(tmp_path, [2.0] * 16)
    frame = exposures(tmp_path)
    leaked = frame[frame.item_id.isin(Simulator(SMALL, demo.SEED).blacklist)]
    assert len(leaked) == 1
    assert pd.Timestamp("2026-03-01 12:00:07") <= leaked.ts.iloc[0] < pd.Timestamp("2026-03-01 12:00:37")


def test_live_leaks_again_from_time_to_time(tmp_path: Path) -> None:
    demo.prepare(tmp_path, NOW, history=timedelta(seconds=10), traffic=SMALL)
    run_live(tmp_path, [2.0] * 450)
    leaked = exposures(tmp_path).item_id.isin(Simulator(SMALL, demo.SEED).blacklist).sum()
    assert 3 <= leaked <= 11  # 900 s, between 90 and 270 s apart


def test_batches_join_without_gap_or_overlap_when_the_clock_jumps(tmp_path: Path) -> None:
    demo.prepare(tmp_path, NOW, history=timedelta(seconds=10), traffic=SMALL)
    run_live(tmp_path, [2.0, -5.0, 2.0, 2.0, 4.0, 2.0])
    names = sorted(f.name for f in (tmp_path / "exposures").glob("*.parquet"))
    assert names[1:] == ["20260301T120007.000000.parquet", "20260301T120009.000000.parquet",
                         "20260301T120012.000000.parquet"]  # fmt: skip
    assert exposures(tmp_path).duplicated(["request_id", "position"]).sum() == 0


def test_live_goes_on_once_the_disk_has_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    demo.prepare(tmp_path, NOW, history=timedelta(seconds=10), traffic=SMALL)
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(demo, "write_batch", Mock(wraps=demo.write_batch, side_effect=[full, full, DEFAULT]))
    run_live(tmp_path, [2.0] * 3)
    assert caplog.text.count("No space left on device") == 2
    names = sorted(f.name for f in (tmp_path / "exposures").glob("*.parquet"))
    assert names[1:] == ["20260301T120007.000000.parquet"]
    assert exposures(tmp_path).ts.max() > pd.Timestamp("2026-03-01 12:00:11")


def test_old_batches_are_removed(tmp_path: Path) -> None:
    demo.prepare(tmp_path, NOW, history=timedelta(seconds=10), traffic=SMALL)
    run_live(tmp_path, [600.0] * 6)
    assert len(list((tmp_path / "exposures").glob("*.parquet"))) == 3
    assert len(list((tmp_path / "feedback").glob("*.parquet"))) == 3


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    stop = threading.Event()
    broken: list[str] = []

    def read() -> None:
        while not stop.is_set():
            for path in (tmp_path / "exposures").glob("*.parquet"):
                try:
                    pq.read_metadata(path)
                except Exception as error:
                    broken.append(f"{path}: {error}")

    (tmp_path / "exposures").mkdir()
    reader = threading.Thread(target=read)
    reader.start()
    simulator = Simulator(Traffic(), 1)
    rng = np.random.default_rng(1)
    for n in range(25):
        start = NOW + timedelta(seconds=n)
        demo.write_batch(
            tmp_path, start, start + timedelta(seconds=1), rate=300, rng=rng, simulator=simulator
        )
    stop.set()
    reader.join()
    assert broken == []
    assert list((tmp_path / "exposures").glob(".*")) == []


def test_live_stops_when_asked(tmp_path: Path) -> None:
    demo.prepare(tmp_path, datetime.now(UTC), history=timedelta(seconds=1), traffic=SMALL)
    stop = threading.Event()
    thread = threading.Thread(target=demo.live, args=(tmp_path, stop), kwargs={"traffic": SMALL})
    thread.start()
    stop.set()
    thread.join(timeout=60)
    assert not thread.is_alive()
