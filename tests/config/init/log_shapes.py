"""Logs in the shapes that real teams write, with known contents; each function is named after its shape.

Every log holds the same 600 requests of five items within six hours. Three lists show an item twice.
Users clicked exactly 150 of the 3,000 exposures, which is a click rate of 5 %.
"""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

START = datetime(2026, 1, 5, 1, tzinfo=UTC)
REQUESTS, LENGTH, CLICKS, TWICE = 600, 5, 150, 3
EXPOSURES = REQUESTS * LENGTH
CLICK_RATE = CLICKS / EXPOSURES
KEY = ["request_id", "user_id", "ts"]


@dataclass(frozen=True)
class Shape:
    """One log that was written to a folder, and the expected result of `init`.

    `columns` are some of the exposures' columns that the config must name, `text` is what it must contain.
    `bad_values` are values of the exposures that cannot be read, which `init` cannot repair.
    """

    log: str
    feedback: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    text: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    bad_values: int = 0


@dataclass(frozen=True)
class Refused:
    """A log that `init` must refuse, and the expected advice."""

    log: str
    said: tuple[str, ...]


def exposures() -> pd.DataFrame:
    """One row an exposure, with our own column names."""
    rng = np.random.default_rng(11)
    which = np.repeat(np.arange(REQUESTS), LENGTH)
    seconds = np.sort(rng.uniform(0, 6 * 3600, REQUESTS)).round()
    items = np.stack([rng.choice(300, LENGTH, replace=False) for _ in range(REQUESTS)])
    for request in (101, 303, 505):
        items[request, 3] = items[request, 0]
    scores = np.sort(rng.uniform(0.01, 0.99, (REQUESTS, LENGTH)), axis=1)[:, ::-1].round(6)
    return pd.DataFrame(
        {
            "request_id": [f"r{n:05d}" for n in which],
            "user_id": [f"u{n:03d}" for n in rng.integers(0, 120, REQUESTS)[which]],
            "ts": (pd.Timestamp(START) + pd.to_timedelta(seconds, unit="s"))[which],
            "item_id": [f"i{n:03d}" for n in items.ravel()],
            "position": np.tile(np.arange(1, LENGTH + 1), REQUESTS),
            "score": scores.ravel(),
        }
    )


def clicks(shown: pd.DataFrame) -> pd.DataFrame:
    """A click within ten minutes on one item of every fourth list."""
    rng = np.random.default_rng(12)
    rows = np.array([request * LENGTH + request // 4 % LENGTH for request in range(0, REQUESTS, 4)])
    found = shown.iloc[rows].drop(columns=["position", "score"]).reset_index(drop=True)
    delays = pd.to_timedelta(rng.integers(5, 600, len(found)), unit="s")
    return found.assign(ts=found["ts"] + delays, event="click")


def listed(rows: pd.DataFrame, join: Callable[[list[Any]], Any] = list) -> pd.DataFrame:
    """One row a request, with lists of items and scores."""
    return rows.groupby(KEY, sort=False).agg({"item_id": list, "score": list}).map(
        join
    ).reset_index()  # fmt: skip


def _csv(frame: pd.DataFrame, path: Path, **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, **options)


def _parquet(frame: pd.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(path)


def _pair(folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows) -> Shape:
    """Exposures and clicks as CSV files, each changed in the same way."""
    shown = exposures()
    _csv(change(shown), folder / "exposures.csv")
    _csv(change(clicks(shown)), folder / "feedback.csv")
    return Shape("exposures.csv")


def flat_parquet(folder: Path) -> Shape:
    shown = exposures()
    _parquet(shown, folder / "exposures.parquet")
    _parquet(clicks(shown), folder / "feedback.parquet")
    return Shape("exposures.parquet", columns={name: name for name in shown.columns})


def lists_in_parquet(folder: Path) -> Shape:
    shown = exposures()
    _parquet(listed(shown), folder / "exposures.parquet")
    _parquet(clicks(shown), folder / "feedback.parquet")
    return Shape("exposures.parquet")


def _nested(shown: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for number, ((request, user, ts), rows) in enumerate(shown.groupby(KEY, sort=False)):
        recs = [
            {"iid": item, "rank": int(place), "pctr": float(score)}
            for item, place, score in zip(rows["item_id"], rows["position"], rows["score"], strict=True)
        ]
        moment = ts.strftime("%Y-%m-%dT%H:%M:%SZ")
        yield {
            "reqId": request, "uid": user, "ts": moment, "recs": recs, "ab": {"exp": "AB"[number % 2]},
        }  # fmt: skip


_NESTED_COLUMNS = {
    "request_id": "reqId", "user_id": "uid", "ts": "ts", "item_id": "recs[].iid",
    "position": "recs[].rank", "score": "recs[].pctr", "arm": "ab.exp",
}  # fmt: skip


def structures_in_json_lines(folder: Path) -> Shape:
    shown = exposures()
    text = "".join(json.dumps(one) + "\n" for one in _nested(shown))
    (folder / "exposures.jsonl").write_text(text, "utf-8")
    rows = clicks(shown).assign(ts=lambda one: one["ts"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    rows.to_json(folder / "feedback.jsonl", orient="records", lines=True)
    return Shape("exposures.jsonl", columns=_NESTED_COLUMNS)


def structures_in_parquet(folder: Path) -> Shape:
    shown = exposures()
    pq.write_table(pa.Table.from_pylist(list(_nested(shown))), folder / "exposures.parquet")
    _parquet(clicks(shown), folder / "feedback.parquet")
    return Shape("exposures.parquet", columns=_NESTED_COLUMNS)


def _texts(folder: Path, join: Callable[[list[Any]], str], separator: str) -> Shape:
    shown = exposures()
    _csv(listed(shown, join), folder / "exposures.csv")
    _csv(clicks(shown), folder / "feedback.csv")
    return Shape("exposures.csv", text=(f'list_separator: "{separator}"',))


def lists_with_spaces_in_csv(folder: Path) -> Shape:
    return _texts(folder, lambda values: " ".join(map(str, values)), " ")


def lists_with_bars_in_csv(folder: Path) -> Shape:
    return _texts(folder, lambda values: "|".join(map(str, values)), "|")


def lists_of_numpy_in_csv(folder: Path) -> Shape:
    return _texts(folder, lambda values: f"[{'  '.join(map(repr, values))}]", " ")


def lists_of_json_in_csv(folder: Path) -> Shape:
    return _texts(folder, json.dumps, ",")


def tsv_with_an_ending_of_its_own(folder: Path) -> Shape:
    shown = exposures()
    _csv(shown, folder / "exposures" / "2026-01-05.log", sep="\t")
    _csv(clicks(shown), folder / "feedback" / "clicks.tsv", sep="\t")
    return Shape("exposures", text=("format: csv",))


def json_lines_without_an_ending(folder: Path) -> Shape:
    shown = exposures()
    for name, rows in (("exposures", shown), ("feedback", clicks(shown))):
        (folder / name / "2026-01-05").mkdir(parents=True)
        rows.to_json(folder / name / "2026-01-05" / "events-0", orient="records", lines=True,
                     date_format="iso")  # fmt: skip
    return Shape("exposures", text=("format: json",))


def seconds_since_1970(folder: Path) -> Shape:
    return _pair(folder, lambda rows: rows.assign(ts=rows["ts"].astype("datetime64[s, UTC]").astype("int64")))


def milliseconds_since_1970(folder: Path) -> Shape:
    return _pair(
        folder, lambda rows: rows.assign(ts=rows["ts"].astype("datetime64[ms, UTC]").astype("int64"))
    )


def feedback_in_local_time(folder: Path) -> Shape:
    """The clicks are five hours ahead of the exposures, and no time carries an offset."""
    shown = exposures()
    done = clicks(shown)
    _csv(shown.assign(ts=shown["ts"].dt.strftime("%Y-%m-%d %H:%M:%S")), folder / "exposures.csv")
    local = (done["ts"] + timedelta(hours=5)).dt.strftime("%Y-%m-%d %H:%M:%S")
    _csv(done.assign(ts=local), folder / "feedback.csv")
    return Shape("exposures.csv", text=("timezone: Etc/GMT-5",))


def ids_that_look_like_floats(folder: Path) -> Shape:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        request = rows["request_id"].map(lambda one: f"5475173265{one[1:]}e23")
        return rows.assign(request_id=request, user_id=rows["user_id"].map(lambda one: f"{one[1:]}e400"))

    return _pair(folder, change)


def ids_beyond_64_bits(folder: Path) -> Shape:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.assign(
            request_id=rows["request_id"].map(lambda one: 99_999_999_999_999_900_000 + int(one[1:])),
            item_id=rows["item_id"].map(lambda one: 9_300_000_000_000_000_000 + int(one[1:])),
        )
        return rows.assign(score=rows["score"] * 1e20) if "score" in rows else rows

    return _pair(folder, change)


def uuids(folder: Path) -> Shape:
    def of(value: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, value))

    return _pair(folder, lambda rows: rows.assign(**{
        name: rows[name].map(of) for name in ("request_id", "user_id", "item_id")
    }))  # fmt: skip


def an_empty_user_column(folder: Path) -> Shape:
    shown = exposures().assign(user_id=None)
    _csv(shown, folder / "exposures.csv")
    _csv(clicks(shown), folder / "feedback.csv")
    return Shape(
        "exposures.csv",
        columns={"user_id": "user_id", "ts": "ts"},
        said=("user_id is empty in every sampled row",),
    )


def a_user_column_of_another_name(folder: Path) -> Shape:
    shown = exposures()
    _csv(shown.rename(columns={"user_id": "konto"}), folder / "exposures.csv")
    done = clicks(shown).rename(columns={"user_id": "who", "item_id": "thing"}).drop(columns="request_id")
    _csv(done, folder / "feedback.csv")
    return Shape("exposures.csv", columns={"user_id": "konto"}, text=("user_id: who", "item_id: thing"))


def a_catalog_in_a_sibling_folder(folder: Path) -> Shape:
    shown = exposures()
    _parquet(shown, folder / "impressions_v2" / "part-0.parquet")
    _parquet(clicks(shown), folder / "clicks" / "part-0.parquet")
    items = pd.DataFrame({"id": [f"i{n:03d}" for n in range(300)], "category": ["a", "b", "c"] * 100})
    _parquet(items, folder / "items" / "items.parquet")
    return Shape("impressions_v2/*.parquet", text=("items/*.parquet", "item_id: id", "- pack: catalog"))


def experiment_columns(folder: Path) -> Shape:
    shown = exposures()
    shown["ab_variant"] = shown["user_id"].map(lambda one: ("control", "treatment")[int(one[1:]) % 2])
    shown["country"] = shown["user_id"].map(lambda one: ("de", "fr", "it")[int(one[1:]) % 3])
    _csv(shown, folder / "exposures.csv")
    _csv(clicks(shown).drop(columns=["ab_variant", "country"]), folder / "feedback.csv")
    return Shape(
        "exposures.csv", columns={"arm": "ab_variant"},
        text=("experiments:", "column: arm", "split: {control: 1, treatment: 1}"),
    )  # fmt: skip


def hive_partitions(folder: Path) -> Shape:
    shown = exposures()
    for name, rows in (("exposures", shown), ("feedback", clicks(shown))):
        for hour, part in rows.groupby(rows["ts"].dt.hour):
            _parquet(
                part, folder / name / "date=2026-01-05" / f"hour={hour:02d}" / "part-00000.snappy.parquet"
            )
        (folder / name / "_SUCCESS").touch()
    return Shape("exposures")


def gzip_files_by_the_hour(folder: Path) -> Shape:
    shown = exposures()
    for name, rows in (("exposures", shown), ("feedback", clicks(shown))):
        (folder / name).mkdir()
        for hour, part in rows.groupby(rows["ts"].dt.hour):
            text = part.to_json(orient="records", lines=True, date_format="iso")
            (folder / name / f"2026-01-05T{hour:02d}.json.gz").write_bytes(gzip.compress(text.encode()))
    return Shape("exposures/*.json.gz")


def one_log_of_all_events(folder: Path) -> Shape:
    shown = exposures().assign(event_type="impression")
    done = clicks(shown).drop(columns="event").assign(event_type="click")
    rows = pd.concat([shown, done]).sort_values("ts", kind="stable")
    _csv(rows, folder / "events.csv")
    return Shape("events.csv", text=("only: {event_type: impression}", "only: {event: click}"))


def names_in_camel_case(folder: Path) -> Shape:
    names = {
        "request_id": "requestId", "user_id": "customerId", "ts": "eventTime", "item_id": "productId",
        "position": "displayPosition", "score": "modelScore", "event": "eventType",
    }  # fmt: skip
    _pair(folder, lambda rows: rows.rename(columns=names))
    return Shape("exposures.csv", columns={ours: names[ours] for ours in list(names)[:-1]})


def names_in_another_language(folder: Path) -> Shape:
    names = {
        "request_id": "запрос", "user_id": "пользователь", "ts": "время", "item_id": "товар",
        "position": "место", "score": "оценка", "event": "событие",
    }  # fmt: skip
    _pair(folder, lambda rows: rows.rename(columns=names))
    return Shape("exposures.csv", columns={ours: names[ours] for ours in list(names)[:-1]})


def semicolons_and_decimal_commas(folder: Path) -> Shape:
    shown = exposures()
    _csv(shown, folder / "exposures.csv", sep=";", decimal=",")
    _csv(clicks(shown), folder / "feedback.csv", sep=";")
    return Shape("exposures.csv", said=("'score' has numbers with a decimal comma",),
                 bad_values=EXPOSURES)  # fmt: skip


def csv_without_header(folder: Path) -> Refused:
    _csv(exposures(), folder / "exposures.csv", header=False)
    return Refused("exposures.csv", ("line 1 holds values instead of column names",))


def bzip2_files(folder: Path) -> Refused:
    _csv(exposures(), folder / "exposures.csv.bz2")
    return Refused("exposures.csv.bz2", ("bzip2", "gzip"))


def ratings_of_films(folder: Path) -> Refused:
    rng = np.random.default_rng(5)
    ratings = pd.DataFrame(
        {
            "userId": rng.integers(1, 200, 3000), "movieId": rng.integers(1, 900, 3000),
            "rating": rng.integers(1, 11, 3000) / 2, "timestamp": 1_700_000_000 + rng.integers(0, 10**7, 3000),  # noqa: E501
        }
    )  # fmt: skip
    _csv(ratings, folder / "ratings.csv")
    return Refused("ratings.csv", ("what users did, not what they were shown",))


def items_and_labels_in_one_text(folder: Path) -> Refused:
    shown = exposures()
    shown["item_id"] = [f"N{item[1:]}-{number % 7 == 0:d}" for number, item in enumerate(shown["item_id"])]
    rows = shown.groupby(KEY, sort=False)["item_id"].agg(" ".join).reset_index()
    _csv(rows.rename(columns={"request_id": "impression_id", "item_id": "impressions", "ts": "time"}),
         folder / "behaviors.tsv", sep="\t")  # fmt: skip
    return Refused("behaviors.tsv", ("'impressions' holds an item and a label in one text",))


def scored_samples_of_a_model(folder: Path) -> Refused:
    rng = np.random.default_rng(6)
    rows = pd.DataFrame({"split": ["train", "test"] * 500, "score": rng.uniform(size=1000),
                         "label": rng.integers(0, 2, 1000), "feature": rng.normal(size=1000)})  # fmt: skip
    _csv(rows, folder / "samples.csv")
    return Refused("samples.csv", ("logs.samples",))


WATCHED: tuple[Callable[[Path], Shape], ...] = (
    flat_parquet, lists_in_parquet, structures_in_json_lines, structures_in_parquet,
    lists_with_spaces_in_csv, lists_with_bars_in_csv, lists_of_numpy_in_csv, lists_of_json_in_csv,
    tsv_with_an_ending_of_its_own, json_lines_without_an_ending, seconds_since_1970,
    milliseconds_since_1970, feedback_in_local_time, ids_that_look_like_floats, ids_beyond_64_bits, uuids,
    an_empty_user_column, a_user_column_of_another_name, a_catalog_in_a_sibling_folder, experiment_columns,
    hive_partitions, gzip_files_by_the_hour, one_log_of_all_events, names_in_camel_case,
    names_in_another_language, semicolons_and_decimal_commas,
)  # fmt: skip
REFUSED: tuple[Callable[[Path], Refused], ...] = (
    csv_without_header, bzip2_files, ratings_of_films, items_and_labels_in_one_text,
    scored_samples_of_a_model,
)  # fmt: skip
