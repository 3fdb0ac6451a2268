"""What `init` cannot read or find is said, and left as a TODO."""

from __future__ import annotations

import gzip
import json

import pytest

from monitor.config.init import write_config
from monitor.config.load import load_config
from monitor.config.profile import CannotProfile
from tests.config.exposure_logs import frame


def test_a_column_whose_values_cannot_be_what_its_name_says_is_not_taken(init, tmp_path):
    rows = frame().rename(columns={"score": "confidence"})
    rows["timestamp"] = "yesterday"
    rows["rank"] = "first"
    rows["model_score"] = "high"
    rows.to_csv(tmp_path / "log.csv", index=False)
    columns = init(tmp_path / "log.csv")[0].logs.exposures.columns
    assert (columns["ts"], columns["position"], columns["score"]) == ("ts", "position", "confidence")


@pytest.mark.parametrize("column", ["request_id", "user_id", "ts", "item_id"])
def test_what_was_not_found_is_a_todo_and_a_sentence_that_says_what_to_do(tmp_path, column):
    keep = [one for one in ("request_id", "user_id", "ts", "item_id") if one != column]
    rows = frame(40)[keep]
    rows = rows.assign(request_id=1) if column == "ts" else rows
    rows.to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    assert [one for one in written.missing if f"({column})" in one]
    assert f"{column}: TODO # TODO" in written.text
    (tmp_path / "config.yaml").write_text(written.text)
    assert load_config(tmp_path / "config.yaml").recommenders[0].logs.exposures.columns[column] == "TODO"


@pytest.mark.parametrize("items", ["1 2 3", "[1, 2]", "a,b,c", "a|b", "12;13"])
def test_several_items_in_one_text_are_said_to_be_unreadable(tmp_path, items):
    rows = frame(40, 1).assign(item_id=items)
    rows.to_csv(tmp_path / "log.csv", index=False)
    written = write_config([str(tmp_path / "log.csv")], tmp_path)
    assert "(item_id)" in written.missing[0]
    assert "'item_id' holds several values in one text" in written.text


FAULTS = {
    "nothing.csv": b"",
    "header_only.csv": b"request_id,user_id,ts,item_id\n",
    "cut.csv.gz": gzip.compress(b"request_id,user_id,ts,item_id\n" * 5000)[:-20],
    "no_gzip.csv.gz": b"request_id\n",
    "not.parquet": b"PAR1 but no more",
    "not_utf8.csv": b"caf\xe9,b\n1,2\n",
    "twice.csv": b"a,a\n1,2\n",
    "list.jsonl": b"[1, 2\n",
    "unknown.xlsx": b"PK",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_log_that_cannot_be_read_is_refused_in_a_sentence(tmp_path, name):
    (tmp_path / name).write_bytes(FAULTS[name])
    with pytest.raises(CannotProfile) as caught:
        write_config([str(tmp_path / name)], tmp_path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_log_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(CannotProfile, match="no file matches"):
        write_config([str(tmp_path / "*.csv")], tmp_path)
    with pytest.raises(CannotProfile, match="holds no Parquet"):
        write_config([str(tmp_path)], tmp_path)


def test_a_broken_file_among_others_is_only_noted(tmp_path):
    for number in range(3):
        frame(50).to_parquet(tmp_path / f"{number}.parquet")
    (tmp_path / "3.parquet").write_bytes(b"half")
    written = write_config([str(tmp_path / "*.parquet")], tmp_path)
    assert len(written.notes) == 1
    assert "3.parquet" in written.notes[0]


def test_columns_that_hold_structures_are_left_alone(init, tmp_path):
    with (tmp_path / "log.jsonl").open("w") as stream:
        for row in frame(50).to_dict("records"):
            row["ts"] = row["ts"].isoformat()
            stream.write(json.dumps(row | {"context": {"page": 1}, "parts": [{"a": 1}]}) + "\n")
    assert init(tmp_path / "log.jsonl")[1] == 250
