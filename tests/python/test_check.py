"""`recsys_monitor.check`: the values of the command on the same rows, whatever kind of frame they are in."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recsys_monitor
from monitor.cli.judge import judge
from monitor.core.results import Status
from monitor.metrics.catalogue import SPECS
from monitor.report.judged import as_json
from recsys_monitor.opened import span_of
from tests.python.conftest import HOURS, START

KINDS = {"pandas": lambda rows: rows, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.fixture(scope="session")
def by_command(folder: Path) -> list[dict[str, Any]]:
    """What `recsys-monitor check --format json` prints for the Parquet files."""
    judged, code = judge(folder / "shop.yaml", None, None, None)
    assert code == 1
    return json.loads(as_json(judged))


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_is_that_of_the_command_on_the_same_rows_as_parquet(
    kind: str, folder: Path, logs: dict[str, pd.DataFrame], by_command: list[dict[str, Any]]
) -> None:
    frames = {name: KINDS[kind](rows) for name, rows in logs.items()}
    results = recsys_monitor.check(**frames, config=folder / "shop.yaml")
    assert json.loads(as_json(results)) == by_command
    assert results.status == "violated"
    assert len({one["window_start"] for one in by_command}) == HOURS / 6


def test_the_compared_results_hold_every_metric_with_a_value_and_hashed_evidence(
    by_command: list[dict[str, Any]],
) -> None:
    valued = {one["metric"] for one in by_command if one["value"] is not None}
    assert set(SPECS) - valued == set()
    rule = next(one for one in by_command if one["metric"] == "rule" and one["status"] == "violated")
    assert {row["item_id"] for row in rule["evidence"]} == {"i3"}
    assert "dimension" in {key for one in by_command for key in one["labels"]}


def test_a_span_and_the_log_that_is_not_passed_are_those_of_the_config(
    folder: Path, logs: dict[str, pd.DataFrame]
) -> None:
    results = recsys_monitor.check(
        logs["exposures"], config=str(folder / "shop.yaml"), recommender="shop",
        start="2026-01-05T06:00", end=datetime(2026, 1, 5, 12),
    )  # fmt: skip
    frame = results.frame()
    assert set(frame.window_start) == {pd.Timestamp("2026-01-05T06:00", tz="UTC")}
    assert frame.query("metric == 'catalog_items'").value.tolist() == [38.0]
    assert (frame.check == "feedback").any()


RENAMED = {"request_id": "rid", "user_id": "uid", "ts": "when", "item_id": "sku"}


@pytest.mark.parametrize("by_log", [False, True])
def test_the_columns_of_a_frame_may_have_other_names(by_log: bool, logs: dict[str, pd.DataFrame]) -> None:
    plain = recsys_monitor.check(logs["exposures"], logs["feedback"], config={"window": "1d"})
    of_feedback = {ours: name for ours, name in RENAMED.items() if ours in logs["feedback"]}
    renamed = {
        "exposures": logs["exposures"].rename(columns=RENAMED),
        "feedback": logs["feedback"].rename(columns=RENAMED),
    }
    columns = {"exposures": RENAMED, "feedback": of_feedback} if by_log else RENAMED
    mapped = recsys_monitor.check(**renamed, columns=columns, config={"window": "1d"})
    assert as_json(mapped) == as_json(plain)


def test_records_in_lists_are_read_by_paths() -> None:
    rows = pl.DataFrame(
        {"request_id": ["r1", "r2"], "user_id": ["a", "b"], "ts": [START.to_pydatetime()] * 2,
         "recs": [[{"iid": 7, "rank": 1}, {"iid": 8, "rank": 2}], []]},
        schema_overrides={"recs": pl.List(pl.Struct({"iid": pl.Int64, "rank": pl.Int64}))},
    )  # fmt: skip
    results = recsys_monitor.check(rows, columns={"item_id": "recs[].iid", "position": "recs[].rank"})
    assert results.frame().query("series == 'failure by=pv'").value.tolist() == [0.5]


def starts(ts: pd.Series, **config: Any) -> list[str]:
    rows = pd.DataFrame({"request_id": ["r"], "user_id": ["u"], "item_id": ["i"], "ts": ts})
    results = recsys_monitor.check(rows, config=config)
    return sorted({f"{one:%Y-%m-%dT%H}" for one in results.frame().window_start})


def test_times_with_a_zone_become_utc_and_times_without_one_are_utc_unless_the_config_says_otherwise() -> (
    None
):
    naive = pd.Series([pd.Timestamp("2026-07-01T12:30:00")])
    in_berlin = {"logs": {"exposures": {"timezone": "Europe/Berlin"}}}
    assert starts(naive) == ["2026-07-01T12"]
    assert starts(naive.dt.tz_localize("Europe/Berlin")) == ["2026-07-01T10"]
    assert starts(naive, **in_berlin) == ["2026-07-01T10"]
    assert starts(naive.dt.tz_localize("UTC"), **in_berlin) == ["2026-07-01T12"]
    assert starts(naive.dt.tz_localize("UTC").astype("datetime64[s, UTC]")) == ["2026-07-01T12"]
    assert starts(naive.astype("datetime64[s]")) == ["2026-07-01T12"]
    assert starts(naive.astype("datetime64[ns]")) == ["2026-07-01T12"]
    assert starts(pd.Series(["2026-07-01T12:30:00+02:00"])) == ["2026-07-01T10"]
    assert starts(pd.Series([1782909000])) == ["2026-07-01T12"]


def test_an_empty_frame_of_exposures_is_no_data(logs: dict[str, pd.DataFrame]) -> None:
    results = recsys_monitor.check(logs["exposures"].head(0), logs["feedback"])
    assert results.status == "no_data"
    assert len(results) == 0
    assert results.frame().columns.tolist()[:4] == ["recommender", "check", "window_start", "window_end"]
    assert "frame: the frame of the exposures has no row" in repr(results)
    spanned = recsys_monitor.check(logs["exposures"].head(0), start=START, end=START + timedelta(hours=1))
    assert spanned.status == "no_data"
    assert set(spanned.frame().status) == {"no_data"}


@pytest.mark.parametrize(
    ("time", "why"),
    [
        ("no time", "'request_id' or 'ts' is empty or cannot be read in 3 of 3 rows"),
        ("2999-01-01T00:00:00", "3 of 3 rows are later than now; times without a zone are UTC"),
    ],
)
def test_a_frame_without_a_usable_time_says_why_nothing_was_judged(time: str, why: str) -> None:
    rows = {"request_id": ["a", "b", "c"], "user_id": ["u"] * 3, "item_id": ["i"] * 3, "ts": [time] * 3}
    results = recsys_monitor.check(pd.DataFrame(rows))
    assert results.notes == (f"frame: the frame of the exposures: {why}",)


@pytest.mark.parametrize("rows", [lambda rows: rows.head(0), lambda rows: pl.from_pandas(rows).head(0)])
def test_an_empty_frame_of_feedback_is_no_data_for_all_that_needs_actions(
    rows: Any, logs: dict[str, pd.DataFrame]
) -> None:
    results = recsys_monitor.check(logs["exposures"], rows(logs["feedback"]), config={"window": "2d"})
    frame = results.frame()
    assert results.status == "no_data"
    assert set(frame[frame.check == "feedback"].status) == {"no_data"}
    assert frame[frame.check == "feedback"].value.notna().sum() == 0
    assert set(frame[frame.check == "feedback"].detail) == {"the frame of the feedback has no row"}
    assert frame[frame.check == "exposure"].value.notna().any()


def test_an_empty_catalog_covers_nothing(logs: dict[str, pd.DataFrame]) -> None:
    config = {"window": "2d", "rules": [{"pack": "lists"}]}
    results = recsys_monitor.check(logs["exposures"], catalog=logs["catalog"].head(0), config=config)
    frame = results.frame().set_index("series")
    of_catalog = ["coverage by=item", "gini", "unknown_category", "intra_list_diversity", "catalog_items"]
    assert set(frame.loc[of_catalog].status) == {"no_data"}
    assert frame.loc["coverage by=pv", "status"] == "ok"
    assert results.status == "no_data"
    assert results.notes == ("the frame of the catalog has no row",)


ONE = pd.DataFrame({"a": [1]})
TWICE = pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])
TWO = {"recommenders": [{"name": "a"}, {"name": "b"}]}
SHOP = {"recommenders": [{"name": "shop"}]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"exposures": pd.DataFrame({"request_id": ["r"], "ts": [START]})},
            "column user_id (looked for as 'user_id') is missing; the frame has 'request_id', 'ts'",
        ),
        ({"exposures": pd.DataFrame()}, "exposures: the frame has no column"),
        ({"exposures": [{"a": 1}]}, "exposures is of type list; pass a pandas, Polars or Arrow frame"),
        (
            {"exposures": pl.LazyFrame({"a": [1]})},
            "exposures is a lazy frame (LazyFrame); pass the result of its collect()",
        ),
        ({"exposures": TWICE}, "exposures: the frame has two columns called 'a'"),
        ({"exposures": pd.DataFrame({"a": ["text", 1]})}, "exposures: the frame cannot be read"),
        ({"feedback": pd.DataFrame({"a": [1]})}, "pass the exposures, or the samples of a model"),
        (
            {"exposures": ONE, "columns": {"item_id": "sku"}},
            "columns: no frame has the column 'sku' for 'item_id'",
        ),
        ({"exposures": ONE, "columns": {"catalog": {"item_id": "sku"}}}, "columns: 'catalog' is not passed"),
        ({"exposures": ONE, "columns": {"catalogue": {"item_id": "sku"}}}, "columns: 'catalogue' is no log"),
        (
            {"exposures": ONE, "config": ["shop"]},
            "config: 1 problem\n  must be a mapping or the path of a file, not list",
        ),
        ({"exposures": ONE, "config": {"recommenders": "shop"}}, "recommenders: must be a list, not text"),
        ({"exposures": ONE, "config": {"logs": "shop.parquet"}}, "logs: must be a mapping, not text"),
        (
            {"exposures": ONE, "config": {"logs": {"exposures": 5}}},
            "logs.exposures: must be a mapping",
        ),
        ({"exposures": ONE, "columns": ["sku"]}, "columns: must be a mapping, not list"),
        ({"exposures": ONE, "config": {"windw": "1h"}}, "config: 1 problem\n  windw: "),
        ({"exposures": ONE, "config": {"metrics": {"disable": ["gina"]}}}, "metrics.disable[0]: "),
        (
            {"exposures": ONE, "config": SHOP, "recommender": "shp"},
            "no recommender is called 'shp'; did you mean 'shop'?",
        ),
        (
            {"exposures": ONE, "config": TWO},
            "the config has 2 recommenders; pass recommender= one of: 'a', 'b'",
        ),
    ],
)
def test_a_mistake_is_a_sentence_that_names_it(given: dict[str, Any], message: str) -> None:
    with pytest.raises((recsys_monitor.FrameError, recsys_monitor.ConfigError)) as raised:
        recsys_monitor.check(**given)
    assert message in str(raised.value)


def test_types_that_duckdb_lacks_are_read_as_from_parquet(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "request_id": pa.array(["r1", "r1"]).dictionary_encode(),
            "user_id": pa.array(["u", "u"], pa.string_view()),
            "item_id": pa.array([1, 2], pa.uint8()),
            "ts": pa.array([START, START], pa.timestamp("ns", "UTC")),
            "score": pa.array([0.5, 0.25], pa.float16()),
            "price": pa.array([1, 2]).cast(pa.decimal256(50, 2)),
            "scene": pa.nulls(2),
        }
    )
    catalog = pa.table(
        {"item_id": [1, 2], "vector": pa.array([[1.0, 0.0], [0.0, 1.0]], pa.list_(pa.float32(), 2))}
    )
    import pyarrow.parquet as pq

    pq.write_table(rows, tmp_path / "exposures.parquet")
    pq.write_table(catalog, tmp_path / "catalog.parquet")
    (tmp_path / "shop.yaml").write_text(
        "engine: {threads: 1}\nrecommenders:\n- name: shop\n  logs:\n"
        "    exposures: {path: exposures.parquet}\n    catalog: {path: catalog.parquet}\n"
    )
    judged, _ = judge(tmp_path / "shop.yaml", None, None, None)
    results = recsys_monitor.check(rows, catalog=catalog, config=tmp_path / "shop.yaml")
    assert as_json(results) == as_json(judged)
    frame = results.frame().set_index("series")
    assert frame.loc["intra_list_diversity", "value"] == pytest.approx(1.0)
    assert (
        frame.loc["score_health by=mean", "value"] == 0.375 if "score_health by=mean" in frame.index else True
    )


@pytest.mark.parametrize("freq", ["h", "D", "M"])
def test_a_period_of_pandas_is_the_time_of_its_start_and_no_count_since_1970(freq: str) -> None:
    assert starts(pd.Series(pd.period_range("2026-03-01", periods=1, freq=freq)), window="1h") == [
        "2026-03-01T00"
    ]


@pytest.mark.parametrize("start", [date(2026, 1, 5), np.datetime64("2026-01-05"), "2026-01-05", START])
def test_a_time_may_be_a_text_a_date_or_a_time_of_numpy_or_pandas(start: Any) -> None:
    assert span_of(start, None) == (datetime(2026, 1, 5, tzinfo=UTC), None)
    assert type(span_of(start, None)[0]) is datetime


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("yesterday", None, "start: 'yesterday' is not a time; write it as 2026-01-31"),
        (None, pd.NaT, "end: 'NaT' is not a time"),
        (np.datetime64("NaT"), None, "start: 'NaT' is not a time"),
        (5, None, "start: '5' is not a time"),
        ("0001-01-01T00:00:00+05:00", None, "is not a time"),
        (None, "9999-12-31", "end: '9999-12-31' must lie between 1970 and 2199"),
        ("2026-01-06", "2026-01-05", "end must be later than start"),
        ("2026-01-05", "2026-01-05", "end must be later than start"),
    ],
)
def test_a_wrong_span_is_a_sentence_before_anything_is_read(start: Any, end: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        recsys_monitor.check(ONE, start=start, end=end)


def test_a_passed_deadline_does_not_lose_the_frames(logs: dict[str, pd.DataFrame]) -> None:
    """The engines are new after it. The next window must find the rows there again."""
    from monitor.cli.one_off import one_off
    from recsys_monitor.opened import open_frames

    opened = open_frames({"exposures": logs["exposures"]}, {"window": "2d"}, None, None)
    with one_off(opened.config, opened.checked, "", frames=opened.frames) as judging:
        now = datetime.now(UTC)
        judging.look(now)
        windows, _ = judging.windows(None, None, now)
        before = [one.results for one in judging.judge(windows, now)]
        judging.runtime.renew()
        assert [one.results for one in judging.judge(windows, now)] == before


def test_without_rules_objectives_and_bounds_nothing_is_judged(logs: dict[str, pd.DataFrame]) -> None:
    results = recsys_monitor.check(logs["exposures"], config={"window": "2d"})
    assert results.status is Status.NO_DATA
    assert "nothing is judged" in results.notes[0]
    assert results.frame().query("metric == 'volume'").value.notna().all()
    objective = {"metric": "failure", "labels": {"by": "pv"}, "max": 1}
    judged = recsys_monitor.check(logs["exposures"], config={"window": "2d", "objectives": [objective]})
    assert (judged.status, judged.notes) == (Status.OK, ())


def test_spark_in_the_config_does_not_matter(folder: Path, logs: dict[str, pd.DataFrame]) -> None:
    text = (folder / "shop.yaml").read_text().replace("threads: 1", "kind: spark")
    (folder / "spark.yaml").write_text(text)
    results = recsys_monitor.check(
        **logs, config=folder / "spark.yaml", start=START, end=START + timedelta(hours=6)
    )
    assert results.frame().query("metric == 'volume'").value.notna().all()
