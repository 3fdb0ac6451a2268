"""A window without rows is judged like any other, and nothing in it is ok or an error."""

from __future__ import annotations

import pandas as pd
import pytest

from monitor.results import Status

from .conftest import Shop, hour, rows, ruled


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_a_rule_on_any_column_of_the_log_says_no_data_whatever_the_type_of_the_ids(
    shop: Shop, ids: str
) -> None:
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
