"""`init` reports what it cannot read or find, and leaves a TODO."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re

import pandas as pd
import pytest

from monitor.config.init.profile import CannotProfile
from monitor.config.init.wizard import write_config
from monitor.config.load import load_config
from tests.config.exposure_logs import frame, nested


def test_a_column_whose_values_contradict_its_name_is_not_used(init, tmp_path):
    rows = frame().rename(columns={"score": "confidence"})
    rows["timestamp"] = "yesterday"
    rows["rank"] = "first"
    rows["model_score"] = "high"
    rows.to_csv(tmp_path / "log.csv", index=False)
    columns = init(tmp_path / "log.csv")[0].logs.exposures.columns
    assert (columns["ts"], columns["position"], columns["score"]) == ("ts", "position", "confidence")


@pytest.mark.parametrize("position", [None, float("nan"), "top", 0.5], ids=str)
def test_positions_that_cannot_be_read_are_no_positions(init, tmp_path, position):
    frame(60).assign(position=position).to_parquet(tmp_path / "log.parquet")
    settings, _, written = init(tmp_path / "log.parquet")
    assert "position" not in settings.logs.exposures.columns
    assert "disable: [position_gaps]} # the longest list has 5; no position is logged" in written.text
    assert "# - pack: order # needs lists of two items or more that have positions and scores" in written.text


@pytest.mark.parametrize("column", ["request_id", "user_id", "ts", "item_id"])
def test_a_missing_column_is_a_todo_with_advice(tmp_path, column):
    keep = [one for one in ("request_id", "user_id", "ts", "item_id") if one != column]
    rows = frame(40)[keep]
    rows = rows.assign(request_id=1) if column == "ts" else rows
    rows.to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    assert [one for one in written.missing if f"({column})" in one]
    assert f"{column}: TODO # TODO" in written.text
    (tmp_path / "config.yaml").write_text(written.text)
    assert load_config(tmp_path / "config.yaml").recommenders[0].logs.exposures.columns[column] == "TODO"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "must name at least one file or glob, and none may be empty"),
        ("https://host/log.parquet?token=hidden", "a query in a URL may hold a token"),
        ("s3://key:hidden@bucket/log.parquet", "a password in a path would be shown in messages"),
    ],
)
@pytest.mark.parametrize("as_feedback", [False, True])
def test_a_path_that_no_config_may_have_is_a_sentence_without_its_secret(tmp_path, path, why, as_feedback):
    frame(40).to_csv(tmp_path / "log.csv", index=False)
    exposures = str(tmp_path / "log.csv") if as_feedback else path
    with pytest.raises(CannotProfile, match=why) as raised:
        write_config([exposures], tmp_path, [path] if as_feedback else [])
    assert "hidden" not in str(raised.value)


FAULTS = {
    "nothing.csv": b"",
    "header_only.csv": b"request_id,user_id,ts,item_id\n",
    "cut.csv.gz": gzip.compress(b"request_id,user_id,ts,item_id\n" * 5000)[:-20],
    "no_gzip.csv.gz": b"request_id\n",
    "not.parquet": b"PAR1 but no more",
    "not_utf8.csv": b"caf\xe9,b\n1,2\n",
    "utf16.csv": "request_id,user_id\n".encode("utf-16-le"),
    "twice.csv": b"a,a\n1,2\n",
    "list.jsonl": b"[1, 2\n",
    "unknown.xlsx": b"PK",
    "book.xlsx": b"PK\x03\x04 and more",
    "packed.csv.bz2": bz2.compress(b"request_id,user_id,ts,item_id\n"),
    "packed.csv.xz": lzma.compress(b"request_id,user_id,ts,item_id\n"),
    "packed-without-its-ending": gzip.compress(b"request_id,user_id,ts,item_id\n"),
    "ratings.dat": b"1::122::5::838985046\n",
    "array.json": b'[{"request_id": 1}]\n',
    "no_header.csv": b"r1,u1,2026-01-05 10:00:00,a\nr2,u2,2026-01-05 10:00:01,b\n",
    "no_header.tsv": b"1\tU13740\t11/11/2019\t838985046\tN1\n",
}
WHAT_TO_DO = {
    "cut.csv.gz": "write it again",
    "no_gzip.csv.gz": "write it again, or correct its name",
    "not_utf8.csv": "convert it, such as with `iconv",
    "utf16.csv": "is UTF-16 text and not UTF-8; convert it",
    "book.xlsx": "write it as CSV or Parquet",
    "packed.csv.bz2": "compress it with gzip",
    "packed.csv.xz": "compress it with gzip",
    "packed-without-its-ending": "its name does not end in .gz; rename the file",
    "ratings.dat": "use commas or tabs",
    "array.json": "write one JSON object per line",
    "no_header.csv": "add a header line",
    "no_header.tsv": "add a header line",
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_unreadable_log_is_refused_with_advice(tmp_path, name):
    (tmp_path / name).write_bytes(FAULTS[name])
    with pytest.raises(CannotProfile) as caught:
        write_config([str(tmp_path / name)], tmp_path)
    assert name in str(caught.value)
    assert WHAT_TO_DO.get(name, "") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_log_is_refused(tmp_path):
    with pytest.raises(CannotProfile, match="no file matches"):
        write_config([str(tmp_path / "*.csv")], tmp_path)
    with pytest.raises(CannotProfile, match=r"there is no file .*/nope\.csv; correct the path$"):
        write_config([str(tmp_path / "nope.csv")], tmp_path)
    with pytest.raises(CannotProfile, match="holds no Parquet"):
        write_config([str(tmp_path)], tmp_path)


def test_a_broken_file_among_others_is_only_a_note(tmp_path):
    for number in range(3):
        frame(50).to_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "3.parquet").write_bytes(b"half")
    written = write_config([str(tmp_path / "*.parquet")], tmp_path)
    assert len(written.notes) == 1
    assert "3.parquet" in written.notes[0]


def test_record_columns_without_a_role_are_ignored(init, tmp_path):
    with (tmp_path / "log.jsonl").open("w") as stream:
        for row in frame(50).to_dict("records"):
            row["ts"] = row["ts"].isoformat()
            stream.write(json.dumps(row | {"context": {"page": 1}, "parts": [{"a": 1}]}) + "\n")
    assert init(tmp_path / "log.jsonl")[1] == 250


@pytest.mark.parametrize("items", ["1 2 3", "[1, 2]", "a,b,c", "a|b", "12;13", "['a' 'b']"])
def test_several_items_in_one_text_are_read_as_a_list(init, tmp_path, items):
    frame(40, 1).assign(item_id=items).to_csv(tmp_path / "log.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.list_separator in (" ", ",", "|", ";")
    assert judged == 40 * len(re.findall(r"\w+", items))


def test_a_composite_id_is_not_split(init, tmp_path):
    rows = frame(60)
    rows["request_id"] = rows["request_id"] + "|" + rows["user_id"]
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.columns["request_id"] == "request_id"
    assert settings.logs.exposures.list_separator is None
    assert judged == len(rows)


def test_a_catalog_without_a_common_id_is_left_out_with_the_reason(init, tmp_path):
    frame(60).to_csv(tmp_path / "exposures.csv", index=False)
    pd.DataFrame({"item_id": [f"z{n}" for n in range(90)]}).to_csv(tmp_path / "items.csv", index=False)
    settings, _, written = init(tmp_path / "exposures.csv")
    assert settings.logs.catalog is None
    advice = (
        "it looks like catalog, but no id of its 'item_id' is in 'item_id' of the exposures: 'z0' here, "
        f"'{min(map(str, frame(60)['item_id']))}' there"
    )
    assert list(written.notes) == [f"not used: {tmp_path / 'items.csv'}: {advice}"]


def test_the_share_of_empty_users_is_shown(init, tmp_path):
    rows = frame(60)
    rows.loc[rows.index < 75, "user_id"] = None
    rows.to_csv(tmp_path / "log.csv", index=False)
    assert "; empty in 25.0% of the rows" in init(tmp_path / "log.csv")[2].text


@pytest.mark.parametrize("other", ["session_start", "loaded_at"])
def test_an_empty_user_column_is_not_replaced_by_a_column_of_times(init, tmp_path, other):
    """Not even by a second column of times that is the same in every row of a request."""
    rows = frame(200).assign(user_id=None)
    rows[other] = rows["ts"].map(lambda at: int(at.timestamp()) - 1)
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, _, written = init(tmp_path / "log.csv")
    assert settings.logs.exposures.columns["user_id"] == "user_id"
    assert any("user_id is empty in every sampled row" in one for one in written.notes)


def test_the_format_can_be_given(init, tmp_path):
    path = tmp_path / "log.json"  # its ending lies
    frame(60).to_csv(path, index=False, sep="\t")
    with pytest.raises(CannotProfile):
        write_config([str(path)], tmp_path)
    settings, judged, _ = init(path, kind="csv")
    assert settings.logs.exposures.format == "csv"
    assert judged == 300


def test_users_of_two_arms_make_no_experiment_and_an_uneven_split_is_a_comment(init, tmp_path):
    rows = frame(600)
    number = rows["user_id"].str[1:].astype(int)
    rows["variant"] = number.map(lambda one: "new" if one % 5 == 0 else "old")
    rows["test_page"] = [f"p{one % 2}" for one in range(len(rows))]
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, _, written = init(tmp_path / "log.csv")
    assert settings.experiments == ()
    line = next(one for one in written.text.splitlines() if "column: arm" in one)
    assert line.lstrip().startswith("#")
    assert "the users are not split evenly" in line
    assert "test_page" not in line


@pytest.mark.parametrize(
    ("name", "column", "arm"),
    [
        ("log.parquet", "variant", "1"),
        ("log.parquet", "variant_of_user", "1"),
        ("log.csv", "variant", "1.0"),  # becomes `arm`, which is read as the text that the file has
        ("log.csv", "variant_of_user", "1"),  # a further column, which is read as a number
    ],
)
def test_the_split_names_numeric_arms_as_the_monitor_reads_them(init, tmp_path, name, column, arm):
    rows = frame(600)
    number = rows["user_id"].str[1:].astype(int)
    rows[column] = (number % 2).astype(float).where(number % 10 != 0)  # as pandas reads a missing arm
    path = tmp_path / name
    rows.to_parquet(path) if path.suffix == ".parquet" else rows.to_csv(path, index=False)
    split = next(line for line in init(path)[2].text.splitlines() if "split:" in line)
    assert f'"{arm}": ' in split


def test_the_zone_is_set_for_the_log_without_offsets(init, tmp_path):
    rows = frame(200)
    done = rows.iloc[::5][["request_id", "user_id", "item_id", "ts"]].assign(event="click")
    done["ts"] += pd.Timedelta("90s")
    local = (rows["ts"] + pd.Timedelta("5h30min")).dt.strftime("%Y-%m-%d %H:%M:%S")
    rows.assign(ts=local).to_csv(tmp_path / "exposures.csv", index=False)
    done.to_csv(tmp_path / "feedback.csv", index=False)
    settings, _, written = init(tmp_path / "exposures.csv")
    assert (settings.logs.exposures.timezone, settings.logs.feedback.timezone) == ("Asia/Kolkata", "UTC")
    assert "0% of the actions join with these times, 100% if shifted by +5:30 h" in written.text


def test_files_whose_names_end_in_a_day_get_a_narrow_glob(init, tmp_path):
    (tmp_path / "logs").mkdir()
    for day in ("2026-01-05", "2026-01-06"):
        frame(60).assign(request_id=lambda rows, day=day: day + rows["request_id"]).to_csv(
            tmp_path / "logs" / f"shown.{day}", index=False
        )
    (tmp_path / "logs" / "notes").write_text("no log\n")
    settings, judged, _ = init(tmp_path / "logs")
    assert settings.logs.exposures.paths[0].endswith("logs/shown.*")
    assert judged == 600


def test_a_time_in_an_unknown_form_is_reported(tmp_path):
    rows = frame(40)
    rows["ts"] = rows["ts"].dt.strftime("%m/%d/%Y %I:%M:%S %p")
    rows.to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    assert "the name 'ts' suggests a time, but its values cannot be read as times" in written.missing[0]


@pytest.mark.parametrize(
    ("form", "has_offset"),
    [
        ("%Y-%m-%d %H:%M:%S,%f", False),  # as Python's own log
        ("%Y-%m-%d %H:%M:%S +0000", True),
        ("%Y-%m-%dT%H:%MZ", True),
        ("%Y-%m-%d %H:%M:%S UTC", True),
        ("%Y-%m-%dt%H:%M:%S,%fz", True),
    ],
)
def test_every_form_of_a_time_that_the_monitor_reads_is_found(init, tmp_path, form, has_offset):
    rows = frame(60)
    rows["ts"] = rows["ts"].dt.strftime(form)
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, judged, written = init(tmp_path / "log.csv")
    assert (settings.logs.exposures.columns["ts"], judged) == ("ts", 300)
    assert ("the times carry no offset" not in written.text) == has_offset


def test_an_id_unique_to_each_list_is_the_request(init, tmp_path):
    rows = nested(frame(80)).rename(columns={"request_id": "key"})
    rows.to_parquet(tmp_path / "log.parquet")
    settings, judged, _ = init(tmp_path / "log.parquet")
    assert settings.logs.exposures.columns["request_id"] == "key"
    assert judged == 400


def test_a_csv_file_with_the_unnamed_row_numbers_of_pandas_is_read(init, tmp_path):
    frame(60).to_csv(tmp_path / "log.csv")
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.columns["request_id"] == "request_id"
    assert judged == 300


def test_other_events_in_the_log_are_left_out_of_the_exposures(init, tmp_path):
    shown = frame(60).assign(event="impression")
    scrolled = shown.iloc[:20].assign(event="scroll")
    pd.concat([shown, scrolled]).to_csv(tmp_path / "log.csv", index=False)
    done = shown.iloc[::5][["request_id", "user_id", "item_id", "ts"]].assign(event="buy")
    done.to_csv(tmp_path / "sales.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv", feedback=[tmp_path / "sales.csv"])
    assert settings.logs.exposures.only == {"event": "impression"}
    assert judged == 300
    assert list(settings.metrics.events) == ["buy"]


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%m/%d/%Y, %H:%M:%S", "%d-%m-%y %Hh%M", "%Y%m%d %H%M%S"]
)
def test_an_unknown_time_format_is_not_taken_for_a_list_of_items(tmp_path, form):
    rows = frame(40).rename(columns={"ts": "horodatage", "item_id": "id_produit"})
    rows["horodatage"] = rows["horodatage"].dt.strftime(form)
    rows.to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    assert written.missing[0].startswith("'horodatage' holds times in an unknown form; write them as")
    assert ": horodatage" not in written.text
    assert "list_separator" not in written.text


@pytest.mark.parametrize(
    ("role", "column"), [("item_id", "items"), ("user_id", "user"), ("request_id", "request")]
)
def test_a_column_of_json_texts_is_no_id_and_is_reported(tmp_path, role, column):
    rows = frame(40).rename(columns={role: column})
    one = rows[column].map(lambda value: json.dumps({"id": value, "page": 1}))
    rows[column] = one.map(lambda text: f"[{text}]") if role == "item_id" else one
    rows.to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    assert written.missing[0].startswith(
        f"'{column}' holds JSON texts, which are not supported; write them as"
    )
    assert f"{role}: {column}" not in written.text
    assert f"{role}: TODO" in written.text


@pytest.mark.parametrize(("shown", "done"), [("View", "Click"), ("view_item_list", "select_item")])
def test_a_log_of_events_without_impressions_gives_a_warning(tmp_path, shown, done):
    rows = frame(60).assign(action=shown)
    pd.concat([rows, rows.iloc[::5].assign(action=done)]).to_csv(tmp_path / "log.csv", index=False)
    advice = (
        f"warning: 'action' has several events ('{shown}', '{done}'), and every row counts as shown; "
        "if only some were, set `only` for the exposures, and name the rest as feedback"
    )
    assert advice in write_config([str(tmp_path / "log.csv")], tmp_path).notes
    rows.to_csv(tmp_path / "log.csv", index=False)
    assert write_config([str(tmp_path / "log.csv")], tmp_path).notes == ()


def test_a_date_and_a_time_in_two_columns_give_a_warning(tmp_path):
    rows = frame(60)
    day, time = rows["ts"].dt.strftime("%Y-%m-%d"), rows["ts"].dt.strftime("%H:%M:%S")
    rows.drop(columns="ts").assign(date=day, time=time).to_csv(tmp_path / "log.csv", index=False)
    assert write_config([str(tmp_path / "log.csv")], tmp_path).notes == (
        "warning: 'date' holds days without a time of day, so every row counts at midnight; write the moment "
        "of the request in one column",
    )
    rows.to_csv(tmp_path / "log.csv", index=False)
    assert write_config([str(tmp_path / "log.csv")], tmp_path).notes == ()
