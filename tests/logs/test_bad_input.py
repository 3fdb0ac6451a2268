"""Bad input gives a clear reason, is counted, and does not stop the reading of other files."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from monitor.core.results import Window
from monitor.logs.files import NOT_UTF8, UTF16
from monitor.logs.windows import completeness
from tests.logs.conftest import NOW

HEADER = "request_id,user_id,ts,item_id,score\n"
GOOD = HEADER + "r1,u1,2026-03-01 10:00:00,a,0.5\n"
HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
MANY = HEADER + "".join(f"r{i},u{i * 7 % 31},2026-03-01 10:00:00,a{i * 31},0.5\n" for i in range(5000))

SKIPPED = {
    "missing_column.csv": ("request_id,user_id,ts\nr,u,2026-03-01\n", "column item_id"),
    "not_utf8.csv": (
        HEADER.encode() + b"r,u,2026-03-01 10:00:00,\xff\xfe,0.5\n",
        f"{NOT_UTF8}: Invalid Input Error: CSV Error on Line: 2",
    ),
    "header_not_utf8.csv": (b"request_id,user_id,ts,\xff\n", f"{NOT_UTF8}: line 1: "),
    "not_utf8.jsonl": (b'{"request_id": "caf\xe9"}\n', f"{NOT_UTF8}: Invalid Input Error: Malformed JSON"),
    "utf16.csv": (GOOD.encode("utf-16"), UTF16),
    "utf16_without_a_mark.csv": (GOOD.encode("utf-16-le"), UTF16),
    "utf16.jsonl": (
        '{"request_id": "r"}\n'.encode("utf-16"),
        f"{UTF16}: Invalid Input Error: Malformed JSON",
    ),
    "line_of_20_mb.csv": (HEADER + f"r,u,2026-03-01 10:00:00,{'x' * 20_000_000},1\n", "CSV Error"),
    "ragged.csv": (GOOD + "r,u\n", "Expected Number of Columns"),
    "same_header_twice.csv": ("request_id,user_id,ts,item_id,item_id\n", "names a column twice"),
    "cut.jsonl": ('{"request_id": "r", "user_id": "u", "ts": "2026-03-01", "item_id": "a"}\n{"requ', "JSON"),
    "truncated.parquet": (b"PAR1 and nothing more", "parquet"),
    "cut.csv.gz": (gzip.compress(MANY.encode())[:-400], "cut short"),
    "not_gzip.csv.gz": (b"hello", "not compressed at all; write it again, or correct its name: Error -3"),
    "no_format.dat": (b"hello", "set format"),
    "names_in_two_cases.csv": ("request_id,user_id,ts,item_id,Score,score\n", "names a column twice"),
    "names_in_two_cases.jsonl": (
        '{"request_id": "r", "Score": 1}\n{"request_id": "r", "score": 1}\n',
        "it names a column twice: 'Score' and 'score'; rename one",
    ),
    "capitals.csv.GZ": (gzip.compress(GOOD.encode()), "its name ends in .GZ; rename it to end in .gz"),
    "old_mac.csv": (GOOD.replace("\n", "\r"), "its lines end in CR alone; write LF"),
    "mixed_ends.csv": (GOOD + GOOD.splitlines()[1] + "\r\n", "its lines end in different ways; write LF"),
    "list.json": ('[\n {"request_id": "r"}\n]\n', "a line is no whole JSON object; write one object a line"),
    "list_in_a_line.json": ('[{"request_id": "r"}]\n', "not JSON objects with keys; write one object a line"),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_an_unreadable_file_is_skipped_with_its_reason_and_the_rest_is_read(name, written, source_of, engine):
    content, reason = SKIPPED[name]
    written(name, content)
    written("good.csv", GOOD)
    source = source_of()
    source.exposures.refresh(engine, NOW + timedelta(hours=1))
    (skipped,) = source.exposures.skipped
    assert skipped.file.path.endswith(name)
    assert reason.lower() in skipped.reason.lower()
    assert len(skipped.reason) < 500
    assert source.exposures.rows(HOUR) == 1


def row_with(**columns):
    plain = {"request_id": ["r"], "user_id": ["u"], "item_id": ["a"], "ts": ["2026-03-01 10:00:00"]}
    return pd.DataFrame(plain | columns)


def test_a_parquet_file_that_names_a_column_in_two_cases_is_skipped(written, source_of, engine):
    written("names.parquet", row_with(Score=[0.5], score=[0.25]))
    source = source_of()
    source.exposures.refresh(engine, NOW + timedelta(hours=1))
    (skipped,) = source.exposures.skipped
    assert skipped.reason == "it names a column twice: 'Score' and 'score'; rename one"


@pytest.mark.parametrize(
    "further",
    [
        {"userID": ["x"], "UserId": ["y"]},
        {"score": [0.5], "given": [{"Score": 1, "score": 2}]},
        {"score_1": [1]},
    ],
)
def test_names_that_no_column_is_read_from_may_differ_in_case(written, source_of, engine, further):
    written("names.parquet", row_with(**further))
    source = source_of()
    source.exposures.refresh(engine, NOW + timedelta(hours=1))
    assert source.exposures.skipped == ()
    assert source.exposures.rows(HOUR) == 1


def test_a_skipped_file_is_tried_again_and_counts_once_it_is_whole(written, source_of, engine):
    source = source_of()
    written("a.jsonl", '{"request_id": "r", "user_id": "u", "ts": "2026-03-01 10:00:00", "it')
    source.exposures.refresh(engine, NOW)
    assert source.exposures.rows(HOUR) == 0
    written("a.jsonl", '{"request_id": "r", "user_id": "u", "ts": "2026-03-01 10:00:00", "item_id": "a"}\n')
    source.exposures.refresh(engine, NOW)
    assert source.exposures.rows(HOUR) == 1
    assert source.exposures.skipped == ()


def test_a_text_file_whose_last_line_is_just_being_written_waits(written, source_of, engine):
    written("a.csv", GOOD + "r2,u1,2026-03-01 10:00:00,a,0.", NOW)
    source = source_of()
    source.exposures.refresh(engine, NOW + timedelta(seconds=5))
    assert "still being written" in source.exposures.skipped[0].reason
    source.exposures.refresh(engine, NOW + timedelta(seconds=120))
    assert source.exposures.rows(HOUR) == 2


def test_a_reason_has_no_advice_on_options_that_the_config_does_not_have(written, source_of, engine):
    written("a.jsonl", '{"request_id": "r", "request_id": "s", "user_id": "u", "ts": 0, "item_id": "a"}\n')
    source = source_of()
    source.exposures.refresh(engine, NOW)
    (skipped,) = source.exposures.skipped
    assert 'has duplicate key "request_id"' in skipped.reason
    assert "Try" not in skipped.reason


def test_a_file_that_lost_its_only_row_held_one_row(written, source_of, engine):
    source = source_of()
    written("a.csv", GOOD)
    source.exposures.refresh(engine, NOW)
    written("a.csv", HEADER)
    source.exposures.refresh(engine, NOW)
    assert "it held 1 row when it was read last, and now 0" in source.exposures.lost(HOUR)


def test_unfinished_files_are_ignored(written, source_of, engine):
    for name in (".a.csv", "_a.csv", "a.csv.tmp", "a.csv.part"):
        written(name, "half")
    source = source_of("*")
    source.exposures.refresh(engine, NOW)
    assert source.exposures.entries == {}


def test_values_of_the_wrong_type_become_null_and_are_counted(written, source_of, engine):
    written("a.csv", GOOD + "r2,u2,2026-03-01 10:00:00,b,high\nr3,NaN,2026-03-01 10:00:00,c,1e400\n")
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.rows(HOUR) == 3
    rows = source.load(engine, "exposures", HOUR, table="exposures").execute().sort_values("request_id")
    assert rows["score"].isna().tolist()[:2] == [False, True]
    assert rows["user_id"].isna().tolist() == [False, False, True]
    assert source.exposures.bad_values(HOUR) == 3 - int(rows["score"].notna().iloc[2])


def test_rows_without_a_time_or_a_request_are_counted_and_left_out(written, source_of, engine):
    written("a.csv", GOOD + "r2,u2,yesterday,b,0.1\n,u3,2026-03-01 10:00:00,c,0.1\nr4,u4,,d,0.1\n")
    source = source_of()
    source.exposures.refresh(engine, NOW)
    (entry,) = source.exposures.entries.values()
    assert entry.unplaced == 3
    assert source.exposures.rows(HOUR) == 1
    assert source.exposures.bad_values(HOUR) == 3
    assert len(source.load(engine, "exposures", HOUR, table="exposures").execute()) == 1


@pytest.mark.parametrize("name", ["empty.csv", "empty.jsonl"])
def test_an_empty_file_has_no_rows_and_is_no_fault(name, written, source_of, engine):
    written(name, "")
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.skipped == ()
    assert source.exposures.watermark is None
    assert source.load(engine, "exposures", HOUR, table="exposures") is None


def test_a_parquet_file_without_rows_is_read(written, source_of, engine):
    frame = pd.DataFrame({"request_id": ["r"], "user_id": ["u"], "ts": [pd.Timestamp(0)], "item_id": ["a"]})
    written("a.parquet", frame.iloc[:0])
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.skipped == ()
    assert source.exposures.windows() == set()


def test_the_same_rows_in_a_second_file_are_skipped_as_a_duplicate(written, source_of, engine):
    first = written("a.csv", MANY)
    written("b.csv", "\n".join([HEADER.strip(), *reversed(MANY.splitlines()[1:])]) + "\n")
    source = source_of()
    source.exposures.refresh(engine, NOW)
    (skipped,) = source.exposures.skipped
    assert skipped.reason == f"duplicate: holds the same rows as {first}"
    assert source.exposures.rows(HOUR) == 5000


def test_a_time_ahead_of_its_file_neither_counts_nor_moves_the_watermark(written, source_of, engine):
    written("a.csv", GOOD + "r2,u2,2099-01-01 00:00:00,b,0.1\n", NOW)
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.watermark == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert source.exposures.windows() == {HOUR}
    future = source.load_future(engine, HOUR, table="future_exposures").execute()
    assert future["request_id"].tolist() == ["r2"]
    assert future["written_at"].iloc[0] == pd.Timestamp("2026-03-01 12:00:00")
    later = Window(HOUR.end, HOUR.end + HOUR.length)
    assert source.load_future(engine, later, table="future_exposures") is None
    assert len(source.load(engine, "exposures", HOUR, table="exposures").execute()) == 1


def test_a_log_that_cannot_be_listed_says_so(source_of, engine):
    source = source_of()
    source.exposures.settings = source.exposures.settings.model_copy(update={"path": "nosuch://bucket/*"})
    scan = source.exposures.refresh(engine, NOW)
    assert "nosuch" in scan.error
    assert source.exposures.error == scan.error


def test_a_window_with_an_unreadable_file_of_its_time_is_not_complete(written, source_of, engine):
    written("a.csv", GOOD + "r2,u2,2026-03-01 13:30:00,b,0.1\n", datetime(2026, 3, 1, 14, tzinfo=UTC))
    bad = written("bad.csv", "request_id\n", datetime(2026, 3, 1, 10, 30, tzinfo=UTC))
    source = source_of()
    now = datetime(2026, 3, 1, 14, tzinfo=UTC)
    source.exposures.refresh(engine, now)
    ready, why = completeness(source.exposures, HOUR, now, source.time)
    assert ready
    assert str(bad) in why
    later = Window(HOUR.end + HOUR.length, HOUR.end + 2 * HOUR.length)
    assert completeness(source.exposures, later, now, source.time) == (True, None)
