"""Files that an engine alone would misread: odd names, links, times of change, first lines."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest

from monitor.core.results import Window
from tests.logs.conftest import NOW

HEADER = "request_id,user_id,ts,item_id\n"
ROW = {"request_id": "r", "user_id": "u", "ts": "2026-03-01 10:00:00", "item_id": "a"}
HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))


def csv(item):
    return f"{HEADER}r,u,2026-03-01 10:00:00,{item}\n"


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def items(source_of, engine):
    """Every item of the hour, of all files of the folder."""

    def read(pattern="*", **log):
        source = source_of(pattern, **log)
        source.exposures.refresh(engine, NOW)
        table = source.load(engine, "exposures", HOUR, table="exposures")
        found = [] if table is None else table.execute()["item_id"].fillna("").tolist()
        return sorted(found), source.exposures

    return read


@pytest.mark.parametrize("name", ["a[1].csv", "a*.csv", "a?.csv", "**.csv", "a::b.csv", "it's\n1.csv"])
def test_a_file_name_is_never_a_glob(name, written, items):
    written(name, csv("odd"))
    written("a1.csv", csv("one"))
    written("axx.csv", csv("two"))
    found, log = items()
    assert found == ["odd", "one", "two"]
    assert log.skipped == ()


def test_a_link_to_a_file_is_read_and_a_dangling_one_is_none(written, tmp_path, source_of, engine):
    target = written("elsewhere/today.csv", csv("a"))
    (tmp_path / "current.csv").symlink_to(target)
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nothing.csv")
    source = source_of("*.csv")
    source.exposures.refresh(engine, NOW)
    (entry,) = source.exposures.entries.values()
    assert (entry.rows, entry.file.modified) == (1, NOW)


def test_a_csv_with_a_blank_first_line_is_refused(written, items):
    written("a.csv", "\n" + csv("a"))
    found, log = items()
    assert found == []
    assert "line 1 is blank" in log.skipped[0].reason


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("name", ["a.csv.zst", "a.jsonl.zst"])
def test_a_truncated_zstd_file_is_skipped(name, cut, written, items):
    rows = [{**ROW, "item_id": f"{n * 7919 % 5000}"} for n in range(5000)]
    text = lines(*rows) if "json" in name else HEADER + "".join(",".join(row.values()) + "\n" for row in rows)
    packed = pa.compress(text.encode(), "zstd", asbytes=True)
    written(name, packed[: len(packed) // 2] if cut else packed)
    found, log = items()
    assert len(found) == (0 if cut else 5000)
    assert ("zstd" in log.skipped[0].reason) if cut else (log.skipped == ())


def test_a_key_of_only_the_last_lines_is_a_column(written, items, engine):
    written("a.jsonl", lines(*[{**ROW, "request_id": f"r{n}"} for n in range(25_000)], {**ROW, "score": 0.5}))
    items()
    assert engine.backend.table("exposures")["score"].sum().execute() == 0.5


def test_lines_with_hundreds_of_different_keys_are_rows(written, items):
    written("a.jsonl", lines(*[{**ROW, f"feature_{n}": n} for n in range(300)]))
    assert items()[0] == ["a"] * 300


@pytest.mark.parametrize("value", [{"a>b, c:": 1}, [{"a>b, c:": 1}], {"x": {"y ": [1]}}])
def test_an_unmapped_record_is_no_column(value, written, items, engine):
    written("a.jsonl", lines({**ROW, "more": value}))
    assert items()[0] == ["a"]
    assert "more" not in engine.backend.table("exposures").columns


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (lines({**ROW, "item_id": ["a", "b"]}, ROW), "a list in some lines and a single value in others"),
        ("1\n2\n", "not JSON objects"),
        ("{}\n", "not JSON objects"),
    ],
)
def test_lines_that_make_no_rows_say_why(text, reason, written, items):
    written("a.jsonl", text)
    found, log = items()
    assert found == []
    assert reason in log.skipped[0].reason


def test_a_log_whose_every_list_is_empty_is_read(written, items):
    written("a.jsonl", lines({**ROW, "item_id": None}, {**ROW, "request_id": "q", "item_id": None}))
    assert items()[0] == ["", ""]


def test_a_csv_may_hold_lists_in_its_fields(written, items, engine):
    head = HEADER.replace("\n", ",score,scene\n")
    written("a.csv", head + "r,u,2026-03-01 10:00:00,a|b,0.5|0.25,x|y\nq,u,2026-03-01 10:00:00,,,x\n")
    items(list_separator="|")
    frame = engine.backend.table("exposures").execute().sort_values(["request_id", "position"])
    assert frame["item_id"].fillna("").tolist() == ["", "a", "b"]
    assert frame["score"].tolist()[1:] == [0.5, 0.25]
    assert frame["position"].tolist() == [1, 1, 2]
    assert frame["scene"].tolist() == ["x", "x|y", "x|y"]


@pytest.mark.parametrize(
    ("field", "separator"),
    [
        ("a1 b2 c3", " "),
        (" a1  b2\tc3 ", " "),
        ("['a1' 'b2'  'c3']", " "),
        ("['a1', 'b2', 'c3']", ","),
        ('"[""a1"", ""b2"", ""c3""]"', ","),
        ('"a1, b2, c3"', ", "),
        ("a1;b2;c3", ";"),
    ],
)
def test_a_list_in_one_field_is_read_with_or_without_brackets_and_quotes(field, separator, written, items):
    quoted = field if field.startswith('"') else f'"{field}"'
    written("a.csv", csv(quoted))
    assert items(list_separator=separator)[0] == ["a1", "b2", "c3"]


def test_an_empty_list_in_one_field_is_a_list_without_items_and_no_bad_value(written, items):
    fields = ['"[]"', '" [ ] "', '""', '"  "', '"[1]"', "\"['']\""]
    written("a.csv", HEADER + "".join(f"r{n},u,2026-03-01 10:00:00,{one}\n" for n, one in enumerate(fields)))
    found, log = items(list_separator=",")
    assert found == [""] * 5 + ["1"]
    assert log.bad_values(HOUR) == 1  # the item without a name


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize(
    "moment",
    [
        "2026-03-01t10:00:00z",
        "2026-03-01 10:00:00,25",
        "2026-03-01T11:00:00,25+01:00",
        "1.7723592E9",
        "2026-03-01T10:00",  # Java leaves out seconds that are 0
        "2026-03-01T10:00Z",
        "2026-03-01 11:00 +0100",
        "2026-03-01 11:00:00 +0100",  # Ruby, and %z of strftime
        "2026-03-01T10:00:00 Z",
        "2026-03-01 10:00:00.25 UTC",
        "2026-03-01T10:00UTC",
    ],
)
def test_times_are_read_as_standards_and_common_writers_have_them(name, moment, written, items):
    time = moment if "E" in moment else f'"{moment}"'
    text = f"{HEADER}r,u,{time},a\n" if "csv" in name else lines({**ROW, "ts": 0}).replace(" 0,", f" {time},")
    written(name, text)
    found, log = items()
    assert (found, log.bad_values(HOUR)) == (["a"], 0)


@pytest.mark.parametrize("moment", ["20260301", "202603011000", "20260301100000", "20260301.0", "19991231"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_date_written_as_one_number_is_no_time_since_1970(name, moment, written, items, tmp_path):
    if name == "a.parquet":
        number = float(moment) if "." in moment else int(moment)
        written(name, pd.DataFrame([{**ROW, "ts": number}]))
    else:
        written(name, f"{HEADER}r,u,{moment},a\n" if "csv" in name else lines({**ROW, "ts": moment}))
    found, log = items()
    (entry,) = log.entries.values()
    assert (found, entry.unplaced, entry.future, dict(entry.buckets)) == ([], 1, 0, {})


def test_a_folder_names_the_value_also_beside_files_that_hold_it_themselves(written, items, engine):
    row = {"request_id": ["r"], "user_id": ["u"], "ts": [ROW["ts"]], "item_id": ["a"]}
    written("scene=home/1.parquet", pd.DataFrame(row))
    written("other/2.parquet", pd.DataFrame({**row, "request_id": ["q"], "scene": ["cart"]}))
    items("*/*.parquet")
    assert sorted(engine.backend.table("exposures").execute()["scene"]) == ["cart", "home"]


def test_ids_that_look_like_numbers_keep_every_digit(written, items):
    odd = ["5475173265303e23", "99999999999999999999", "0012", "9223372036854775808"]
    written("a.csv", HEADER + "".join(f"r,u,2026-03-01 10:00:00,{one}\n" for one in odd))
    written("b.jsonl", '{"request_id": 99999999999999999998, "user_id": "u", "ts": "2026-03-01 10:00:00", '
            '"item_id": 99999999999999999999}\n')  # fmt: skip
    assert items()[0] == sorted([*odd, "99999999999999999999"])


def test_a_tsv_file_is_read_by_its_ending(written, items):
    written("a.tsv", csv("a").replace(",", "\t"))
    assert items()[0] == ["a"]


def test_a_file_from_the_future_does_not_hide_the_present(written, source_of, engine):
    written("a.csv", csv("a"))
    ahead = datetime(2099, 1, 1, tzinfo=UTC)
    path = written("clock_jumped.csv", csv("b").replace("2026-03", "2098-03"), ahead)
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.watermark == HOUR.start
    assert source.exposures.windows() == {HOUR}
    assert source.exposures.entries[str(path)].future == 1
    again = source.exposures.refresh(engine, NOW + timedelta(hours=1))
    assert again.changed == ()  # and it is not read again at each look
    os.utime(path, (NOW.timestamp(),) * 2)
    assert source.exposures.refresh(engine, NOW + timedelta(hours=1)).changed == ()


def test_files_without_placed_rows_are_not_duplicates(written, source_of, engine):
    written("a.csv", csv("a").replace("2026-03-01", "someday"))
    written("b.csv", csv("b").replace("2026-03-01", "sometime"))
    written("c.csv", csv("c").replace("2026-03-01", "2030-01-01"))
    written("d.csv", csv("d").replace("2026-03-01", "2031-01-01"))
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.skipped == ()
    answers = Window.of(NOW, source.time.window)
    assert source.exposures.bad_values(answers) == 2
    future = source.load_future(engine, answers, table="future_exposures").execute()
    assert sorted(future["item_id"]) == ["c", "d"]
