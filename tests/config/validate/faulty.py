"""A small shop with valid logs of the last six hours; each fault changes its logs or its config.

Each fault is made as a newcomer makes it. What `validate` says of it is in faults.yaml, under its name.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

REQUESTS, LENGTH, ITEMS, USERS, HOURS = 300, 5, 100, 60, 6
EXPOSURES = REQUESTS * LENGTH
CLICKS = EXPOSURES // 5


class Shop:
    """The logs as tables and the config as a dict; a fault changes them, `write` writes them to disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rng = np.random.default_rng(5)
        until = pd.Timestamp(datetime.now(UTC)).floor("s") - pd.Timedelta("3min")
        which = np.repeat(np.arange(REQUESTS), LENGTH)
        seconds = np.sort(rng.uniform(0, HOURS * 3600, REQUESTS)).round()
        items = np.stack([rng.choice(ITEMS, LENGTH, replace=False) for _ in range(REQUESTS)])
        self.exposures = pd.DataFrame(
            {
                "request_id": [f"r{n}" for n in which],
                "user_id": [f"u{n}" for n in rng.integers(0, USERS, REQUESTS)[which]],
                "ts": until - pd.to_timedelta(HOURS * 3600 - seconds[which], unit="s"),
                "item_id": [f"i{n}" for n in items.ravel()],
                "position": np.tile(np.arange(1, LENGTH + 1), REQUESTS),
                "scene": rng.choice(["home", "detail"], REQUESTS)[which],
            }
        )
        clicked = self.exposures.iloc[::5]
        self.feedback = clicked[["request_id", "user_id", "item_id"]].assign(
            ts=clicked.ts + pd.Timedelta("40s"), event="click"
        )
        ids = [f"i{n}" for n in range(ITEMS)]
        self.catalog = pd.DataFrame({"item_id": ids, "category": [f"c{n % 7}" for n in range(ITEMS)]})
        self.users = pd.DataFrame({"user_id": [f"u{n}" for n in range(USERS)], "country": "PT"})
        self.recommender: dict[str, Any] = {
            "name": "shop",
            "window": "1h",
            "logs": {name: {"path": f"{name}.parquet"} for name in self.tables()},
            "slices": {"by": ["scene", "catalog.category"]},
            "metrics": {"events": {"click": {}}},
            "rules": [{"pack": "lists"}],
        }
        self.afterwards: list[Callable[[], object]] = []

    def tables(self) -> dict[str, pd.DataFrame]:
        names = ("exposures", "feedback", "catalog", "users")
        return {name: getattr(self, name) for name in names}

    def log(self, name: str = "exposures") -> dict[str, Any]:
        log: dict[str, Any] = self.recommender["logs"][name]
        return log

    def file(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")

    def write(self) -> None:
        for name, table in self.tables().items():
            table.to_parquet(self.folder / f"{name}.parquet", index=False)
        for one in self.afterwards:
            one()
        config = {"state": "./state", "engine": {"threads": 1}, "recommenders": [self.recommender]}
        self.file("shop.yaml", yaml.safe_dump(config, sort_keys=False))


def a_column_is_still_todo(shop: Shop) -> None:
    shop.log()["columns"] = {"position": "TODO"}


def a_path_matches_no_file(shop: Shop) -> None:
    shop.log()["path"] = "logs/2026/*.parquet"


def a_required_column_is_missing(shop: Shop) -> None:
    shop.exposures = shop.exposures.rename(columns={"item_id": "itemid"})


def a_mapped_column_is_in_no_file(shop: Shop) -> None:
    shop.log()["columns"] = {"position": "rnak"}
    shop.exposures = shop.exposures.rename(columns={"position": "rank"})


def a_slice_column_does_not_exist(shop: Shop) -> None:
    shop.recommender["slices"]["by"] = ["scen"]


def a_supplier_does_not_exist(shop: Shop) -> None:
    shop.recommender["slices"]["by"] = ["catalog.supplier"]


def a_slice_column_of_the_users_does_not_exist(shop: Shop) -> None:
    shop.recommender["slices"]["by"] = ["users.contry"]


def a_slice_needs_a_log_that_is_not_given(shop: Shop) -> None:
    del shop.recommender["logs"]["users"]
    shop.recommender["slices"]["by"] = ["users.country"]


def a_slice_by_new_items_needs_a_creation_time(shop: Shop) -> None:
    shop.recommender["slices"]["by"] = ["new_item"]


def an_experiment_column_does_not_exist(shop: Shop) -> None:
    shop.recommender["experiments"] = [{"name": "ranker", "column": "arm", "split": {"a": 1, "b": 1}}]


def an_objective_needs_a_column_that_is_missing(shop: Shop) -> None:
    shop.recommender["objectives"] = [{"metric": "auc", "min": 0.5}]


def novelty_by_a_column_that_is_missing(shop: Shop) -> None:
    shop.recommender["metrics"]["novelty"] = ["supplier"]


def a_rule_needs_a_column_that_is_missing(shop: Shop) -> None:
    rule = {
        "type": "expect_column_values_to_not_be_null",
        "kwargs": {"column": "supplier"},
        "meta": {"rule": "no_supplier", "kind": "hard", "table": "catalog"},
    }
    shop.file("own.yaml", yaml.safe_dump({"name": "own", "expectations": [rule]}))
    shop.recommender["rules"] = [{"suite": "own.yaml"}]


def the_protocol_is_unknown(shop: Shop) -> None:
    shop.log()["path"] = "s4://bucket/exposures/*.parquet"


def the_item_is_a_record(shop: Shop) -> None:
    shop.exposures["item_id"] = [{"id": one, "score": 0.5} for one in shop.exposures["item_id"]]


def no_time_can_be_read(shop: Shop) -> None:
    shop.exposures["ts"] = "yesterday"


def the_user_is_a_time(shop: Shop) -> None:
    del shop.recommender["logs"]["feedback"], shop.recommender["logs"]["users"], shop.recommender["metrics"]
    shop.log()["columns"] = {"user_id": "ts"}


def some_times_cannot_be_read(shop: Shop) -> None:
    times = shop.exposures["ts"].astype(str).astype(object)
    times[::10] = "n/a"
    shop.exposures["ts"] = times


def a_date_is_written_as_one_number(shop: Shop) -> None:
    shop.catalog["created_at"] = 20260301


def the_vectors_are_texts(shop: Shop) -> None:
    shop.catalog["vector"] = [f"[{n}, 1]" for n in range(ITEMS)]


def the_user_column_is_empty(shop: Shop) -> None:
    shop.exposures["user_id"] = pd.Series([None] * EXPOSURES, dtype="string")


def the_request_column_is_empty(shop: Shop) -> None:
    shop.exposures["request_id"] = pd.Series([None] * EXPOSURES, dtype="string")


def all_times_are_later_than_their_file(shop: Shop) -> None:
    shop.exposures["ts"] = shop.exposures["ts"] + pd.Timedelta("9h")
    shop.feedback["ts"] = shop.feedback["ts"] + pd.Timedelta("9h")


def the_logs_are_old(shop: Shop) -> None:
    for table in (shop.exposures, shop.feedback):
        table["ts"] = table["ts"] - pd.Timedelta("30D")


def the_feedback_is_shifted_by_eight_hours(shop: Shop) -> None:
    shop.feedback["ts"] = shop.feedback["ts"] - pd.Timedelta("8h")


def the_feedback_knows_other_users(shop: Shop) -> None:
    shop.feedback["user_id"] = "x" + shop.feedback["user_id"]
    shop.feedback = shop.feedback.drop(columns="request_id")


def the_catalog_knows_none_of_the_items(shop: Shop) -> None:
    shop.catalog["item_id"] = "sku-" + shop.catalog["item_id"]


def the_catalog_knows_half_of_the_items(shop: Shop) -> None:
    shop.catalog = shop.catalog.iloc[: ITEMS // 2]


def no_event_of_the_config_is_in_the_log(shop: Shop) -> None:
    shop.recommender["metrics"]["events"] = {"purchase": {}}


def one_event_of_the_config_is_not_in_the_log(shop: Shop) -> None:
    shop.recommender["metrics"]["events"] = {"click": {}, "purchase": {}}


def a_list_file_does_not_exist(shop: Shop) -> None:
    shop.recommender["rules"] = [{"pack": "blacklist", "parameters": {"blacklist": "blocked.csv"}}]


def _age(path: Path, age: timedelta) -> None:
    at = (datetime.now(UTC) - age).timestamp()
    os.utime(path, (at, at))


def _gz(shop: Shop, keep: float) -> None:
    whole = gzip.compress(shop.exposures.to_csv(index=False).encode())
    path = shop.folder / "exposures.csv.gz"
    path.write_bytes(whole[: int(len(whole) * keep)])
    _age(path, timedelta(hours=1))


def a_compressed_file_is_cut_short(shop: Shop) -> None:
    shop.log()["path"] = "exposures.csv.gz"
    shop.afterwards.append(lambda: _gz(shop, 0.5))


def a_file_is_no_parquet_file(shop: Shop) -> None:
    shop.afterwards.append(lambda: shop.file("exposures.parquet", "request_id,user_id\n"))


def the_folder_is_empty(shop: Shop) -> None:
    (shop.folder / "logs").mkdir()
    shop.log()["path"] = "logs/"


def only_matches_no_row(shop: Shop) -> None:
    shop.log()["only"] = {"scene": "search"}


def only_names_a_column_that_is_missing(shop: Shop) -> None:
    shop.log()["only"] = {"app": "shop"}


def a_file_has_no_row(shop: Shop) -> None:
    shop.exposures = shop.exposures.iloc[:0]


def an_older_file_lacks_a_column(shop: Shop) -> None:
    shop.log()["path"] = "exposures*.parquet"

    def older() -> None:
        path = shop.folder / "exposures-old.parquet"
        shop.exposures.drop(columns="item_id").to_parquet(path)
        _age(path, timedelta(days=1))

    shop.afterwards.append(older)


def the_scorer_is_in_no_folder(shop: Shop) -> None:
    shop.recommender["models"] = {"scorer": "my_ranker:score"}
    shop.recommender["logs"]["samples"] = {"path": "samples.parquet"}
    columns = {"split": "online", "score": 0.5, "label": 1, "ts": shop.exposures.ts}
    samples = shop.exposures[["request_id", "item_id"]].assign(**columns)
    shop.afterwards.append(lambda: samples.to_parquet(shop.folder / "samples.parquet"))


def a_feature_does_not_exist(shop: Shop) -> None:
    the_scorer_is_in_no_folder(shop)
    shop.recommender["models"] = {"features": ["age"]}


def a_pack_needs_a_log_that_is_not_given(shop: Shop) -> None:
    del shop.recommender["logs"]["catalog"]
    shop.recommender["slices"]["by"] = ["scene"]
    shop.recommender["rules"] = [{"pack": "catalog"}]


def no_rule_of_a_pack_has_its_column(shop: Shop) -> None:
    shop.recommender["rules"] = [{"pack": "order"}]


def a_column_has_control_characters_in_its_name(shop: Shop) -> None:
    shop.exposures = shop.exposures.rename(columns={"item_id": "<b>\x1b[31mitem"})


def the_requests_of_a_replay_are_in_no_file(shop: Shop) -> None:
    shop.recommender["replay"] = {
        "allowed_hosts": ["api.test"],
        "targets": [{"name": "new", "url": "https://api.test/{{ user_id }}"}],
        "requests": {"path": "requests/*.parquet"},
    }


def the_requests_of_a_replay_lack_a_time(shop: Shop) -> None:
    the_requests_of_a_replay_are_in_no_file(shop)
    requests = shop.exposures[["request_id", "user_id"]].drop_duplicates()
    folder = shop.folder / "requests"
    shop.afterwards += [folder.mkdir, lambda: requests.to_parquet(folder / "1.parquet")]


def old_requests_of_a_replay_are_fine(shop: Shop) -> None:
    the_requests_of_a_replay_are_in_no_file(shop)
    requests = shop.exposures[["request_id", "user_id", "ts"]].drop_duplicates("request_id")
    requests = requests.assign(ts=requests.ts - pd.Timedelta("90D"))
    folder = shop.folder / "requests"
    shop.afterwards += [folder.mkdir, lambda: requests.to_parquet(folder / "1.parquet")]
