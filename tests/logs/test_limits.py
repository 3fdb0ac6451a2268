"""Files that are too large or too slow are skipped in time, and wait before they are tried again."""

from __future__ import annotations

import gzip
import json
import resource
import time
import zlib
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from monitor.logs.index import settings_digest
from monitor.settings.logs import LogSettings, TimeSettings
from tests.logs.conftest import NOW

MINUTE = timedelta(minutes=1)
ROW = {"request_id": "r1", "user_id": "u1", "ts": "2026-03-01T10:00:00", "item_id": "a"}
GOOD = "request_id,user_id,ts,item_id\nr1,u1,2026-03-01 10:00:00,a\n"
LATER = NOW + timedelta(hours=1)


def bomb(path: Path, content: bytes, times: int) -> None:
    """A gzip file that repeats its content many times."""
    packer = zlib.compressobj(1, wbits=31)
    with path.open("wb") as file:
        for _ in range(times):
            file.write(packer.compress(content))
        file.write(packer.flush())


@pytest.fixture
def skipped(written, source_of, engine, tmp_path):
    """The reason why a bad file is skipped; the good file beside it is read."""

    def look(name: str, **limits: object) -> str:
        written("good.csv", GOOD)
        log = source_of(**limits).exposures
        before = time.process_time()
        while log.refresh(engine, LATER).is_cut:
            pass
        look.seconds = time.process_time() - before
        assert [Path(one.file.path).name for one in log.read_entries] == ["good.csv"]
        assert engine.cursor.execute("SELECT 1").fetchall() == [(1,)]
        return log.entries[str(tmp_path / name)].reason

    return look


def test_a_gzip_bomb_without_lines_is_skipped_at_its_first_megabytes(skipped, tmp_path):
    bomb(tmp_path / "bomb.csv.gz", b"\0" * (1 << 20), 2048)  # 2 GiB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert skipped("bomb.csv.gz") == "a line is longer than 16 MiB"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
    assert skipped.seconds < 5


def test_a_gzip_bomb_of_lines_is_skipped_at_the_size_and_at_the_deadline(skipped, tmp_path):
    bomb(tmp_path / "bomb.jsonl.gz", b"\n" * (1 << 20), 2048)
    limit = "it holds more than 50.0MB; if the file is correct, raise max_file_size of this log"
    assert skipped("bomb.jsonl.gz", max_file_size="50MB") == limit
    slow = "reading it takes longer than 1s; if the file is correct, raise file_deadline of this log"
    assert skipped("bomb.jsonl.gz", file_deadline="1s") == slow
    assert skipped.seconds < 8


def test_a_plain_file_above_the_size_is_not_opened(skipped, tmp_path):
    (tmp_path / "large.csv").write_text(GOOD * 10)
    assert "max_file_size" in skipped("large.csv", max_file_size="100B")


def test_a_scan_past_its_deadline_is_interrupted(skipped, tmp_path):
    one = pd.DataFrame({name: [value] * 3_000_000 for name, value in ROW.items()})
    one["item_id"] = one.index.astype(str)
    table = pa.Table.from_pandas(one)
    with pq.ParquetWriter(tmp_path / "long.parquet", table.schema) as writer:
        for _ in range(8):
            writer.write_table(table)
    reason = skipped("long.parquet", file_deadline="1s")
    assert "raise file_deadline" in reason
    assert skipped.seconds < 8


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_a_file_with_too_many_rows_is_skipped(skipped, tmp_path, name):
    rows = pd.DataFrame([ROW] * 11)
    if name.endswith("parquet"):
        rows.to_parquet(tmp_path / name)
    elif name.endswith("csv"):
        rows.to_csv(tmp_path / name, index=False)
    else:
        rows.to_json(tmp_path / name, orient="records", lines=True)
    assert skipped(name, max_rows=10) == (
        "it holds more than 10 rows; if the file is correct, raise max_rows of this log"
    )


def wide(kind: str, path: Path, count: int = 20_000) -> None:
    keys = {f"key_{number}": number for number in range(count)}
    if kind == "one line of json":
        path.write_text(json.dumps(ROW | keys) + "\n")
    elif kind == "a key of its own in every line of json":
        path.write_text("".join(json.dumps({**ROW, key: 1}) + "\n" for key in keys))
    elif kind == "a record of json":
        path.write_text(json.dumps({**ROW, "record": keys}) + "\n")
    elif kind == "csv":
        path.write_text(
            ",".join([*ROW, *keys]) + "\n" + ",".join([*ROW.values(), *map(str, keys.values())]) + "\n"
        )
    else:
        pq.write_table(pa.table({key: [value] for key, value in (ROW | keys).items()}), path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("one line of json", "wide.jsonl"),
        ("a key of its own in every line of json", "wide.jsonl"),
        ("a record of json", "wide.jsonl"),
        ("csv", "wide.csv"),
        ("parquet", "wide.parquet"),
    ],
)
def test_a_file_with_too_many_columns_is_skipped_soon(skipped, tmp_path, kind, name):
    wide(kind, tmp_path / name)
    assert skipped(name) == (
        "it has more than 2,000 columns or keys; if the file is correct, raise max_columns of this log"
    )
    assert skipped.seconds < 10


def test_a_file_that_cannot_be_read_waits_longer_after_each_try(written, source_of, engine):
    bad = written("bad.csv", "request_id\n1\n")
    source = source_of()
    log, tried = source.exposures, []
    for minute in range(200):
        log.refresh(engine, LATER + minute * MINUTE, lambda _, at=minute: tried.append(at))
    assert tried == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    after_a_restart = source_of()
    after_a_restart.exposures.restore(log.entries.values())
    after_a_restart.exposures.refresh(engine, LATER + 200 * MINUTE, tried.append)
    assert len(tried) == 9
    written("bad.csv", GOOD, NOW + MINUTE)  # it changes
    log.refresh(engine, LATER + 200 * MINUTE)
    assert log.entries[str(bad)].reason is None


def test_a_reload_tries_again_at_once_and_so_does_a_clock_that_was_set_back(written, source_of, engine):
    written("bad.csv", "request_id\n1\n")
    log, tried = source_of().exposures, []
    log.refresh(engine, LATER, tried.append)
    log.retry()
    log.refresh(engine, LATER, tried.append)
    assert len(tried) == 2
    log.refresh(engine, LATER - timedelta(days=1), tried.append)
    assert len(tried) == 3


def test_a_new_limit_retries_only_skipped_files(written, source_of, engine):
    written("good.csv", GOOD)
    written("more.csv", GOOD + "r2,u2,2026-03-01 10:00:01,b\n")
    log = source_of(max_rows=1).exposures
    log.refresh(engine, LATER)
    raised, tried = source_of(max_rows=2).exposures, []
    raised.restore(log.entries.values())
    raised.refresh(engine, LATER, tried.append)
    assert [Path(path).name for path in tried] == ["more.csv"]
    assert len(raised.read_entries) == 2


def test_limits_do_not_change_the_digest_of_a_readable_file():
    one, other = LogSettings(path="x"), LogSettings(path="x", max_rows=3, file_deadline="3s")
    time = TimeSettings()
    assert settings_digest(one, time) == settings_digest(other, time)
    assert settings_digest(one, time, limits=True) != settings_digest(other, time, limits=True)


def test_a_file_that_is_still_being_written_is_tried_at_every_look(written, source_of, engine):
    written("now.csv", GOOD[:-1], LATER)
    log, tried = source_of().exposures, []
    for second in range(3):
        log.refresh(engine, LATER + timedelta(seconds=second), tried.append)
    assert len(tried) == 3


def test_a_good_compressed_file_of_long_and_many_lines_is_read(written, source_of, engine, tmp_path):
    long = GOOD + f"r2,u2,2026-03-01 10:00:01,{'x' * (3 << 20)}\n"
    (tmp_path / "long.csv.gz").write_bytes(gzip.compress(long.encode() + GOOD.split("\n", 1)[1].encode() * 9))
    log = source_of().exposures
    log.refresh(engine, LATER)
    assert [(one.reason, one.rows) for one in log.entries.values()] == [(None, 11)]


def test_a_growing_slow_file_does_not_block_the_others(written, source_of, engine, tmp_path):
    bomb(tmp_path / "a.jsonl.gz", b"\n" * (1 << 20), 2048)
    written("b.csv", GOOD)
    log = source_of(file_deadline="1s").exposures
    assert log.refresh(engine, LATER).is_cut
    for _ in range(2):
        with (tmp_path / "a.jsonl.gz").open("ab") as file:
            file.write(gzip.compress(b"\n"))
        assert not log.refresh(engine, LATER).is_cut
    assert [Path(one.file.path).name for one in log.read_entries] == ["b.csv"]
    (waiting,) = log.skipped
    assert waiting.file.size == (tmp_path / "a.jsonl.gz").stat().st_size  # its windows move on with it
    assert log.refresh(engine, LATER + MINUTE).is_cut  # it is tried again, and then waits twice as long
    assert log.entries[waiting.file.path].tries == 2
