"""Values inside records, by paths such as `recs[].iid` and `ab.exp`."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from monitor.core.results import Window
from monitor.logs.source import Source
from monitor.settings.logs import LogsSettings, TimeSettings
from tests.logs.conftest import NOW

HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
TS = "2026-03-01T10:00:00Z"
COLUMNS = {
    "request_id": "reqId",
    "user_id": "uid",
    "item_id": "recs[].iid",
    "position": "recs[].rank",
    "score": "recs[].pctr",
    "exp": "ab.exp",
}
LOG = [
    {
        "reqId": "r1", "uid": 1, "ts": TS, "ab": {"exp": "A"},
        "recs": [{"iid": "a", "rank": 1, "pctr": 0.5}, {"iid": "b", "rank": 2, "pctr": 0.25}],
    },
    {"reqId": "r2", "uid": 2, "ts": TS, "ab": {"exp": "B"}, "recs": []},
    {"reqId": "r3", "uid": 3, "ts": TS, "ab": None, "recs": None},
    {
        "reqId": "r4", "uid": 4, "ts": TS, "ab": {"exp": None},
        "recs": [None, {"iid": "c", "rank": 2, "pctr": None}],
    },
]  # fmt: skip
ROWS = [
    ("r1", "a", 1, 0.5, "A"),
    ("r1", "b", 2, 0.25, "A"),
    ("r2", None, None, None, "B"),
    ("r3", None, None, None, None),
    ("r4", None, None, None, None),
    ("r4", "c", 2, None, None),
]
NAMES = ["request_id", "item_id", "position", "score", "exp"]
FORMATS = ["jsonl", "parquet"]


@pytest.fixture
def log(tmp_path, engine):
    """Write lines in a format and read them: the log, with the rows of the hour as `rows` gives them."""

    def read(lines, kind="jsonl", log="exposures", name="log", **settings):
        path = tmp_path / f"{name}.{kind}"
        if kind == "parquet":
            table = lines if isinstance(lines, pa.Table) else pa.Table.from_pylist(lines)
            pq.write_table(table, path)
        else:
            path.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
        os.utime(path, (NOW.timestamp(),) * 2)
        settings = {"columns": COLUMNS, **settings}
        logs = {log: {"path": str(tmp_path / f"*.{kind}"), **settings}}
        if log != "exposures":
            logs["exposures"] = {"path": str(tmp_path / "nothing")}
        source = Source(LogsSettings.model_validate(logs), TimeSettings())
        source.logs[log].refresh(engine, NOW)
        return source

    return read


def rows(source, engine, names=NAMES):
    assert [one.reason for one in source.exposures.skipped] == []
    frame = source.load(engine, "exposures", HOUR, table="exposures").execute()
    frame = frame.astype(object).where(frame.notna(), None)
    found = [tuple(row) for row in frame[names].itertuples(index=False)]
    return sorted(found, key=lambda row: [(one is not None, one) for one in row])


def reason(source, log="exposures"):
    (entry,) = source.logs[log].skipped
    assert source.logs[log].windows() == set()
    return entry.reason


@pytest.mark.parametrize("kind", FORMATS)
def test_paths_lead_to_one_row_an_item(kind, log, engine):
    source = log(LOG, kind)
    assert rows(source, engine) == ROWS
    assert source.exposures.bad_values(HOUR) == 1, "the item without a record is counted"


@pytest.mark.parametrize("element", ["element", "item", "array", "list"])
def test_parquet_lists_are_read_whatever_their_writer_calls_their_elements(element, log, engine):
    record = pa.struct([("iid", pa.string()), ("rank", pa.int32()), ("pctr", pa.float32())])
    recs = pa.array([one["recs"] for one in LOG], pa.list_(pa.field(element, record)))
    table = pa.Table.from_pylist([{**one, "recs": None} for one in LOG])
    table = table.set_column(table.column_names.index("recs"), "recs", recs)
    assert rows(log(table, "parquet"), engine) == ROWS


def test_lists_with_a_wrapper_for_each_element_are_walked(log, engine):
    wrapped = [{**one, "recs": {"list": [{"element": rec} for rec in one["recs"] or []]}} for one in LOG]
    columns = {ours: path.replace("recs[]", "recs.list[].element") for ours, path in COLUMNS.items()}
    assert rows(log(wrapped, columns=columns), engine) == ROWS


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_whose_own_name_holds_a_dot_wins_over_the_path(kind, log, engine):
    source = log([{**one, "ab.exp": f"own {one['reqId']}"} for one in LOG], kind)
    assert {row[-1] for row in rows(source, engine)} == {f"own r{n}" for n in (1, 2, 3, 4)}


def test_a_flat_file_may_have_columns_named_like_paths(written, source_of, engine):
    frame = pd.DataFrame({"recs[].iid": ["a"], "ab.exp": ["A"], "reqId": ["r"], "uid": [1], "ts": [TS]})
    written("log.csv", frame)
    source = source_of(columns={**COLUMNS, "position": "p", "score": "s"})
    source.exposures.refresh(engine, NOW)
    assert rows(source, engine, ["item_id", "exp"]) == [("a", "A")]


@pytest.mark.parametrize("kind", FORMATS)
def test_names_in_records_may_hold_anything(kind, log, engine):
    odd = 'it\'em "x", c: <b>`é`'
    lines = [{**LOG[0], "recs": [{odd: "a", "sel;ect": 1, "meta": {"p p": 0.5}}]}]
    columns = COLUMNS | {"item_id": f"recs[].{odd}", "position": "recs[].sel;ect", "score": "recs[].meta.p p"}
    assert rows(log(lines, kind, columns=columns), engine) == [("r1", "a", 1, 0.5, "A")]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_list_of_plain_values_lies_inside_a_record(kind, log, engine):
    lines = [{**LOG[0], "out": {"items": ["a", "b"], "scores": [0.5, 0.25]}}]
    columns = {"request_id": "reqId", "user_id": "uid", "item_id": "out.items", "score": "out.scores"}
    names = ["item_id", "position", "score"]
    assert rows(log(lines, kind, columns=columns), engine, names) == [("a", 1, 0.5), ("b", 2, 0.25)]


@pytest.mark.parametrize("kind", FORMATS)
def test_further_columns_of_items_have_the_type_of_their_values(kind, log, engine):
    lines = [{**LOG[0], "recs": [{"iid": "a", "price": 3, "sold": True}, {"iid": "b", "price": 4}]}]
    columns = COLUMNS | {"price": "recs[].price", "sold": "recs[].sold"}
    source = log(lines, kind, columns=columns)
    assert rows(source, engine, ["item_id", "price", "sold"]) == [("a", 3, True), ("b", 4, None)]
    table = engine.backend.table("exposures")
    assert {name: str(table[name].type()) for name in ("price", "sold")} == {
        "price": "int64",
        "sold": "boolean",
    }
    assert source.schema("exposures")["price"] == table["price"].type()


def test_first_lines_without_the_list_do_not_hide_it(log, engine):
    failed = [{"reqId": f"f{n}", "uid": 1, "ts": TS} for n in range(30_000)]
    found = rows(log([*failed, *LOG]), engine)
    assert len(found) == 30_000 + len(ROWS)
    assert [one for one in found if one[0].startswith("r")] == ROWS


@pytest.mark.parametrize("recs", [[], None])
def test_a_file_in_which_every_request_failed_is_read(recs, log, engine):
    source = log([{**LOG[0], "recs": recs}])
    assert rows(source, engine) == [("r1", None, None, None, "A")]


def test_files_may_lack_fields_that_others_have(log, engine):
    log([{**LOG[0], "reqId": "r0", "recs": [{"iid": "z"}], "ab": {}}], name="a")
    source = log(LOG[:1], name="b")
    assert rows(source, engine) == [("r0", "z", 1, None, None), *ROWS[:2]], (
        "a place in the list is a position"
    )


@pytest.mark.parametrize("kind", FORMATS)
def test_ids_in_records_keep_their_type(kind, log, engine):
    lines = [{**LOG[0], "recs": [{"iid": 7, "rank": 1, "pctr": 1}]}]
    assert rows(log(lines, kind), engine) == [("r1", 7 if kind == "parquet" else "7", 1, 1.0, "A")]


def test_ids_that_are_numbers_in_some_lines_and_texts_in_others_are_texts(log, engine):
    lines = [{**LOG[0], "recs": [{"iid": 7}, {"iid": "x"}]}]
    assert [row[0] for row in rows(log(lines), engine, ["item_id"])] == ["7", "x"]


@pytest.mark.parametrize("kind", FORMATS)
def test_lists_of_different_lengths_are_never_matched(kind, log, engine):
    lines = [
        {"reqId": "r1", "uid": 1, "ts": TS, "items": ["a", "b"], "scores": [0.5]},
        {"reqId": "r2", "uid": 1, "ts": TS, "items": ["c"], "scores": [0.5, 0.25]},
        {"reqId": "r3", "uid": 1, "ts": TS, "items": ["d"], "scores": []},
        {"reqId": "r4", "uid": 1, "ts": TS, "items": [], "scores": [0.5]},
        {"reqId": "r5", "uid": 1, "ts": TS, "items": ["e", "f"], "scores": [0.5, 0.25]},
    ]
    columns = {"request_id": "reqId", "user_id": "uid", "item_id": "items", "score": "scores"}
    source = log(lines, kind, columns=columns)
    assert rows(source, engine, ["item_id", "score"]) == [
        (None, None), ("a", None), ("b", None), ("c", None), ("d", None), ("e", 0.5), ("f", 0.25),
    ]  # fmt: skip
    assert source.exposures.bad_values(HOUR) == 4, "a and b, c, and the score without an item"


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("column", "path", "says"),
    [
        ("item_id", "recs", "{'iid', 'pctr', 'rank'}, not an id; write item_id: recs[].iid (or "),
        ("score", "recs", "'recs' is a list of records {'iid', 'pctr', 'rank'}, not a number; write score: "),
        ("request_id", "ab", "is a record {'exp'}, not an id; write request_id: ab.exp"),
        ("ts", "ab", "is a record {'exp'}, not a time; write ts: ab.exp"),
        ("arm", "ab", "is a record {'exp'}, not a text; write arm: ab.exp"),
        ("exp", "ab", "is a record {'exp'}, not a single value; write exp: ab.exp"),
        ("item_id", "pages", "not an id"),
        ("item_id", "pages[].recs", "not an id"),
        ("item_id", "grid", "is a list of lists, not an id"),
        ("item_id", "recs.iid", "'recs' is a list of records {'iid', 'pctr', 'rank'}: write recs[].iid"),
        ("arm", "ab[].exp", "'ab' is a record {'exp'}, not a list: write it without []"),
        ("arm", "uid.exp", "'uid' is a single value (int64) and has no fields"),
        ("user_id", "recs[].iid", "is a list, not an id; each row of the exposures must be one request"),
        ("ts", "recs[].iid", "is a list, not a time; each row of the exposures must be one request"),
        ("item_id", "recs[].id", "is missing; the fields of 'recs[]' are 'iid', 'pctr', 'rank'"),
    ],
)  # fmt: skip
def test_a_record_in_place_of_a_value_is_refused_with_the_path_to_write(kind, column, path, says, log):
    recs = [{"iid": "a", "pctr": 0.5, "rank": 1}]
    line = {**LOG[0], "recs": recs, "grid": [[1], [2]], "pages": [{"n": 1, "recs": recs}]}
    plain = {"request_id": "reqId", "user_id": "uid", "item_id": "grid" if "[]" in path else "recs[].iid"}
    found = reason(log([line], kind, columns={**plain, column: path}))
    assert f"column {column}" in found
    assert says in found


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("name", "row", "says"),
    [
        ("feedback", {"item_id": ["a", "b"]}, "not an id; each row of the feedback must be one action"),
        ("feedback", {"item_id": {"iid": "a"}}, "not an id; write item_id: item_id.iid"),
        ("feedback", {"value": [1.0]}, "not a number; each row of the feedback must be one action"),
        ("feedback", {"event": {"type": "click"}}, "not a text; write event: event.type"),
        ("catalog", {"item_id": {"iid": "a"}}, "is a record {'iid'}, not an id; write item_id: item_id.iid"),
        ("catalog", {"category": [{"n": "a"}]}, "not a text or a list of texts; write category: category[].n"),  # noqa: E501
        ("catalog", {"vector": [[1.0]]}, "is a list of lists, not a list of numbers"),
        ("users", {"user_id": ["u"]}, "is a list, not an id; each row of the users must be one user"),
        ("samples", {"label": [1, 0]}, "is a list, not a number; each row of the samples must be one sample"),
        ("samples", {"score": {"p": 0.5}}, "is a record {'p'}, not a number; write score: score.p"),
    ],
)  # fmt: skip
def test_every_log_refuses_a_record_in_place_of_a_value(kind, name, row, says, log):
    whole = {
        "feedback": {"user_id": "u", "item_id": "a", "ts": TS, "event": "click"},
        "catalog": {"item_id": "a"},
        "users": {"user_id": "u"},
        "samples": {"split": "test", "score": 0.5, "label": 1},
    }[name]
    (column,) = row
    found = reason(log([{**whole, **row}], kind, log=name, columns={}), name)
    assert found.startswith(f"column {column}: {column!r} is ")
    assert says in found


@pytest.mark.parametrize("kind", FORMATS)
def test_categories_can_come_from_a_list_of_records(kind, log, engine):
    line = {"item_id": "a", "cats": [{"n": "x"}, {"n": "y"}]}
    source = log([line], kind, log="catalog", columns={"category": "cats[].n"})
    table = source.load_catalog(engine, table="catalog").execute()
    assert [list(one) for one in table["category"]] == [["x", "y"]]


def test_a_map_is_refused_as_a_value(log):
    table = pa.Table.from_pylist([{**LOG[0], "ab": None}])
    maps = pa.array([[("exp", "A")]], pa.map_(pa.string(), pa.string()))
    table = table.set_column(table.column_names.index("ab"), "ab", maps)
    assert "'ab' is a map and has no fields" in reason(log(table, "parquet"))
    assert "'ab' is a map, not a single value" in reason(
        log(table, "parquet", columns={**COLUMNS, "exp": "ab"})
    )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([LOG[0], {**LOG[0], "recs": "none"}], "'recs' is a list in some lines and a single value in others"),
        ([{**LOG[0], "recs": [{"iid": "a"}, "b"]}], "'recs[]' is a record in some lines and a single value"),
        ([{**LOG[0], "recs": [{"iid": {"x": 1}}, {"iid": 1}]}], "'recs[].iid' is a record in some lines"),
        ([{**LOG[0], "uid": {"x": 1}}, LOG[0]], "'uid' is a record in some lines and a single value"),
        ([{**LOG[0], "ab": {}}, {**LOG[0], "ab": "A"}], "'ab' is a record in some lines and a single value"),
    ],
)  # fmt: skip
def test_lines_of_different_forms_are_refused(lines, says, log):
    assert says in reason(log(lines))


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_of_one_recommender_are_picked_by_a_field(kind, log, engine):
    source = log(LOG, kind, only={"exp": "A"})
    assert rows(source, engine) == ROWS[:2]


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_cannot_be_picked_by_a_record(kind, log):
    columns = {ours: path for ours, path in COLUMNS.items() if ours != "exp"}
    found = reason(log(LOG, kind, columns=columns, only={"ab": "A"}))
    assert "column ab: 'ab' is a record {'exp'}, not a single value; write ab: ab.exp" in found


def test_rows_cannot_be_picked_by_a_list(log):
    line = {"item_id": "a", "category": ["x"]}
    found = reason(log([line], log="catalog", columns={}, only={"category": "x"}), "catalog")
    assert "column category: 'category' is a list; `only` compares single values" in found


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("recs[]", "names no field: write recs for a list of plain values, or recs[].FIELD"),
        ("a..b", "has two dots in a row"),
        ("recs[0].x", "picks one place of a list; write []"),
        ("recs[*].x", "picks one place of a list; write []"),
        ("[].x", "write [] after the name of a list"),
        ("recs[]x", "write [] after the name of a list"),
        ("recs[].", "has a dot without a name on both sides"),
        ("pages[].recs[].iid", "goes through a list inside a list"),
    ],
)  # fmt: skip
def test_a_malformed_path_is_an_error_of_the_config_with_its_place(path, says):
    with pytest.raises(ValidationError) as failed:
        LogsSettings.model_validate({"exposures": {"path": "x", "columns": {"item_id": path}}})
    (error,) = failed.value.errors()
    assert error["loc"] == ("exposures", "columns", "item_id")
    assert repr(path) in error["msg"]
    assert says in error["msg"]


@pytest.mark.parametrize("name", ["No.", "price [EUR]", "a.b", "x y", "$.x"])
def test_names_that_look_like_paths_stay_names(name):
    LogsSettings.model_validate({"exposures": {"path": "x", "columns": {"item_id": name}}})


def test_the_items_of_a_row_come_from_one_list():
    with pytest.raises(ValidationError, match="item_id reads the list 'recs' and score the list 'others'"):
        LogsSettings.model_validate(
            {"exposures": {"path": "x", "columns": {"item_id": "recs[].iid", "score": "others[].score"}}}
        )


RECS = json.dumps([{"iid": "a", "rank": 1, "pctr": 0.5}, {"iid": "b", "rank": 2, "pctr": 0.25}])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("separator", [None, ","])
def test_records_written_as_text_are_refused_as_ids(kind, separator, log):
    lines = [{"request_id": f"r{n}", "user_id": "u", "ts": TS, "item_id": RECS} for n in range(20)]
    found = reason(log(lines, kind, columns={}, list_separator=separator))
    assert "column item_id: its texts are JSON records or lists, not ids" in found
    assert "recs[].iid" in found


def test_a_list_of_ids_written_as_text_needs_its_separator(log, engine):
    lines = [{"request_id": "r", "user_id": "u", "ts": TS, "item_id": '["a", "b"]'}]
    assert "not ids" in reason(log(lines, columns={}))
    assert rows(log(lines, columns={}, list_separator=","), engine, ["item_id"]) == [("a",), ("b",)]


def test_ids_in_braces_are_accepted(log, engine):
    lines = [{"request_id": "{r-1}", "user_id": "[u]", "ts": TS, "item_id": "{3F2504E0-4F89}"}]
    assert rows(log(lines, columns={}), engine, ["item_id"]) == [("{3F2504E0-4F89}",)]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_catalog_of_records_in_texts_is_refused(kind, log):
    assert "not ids" in reason(log([{"item_id": '{"iid": "a"}'}], kind, log="catalog", columns={}), "catalog")
