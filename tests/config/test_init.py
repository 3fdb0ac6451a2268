"""A log of any shape gives a config that reads it; what is missing is said and left as a TODO."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.config.check import check_config
from monitor.config.init import write_config
from monitor.config.load import load_config
from monitor.config.profile import CannotProfile
from monitor.results import Status
from monitor.service.once import one_off

START = datetime(2026, 1, 5, tzinfo=UTC)


def frame(requests: int = 400, length: int = 5) -> pd.DataFrame:
    """Exposures of six hours by our own names."""
    rng = np.random.default_rng(7)
    which = np.repeat(np.arange(requests), length)
    seconds = np.sort(rng.uniform(0, 6 * 3600, requests))
    scores = np.sort(rng.uniform(0.01, 0.99, (requests, length)), axis=1)[:, ::-1]
    return pd.DataFrame(
        {
            "request_id": [f"r{n:05d}" for n in which],
            "user_id": [f"u{n}" for n in rng.integers(0, 120, requests)[which]],
            "ts": (pd.Timestamp(START) + pd.to_timedelta(seconds[which].round(), unit="s")),
            "item_id": np.concatenate([rng.choice(500, length, replace=False) for _ in range(requests)]),
            "position": np.tile(np.arange(1, length + 1), requests),
            "score": scores.ravel(),
            "scene": rng.choice(["home", "detail"], requests)[which],
        }
    )


def nested(flat: pd.DataFrame) -> pd.DataFrame:
    keys = ["request_id", "user_id", "ts", "scene"]
    return flat.groupby(keys, sort=False).agg({"item_id": list, "score": list}).reset_index()


@pytest.fixture
def init(tmp_path):
    """Write a config for a log, load it, judge the whole log by it."""

    def init(*arguments: str):
        written = write_config([str(one) for one in arguments], tmp_path)
        path = tmp_path / "config.yaml"
        path.write_text(written.text, "utf-8")
        config = load_config(path)
        checked = check_config(config, tmp_path)
        assert checked[0].problems == ()
        assert written.missing == ()
        with one_off(config, checked[0], "salt") as judge:
            now = datetime.now(UTC)
            judge.look(now)
            evaluations = list(judge.judge(judge.windows(None, None)[:2], now))
            source = judge.evaluator.source.exposures
            placed = sum(
                bucket.rows for entry in source.entries.values() for bucket in entry.buckets.values()
            )
            assert source.skipped == ()
            results = [result for one in evaluations for result in one.results]
            assert [one.detail for one in results if one.status is Status.ERROR] == []
            return config.recommenders[0], placed, written

    return init


NAMES = {
    "snake": {},
    "camel": {
        "request_id": "requestId", "user_id": "userId", "ts": "eventTime", "item_id": "itemId",
        "position": "itemPosition", "score": "modelScore", "scene": "pageType",
    },
    "shop": {
        "request_id": "impression_id", "user_id": "customer_id", "ts": "shown_at", "item_id": "sku",
        "position": "rank", "score": "pCTR", "scene": "placement",
    },
    "prefixed": {name: f"exposure.{name}" for name in frame(1).columns},
    "loud": {name: name.upper() for name in frame(1).columns},
}  # fmt: skip


ENDINGS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "nested.parquet", "nested.jsonl")


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_log_of_any_form_and_naming_is_understood(init, tmp_path, names, ending):
    flat = frame()
    rows = (nested(flat) if "nested" in ending else flat).rename(columns=NAMES[names])
    path = tmp_path / f"log.{ending}"
    if "csv" in ending:
        rows.to_csv(path, index=False)
    elif "json" in ending:
        rows.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        rows.to_parquet(path)
    settings, judged, _ = init(path)
    expected = {ours: NAMES[names].get(ours, ours) for ours in rows.rename(
        columns={theirs: ours for ours, theirs in NAMES[names].items()}).columns}  # fmt: skip
    assert settings.logs.exposures.columns == expected
    assert judged == len(flat)
    assert settings.slices.by == ("scene",)
    assert settings.metrics.score_range == (0, 1)
    assert {"lists", "scores", "order", "frequency"} <= {rule.pack for rule in settings.rules}


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_times_that_count_are_read_in_their_unit(init, tmp_path, unit, scale):
    rows = frame()
    rows["ts"] = (rows["ts"].astype("datetime64[s, UTC]").astype("int64") * scale).astype("int64")
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.timestamp_unit == unit
    assert judged == len(rows)


def test_names_that_say_nothing_are_told_by_what_they_hold(init, tmp_path):
    rows = frame()
    rows.columns = ["a", "b", "c", "d", "e", "f", "g"]
    rows.to_parquet(tmp_path / "log.parquet")
    settings, _, written = init(tmp_path / "log.parquet")
    assert settings.logs.exposures.columns == {
        "request_id": "a", "user_id": "b", "ts": "c", "item_id": "d", "position": "e", "score": "f",
    }  # fmt: skip
    assert "a guess" in written.text


HOSTILE = [
    'quo"te',
    "line\nbreak",
    "${HOME}",
    "a: b # c",
    "- x",
    "it's",
    "\u202eright",
    "no",
    "[x]",
    "\\",
    "ünï😀",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_column_name_is_quoted(init, tmp_path, name):
    rows = frame(60).rename(columns={"item_id": name})
    rows.to_parquet(tmp_path / "log.parquet")
    settings, judged, written = init(tmp_path / "log.parquet")
    assert settings.logs.exposures.columns["item_id"] == name
    assert judged == len(rows)
    assert all(line.isprintable() for line in written.text.split("\n"))


def test_a_hostile_file_name_is_no_pattern_and_no_reference(init, tmp_path):
    path = tmp_path / "log [1]* ${HOME}.csv"
    frame(60).to_csv(path, index=False)
    settings, judged, _ = init(path)
    assert judged == 300
    assert len(settings.logs.exposures.paths) == 1


def test_a_glob_a_folder_and_several_files_name_the_same_log(init, tmp_path):
    folder = tmp_path / "shop" / "exposures"
    folder.mkdir(parents=True)
    rows = frame()
    for number in range(10):
        rows.iloc[number * 200 : (number + 1) * 200].to_parquet(folder / f"{number}.parquet")
    for arguments in ([folder / "*.parquet"], [folder], sorted(folder.iterdir())):
        settings, judged, _ = init(*arguments)
        assert judged == len(rows)
        assert settings.name == "shop"


def test_a_log_without_positions_scores_or_scenes_gets_only_rules_that_it_bears(init, tmp_path):
    frame()[["request_id", "user_id", "ts", "item_id"]].to_csv(tmp_path / "log.csv", index=False)
    settings, _, _ = init(tmp_path / "log.csv")
    assert {rule.pack for rule in settings.rules}.isdisjoint({"scores", "order", "arithmetic", "importance"})
    assert settings.slices.by == ()
    assert settings.metrics.score_range is None


def test_a_propensity_gets_the_importance_rules(init, tmp_path):
    rows = frame()
    rows["pscore"] = 0.2
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, _, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.columns["propensity"] == "pscore"
    assert "importance" in {rule.pack for rule in settings.rules}


def test_scores_beyond_0_and_1_switch_their_range_off(init, tmp_path):
    rows = frame()
    rows["score"] = rows["score"] * 40 - 20
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, _, _ = init(tmp_path / "log.csv")
    assert settings.metrics.score_range is None
    scores = next(rule for rule in settings.rules if rule.pack == "scores")
    assert scores.parameters["max_score"] is None


def test_a_column_whose_values_cannot_be_what_its_name_says_is_not_taken(init, tmp_path):
    rows = frame().rename(columns={"score": "confidence"})
    rows["timestamp"] = "yesterday"
    rows["rank"] = "first"
    rows["model_score"] = "high"
    rows.to_csv(tmp_path / "log.csv", index=False)
    columns = init(tmp_path / "log.csv")[0].logs.exposures.columns
    assert (columns["ts"], columns["position"], columns["score"]) == ("ts", "position", "confidence")


def test_the_window_holds_about_a_thousand_requests(init, tmp_path):
    rows = frame(requests=12_000, length=1)
    rows.to_parquet(tmp_path / "log.parquet")
    assert init(tmp_path / "log.parquet")[0].window == timedelta(hours=1)


def test_local_times_ahead_of_their_file_are_taken_to_be_of_a_zone_in_the_east(init, tmp_path):
    rows = frame()
    shift = datetime.now(UTC) + timedelta(hours=7, minutes=30) - rows["ts"].max().to_pydatetime()
    rows["ts"] = (rows["ts"] + shift).dt.strftime("%Y-%m-%d %H:%M:%S")
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.timezone == "Etc/GMT-8"
    assert judged == len(rows)


def test_a_catalog_and_feedback_beside_the_log_are_found(init, tmp_path):
    rows = frame()
    rows.to_csv(tmp_path / "exposures.csv", index=False)
    pd.DataFrame({"sku": range(500), "category": ["a", "b"] * 250}).to_csv(
        tmp_path / "items.csv", index=False
    )
    clicks = rows.iloc[::9][["user_id", "item_id", "ts"]].assign(event="click")
    clicks.to_json(tmp_path / "clicks.jsonl", orient="records", lines=True, date_format="iso")
    settings, _, _ = init(tmp_path / "exposures.csv")
    assert settings.logs.catalog.columns == {"item_id": "sku", "category": "category"}
    assert settings.logs.feedback.columns["event"] == "event"
    assert "catalog" in {rule.pack for rule in settings.rules}


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


@pytest.mark.parametrize("name", ["obd", "ebnerd"])
def test_the_real_logs_are_understood(init, shared, name):
    settings, judged, written = init(shared / "data" / name / "exposures.csv.gz")
    columns = settings.logs.exposures.columns
    assert {ours: columns[ours] for ours in ("request_id", "user_id", "ts", "item_id")} == {
        ours: ours for ours in ("request_id", "user_id", "ts", "item_id")
    }
    assert judged == {"obd": 40_000, "ebnerd": 10_848}[name]
    assert settings.logs.feedback is not None
    assert (settings.logs.catalog is not None) == (name == "obd")
    assert yaml.safe_load(written.text)["recommenders"][0]["name"] == name


def test_every_line_of_a_written_config_can_be_uncommented_to_yaml(tmp_path):
    frame(60).to_csv(tmp_path / "log.csv", index=False)
    text = write_config([str(tmp_path / "log.csv")], tmp_path).text
    lines = text.splitlines()
    example = next(number for number, line in enumerate(lines) if line.strip().startswith("# objectives"))
    for number in range(example, len(lines)):
        lines[number] = lines[number].replace("# ", "", 1).replace("#   ", "  ", 1)
    path = tmp_path / "config.yaml"
    path.write_text("\n".join(lines))
    config = load_config(path)
    assert len(config.recommenders[0].objectives) >= 2
    assert check_config(config, tmp_path)[0].problems == ()
    assert Path(path).is_file()
