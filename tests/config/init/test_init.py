"""`init` writes a config that reads the log, whatever its format and column names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest
import yaml

from monitor.config.checks.check import check_config
from monitor.config.init.wizard import write_config
from monitor.config.load import load_config
from tests.config.exposure_logs import frame, nested

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
def test_init_understands_every_format_and_naming(init, tmp_path, names, ending):
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
def test_epoch_times_are_read_in_their_unit(init, tmp_path, unit, scale):
    rows = frame()
    rows["ts"] = (rows["ts"].astype("datetime64[s, UTC]").astype("int64") * scale).astype("int64")
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.timestamp_unit == unit
    assert judged == len(rows)


def test_columns_with_meaningless_names_are_guessed_by_content(init, tmp_path):
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


def test_a_hostile_file_name_is_not_a_glob_or_a_reference(init, tmp_path):
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


def test_a_log_with_few_columns_gets_only_rules_that_fit(init, tmp_path):
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


def test_scores_beyond_0_and_1_disable_the_score_range(init, tmp_path):
    rows = frame()
    rows["score"] = rows["score"] * 40 - 20
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, _, _ = init(tmp_path / "log.csv")
    assert settings.metrics.score_range is None
    scores = next(rule for rule in settings.rules if rule.pack == "scores")
    assert scores.parameters["max_score"] is None


def test_the_window_holds_about_a_thousand_requests(init, tmp_path):
    rows = frame(requests=12_000, length=1)
    rows.to_parquet(tmp_path / "log.parquet")
    assert init(tmp_path / "log.parquet")[0].window == timedelta(hours=1)


def test_local_times_ahead_of_their_file_get_an_eastern_time_zone(init, tmp_path):
    rows = frame()
    shift = datetime.now(UTC) + timedelta(hours=7, minutes=30) - rows["ts"].max().to_pydatetime()
    rows["ts"] = (rows["ts"] + shift).dt.strftime("%Y-%m-%d %H:%M:%S")
    rows.to_csv(tmp_path / "log.csv", index=False)
    settings, judged, _ = init(tmp_path / "log.csv")
    assert settings.logs.exposures.timezone == "Etc/GMT-8"
    assert judged == len(rows)


def test_a_column_whose_name_has_another_meaning_in_slices_is_not_suggested(init, tmp_path):
    rows = frame()
    place = rows["position"] % 3
    rows.assign(hour=place, country=place, **{"users.plan": place}).to_parquet(tmp_path / "log.parquet")
    settings, _, _ = init(tmp_path / "log.parquet")
    assert "country" in settings.slices.by
    assert not {"hour", "users.plan"} & set(settings.slices.by)


def test_a_catalog_feedback_and_users_beside_the_log_are_found(init, tmp_path):
    rows = frame()
    rows.to_csv(tmp_path / "exposures.csv", index=False)
    pd.DataFrame({"sku": range(500), "category": ["a", "b"] * 250}).to_csv(
        tmp_path / "items.csv", index=False
    )
    clicks = rows.iloc[::9][["user_id", "item_id", "ts"]].assign(event="click")
    clicks.to_json(tmp_path / "clicks.jsonl", orient="records", lines=True, date_format="iso")
    pd.DataFrame({"user_id": [f"u{n}" for n in range(200)], "plan": ["free", "paid"] * 100}).to_csv(
        tmp_path / "users.csv", index=False
    )
    settings, _, _ = init(tmp_path / "exposures.csv")
    assert settings.logs.users.columns == {"user_id": "user_id"}
    assert settings.logs.catalog.columns == {"item_id": "sku", "category": "category"}
    assert settings.logs.feedback.columns["event"] == "event"
    assert "catalog" in {rule.pack for rule in settings.rules}


@pytest.mark.parametrize("name", ["obd", "ebnerd"])
def test_init_understands_the_real_logs(init, shared, name):
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
    assert "docs/objectives.md" in lines[example]
    for number in range(example, len(lines)):
        lines[number] = lines[number].replace("# ", "", 1).replace("#   ", "  ", 1)
    path = tmp_path / "config.yaml"
    path.write_text("\n".join(lines))
    config = load_config(path)
    assert len(config.recommenders[0].objectives) >= 2
    assert check_config(config, tmp_path)[0].problems == ()
    assert Path(path).is_file()
