"""A window without rows is judged like any other, and nothing in it is ok or an error."""

from __future__ import annotations

import pandas as pd
import pytest

from monitor.core.results import Status
from tests.shop import Shop, hour, rows, ruled


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_rules_have_no_data_in_an_empty_window_with_any_type_of_ids(shop: Shop, ids: str) -> None:
    shop.config["logs"]["catalog"] = {"path": str(shop.folder / "catalog.parquet")}
    shop.rule("priced", "hard", "expect_column_values_to_be_between", column="price", min_value=1)
    shop.rule("known", "hard", "expect_column_values_to_be_in_catalog", column="item_id")
    pairs = {"table": "user_items_day", "column": "exposures", "max_value": 9}
    shop.rule("rare", "hard", "expect_column_values_to_be_between", **pairs)
    frame = rows(0, price=1.5)
    catalog = pd.DataFrame({"item_id": [f"i{n}" for n in range(13)]})
    if ids == "numbers":
        for column in ("request_id", "user_id", "item_id"):
            frame[column] = frame[column].str.replace(r"\D", "", regex=True).astype(int)
        catalog["item_id"] = range(13)
    shop.write("logs/0.parquet", frame)
    shop.write("catalog.parquet", catalog)
    for number, status in ((0, Status.OK), (1, Status.NO_DATA)):
        evaluation = shop.judge(hour(number))
        assert [run.outcome for run in evaluation.runs] == ["ok"] * len(evaluation.runs)
        assert ruled(evaluation, "priced").status is status
        assert ruled(evaluation, "known").status is status
    assert ruled(evaluation, "rare").status is Status.OK  # of the day, which has rows


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_missing_columns_are_not_reported_when_there_are_no_files(shop: Shop, ids: str) -> None:
    shop.config["logs"]["feedback"] = {"path": str(shop.folder / "feedback.parquet")}
    shop.rule("priced", "hard", "expect_column_values_to_be_between", column="price", min_value=1)
    shop.rule("there", "hard", "expect_column_to_exist", column="price")
    inversions = {"column": "score_inversions", "max_value": 0}
    shop.rule("scored", "hard", "expect_column_values_to_be_between", "requests", **inversions)
    shown = rows(0, price=1.5)
    if ids == "numbers":
        for column in ("request_id", "user_id", "item_id"):
            shown[column] = shown[column].str.replace(r"\D", "", regex=True).astype(int)
    shop.write("feedback.parquet", shown[["user_id", "item_id", "ts"]].assign(event="click"))
    written = shop.write("logs/0.parquet", shown)
    before = shop.judge(hour(1))
    written.unlink()  # as rotation does when the log has stood still for longer than files are kept
    after = shop.judge(hour(1))
    for name in ("priced", "there"):
        assert ruled(after, name).detail == "nothing to judge: the exposures log has no file that can be read"
    for one in (before, after):
        for name in ("priced", "there", "scored"):
            assert ruled(one, name).status is Status.NO_DATA
        assert [run.outcome for run in one.runs] == ["ok"] * len(one.runs)
        assert not {result.metric for result in one.results if result.status is Status.ERROR} - {"rule"}
