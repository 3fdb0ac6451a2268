"""A side file that holds nothing makes its rules an error with a reason, and never ok."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
import yaml

from monitor.cli.judge import judge
from monitor.cli.terminal import NOT_JUDGED
from monitor.core.results import Status
from tests.processes import exposures, land

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
HEADER = "item_id,category,starts,ends,active\n"
OF_CATALOG = ("item_not_in_catalog", "item_not_yet_available", "item_expired", "item_off_shelf")
NO_CATALOG = "needs the table catalog: this recommender has no catalog, or it could not be read"
NO_ITEM = "needs the table catalog: the catalog is empty: its files hold no item"
NO_COLUMN = (Status.ERROR, "the table requests has no column category_max, which needs catalog.category")
NO_CATEGORY = (Status.NO_DATA, "nothing to judge: no row of requests has a value in category_max")
EMPTY = pd.DataFrame({name: pd.Series([], dtype=str) for name in HEADER.strip().split(",")})


def rules_of(folder: Path, name: str, content: str | pd.DataFrame) -> dict[str, tuple[Status, str]]:
    """Each rule's status and reason where the file holds this, in a window that shows items."""
    land(folder / "logs" / "1.parquet", exposures(START, 3600))
    if isinstance(content, str):
        (folder / name).write_text(content)
    else:
        content.to_parquet(folder / name)
    shelf = {"available_from": "starts", "available_until": "ends", "status": "active"}
    rules, logs = [{"pack": "blacklist", "parameters": {"blacklist": name}}], {}
    if name.startswith("catalog"):
        logs = {"catalog": {"path": name}}
        rules = [
            {"pack": "catalog", "parameters": shelf},
            {"pack": "category", "parameters": {"max_per_category": 2}},
        ]
    shop = {
        "name": "shop",
        "logs": {"exposures": {"path": "logs/*"}, **logs},
        "rules": rules,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({"recommenders": [shop]}))
    found, code = judge(folder / "config.yaml", None, None, None)
    assert code == NOT_JUDGED
    return {
        one.result.labels["rule"]: (one.result.status, one.result.detail)
        for one in found
        if one.result.metric == "rule"
    }


@pytest.mark.parametrize(
    ("name", "content", "reason", "category"),
    [
        ("catalog.csv", HEADER, NO_ITEM, NO_CATEGORY),
        ("catalog.csv", HEADER + ",,,,\n,x,,,\n", NO_ITEM, NO_CATEGORY),
        ("catalog.csv", "", NO_CATALOG, NO_COLUMN),
        ("catalog.jsonl", "", NO_CATALOG, NO_COLUMN),
        ("catalog.parquet", EMPTY, NO_ITEM, NO_CATEGORY),
    ],
)
def test_an_empty_catalog_is_an_error_of_every_rule_about_it_and_no_category_is_judged(
    tmp_path, name, content, reason, category
):
    found = rules_of(tmp_path, name, content)
    assert {rule: found[rule] for rule in OF_CATALOG} == dict.fromkeys(OF_CATALOG, (Status.ERROR, reason))
    assert found["category_cap"] == category


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.csv", "item_id\n"),
        ("list.csv", "item_id\n\n \n"),
        ("list.csv", "item_id,why\n,x\n"),
        ("list.txt", ""),
        ("list.txt", "# none yet\n\n"),
        ("list.parquet", pd.DataFrame({"item_id": pd.Series([], dtype=str)})),
        ("list.parquet", pd.DataFrame({"item_id": pd.Series([None, None], dtype=str)})),
    ],
)
def test_an_empty_blacklist_is_an_error(tmp_path, name, content):
    file = tmp_path / name
    why = f"the list file {file} is empty: it holds no id. If this is intended, set allow_empty: true"
    assert rules_of(tmp_path, name, content) == {"blacklist": (Status.ERROR, why)}
