"""A pack's rule on a column that the log does not have: said plainly, and no fault of the log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from monitor.core.results import Status
from monitor.history.kept import KeptPairs
from monitor.judging.evaluate import Evaluation, Evaluator
from monitor.rules.suites import load_rules
from monitor.settings.recommender import RecommenderSettings
from monitor.window.verdicts import window_status
from tests.shop import DAY, Shop, hour, rows, ruled


def judged(shop: Shop, *rules: dict[str, Any], late: str | None = None, number: int = 0) -> Evaluation:
    settings = RecommenderSettings.model_validate({**shop.config, "rules": rules})
    loaded = load_rules(settings.rules, shop.folder)
    shop._evaluator = Evaluator(settings, loaded, KeptPairs(shop.folder / "state", "shop"), "salt")
    return shop.judge(hour(number), late)


def verdict(evaluation: Evaluation) -> Status:
    return next(run.status for run in evaluation.runs if run.check == "rules")


@pytest.mark.parametrize("late", [None, "a reason"])
def test_one_rule_of_a_pack_that_does_not_apply_says_so_and_counts_for_nothing(
    shop: Shop, late: str | None
) -> None:
    shop.write("logs/a.parquet", rows(0))
    found = judged(shop, {"pack": "lists"}, late=late)
    gaps = ruled(found, "position_gaps")
    assert gaps.status is Status.UNDEFINED
    assert gaps.detail == "not applicable: the exposures log has no column position"
    assert (gaps.value, gaps.samples, gaps.evidence) == (None, None, ())
    assert ruled(found, "duplicate_item").status is (Status.LATE if late else Status.OK)
    assert verdict(found) is (Status.LATE if late else Status.OK)
    assert window_status([gaps, ruled(found, "duplicate_item")]) is verdict(found)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ({"pack": "order"}, "score_not_falling"),  # asked for, and it has nothing else
        ({"pack": "scores"}, "score_null"),
        ({"pack": "arithmetic", "parameters": {"denominators": ["user_id", "prise"]}}, "zero_denominator"),
    ],
)
def test_what_somebody_asked_for_by_name_is_an_error(shop: Shop, rule: dict[str, Any], name: str) -> None:
    shop.write("logs/a.parquet", rows(0))
    found = judged(shop, rule)
    assert ruled(found, name).status is Status.ERROR
    assert "no column" in ruled(found, name).detail
    assert verdict(found) is Status.ERROR


def test_a_column_that_the_config_names_or_that_other_files_have_is_missing_and_not_inapplicable(
    shop: Shop,
) -> None:
    shop.config["logs"]["exposures"]["columns"] = {"position": "rank"}
    shop.write("logs/a.parquet", rows(0))
    assert ruled(judged(shop, {"pack": "lists"}), "position_gaps").status is Status.ERROR
    shop.config["logs"]["exposures"]["columns"] = {}
    shop.write("logs/b.parquet", rows(1, position=1))
    assert ruled(judged(shop, {"pack": "lists"}), "position_gaps").status is Status.ERROR
    assert ruled(judged(shop, {"pack": "lists"}, number=1), "position_gaps").status is not Status.ERROR


def test_a_suite_of_ones_own_may_ask_whether_a_column_is_there(shop: Shop) -> None:
    shop.rule("there", "hard", "expect_column_to_exist", column="item_id")
    shop.rule("missing", "hard", "expect_column_to_exist", column="position")
    shop.rule("gaps", "hard", "expect_column_values_to_be_between", column="position", min_value=1)
    shop.write("logs/a.parquet", rows(0))
    found = shop.judge(hour(0))
    assert ruled(found, "there").status is Status.OK
    assert ruled(found, "missing").status is Status.VIOLATED
    assert ruled(found, "gaps").status is Status.ERROR


def test_a_violation_of_the_whole_table_has_no_rows_to_show_and_says_nothing_of_them(shop: Shop) -> None:
    kwargs = {"column": "item_id", "type_": "BIGINT"}
    meta = {"rule": "type", "kind": "hard"}
    shop.expectations += [{"type": "expect_column_values_to_be_of_type", "kwargs": kwargs, "meta": meta}]
    shop.write("logs/a.parquet", rows(0), DAY + timedelta(hours=2))
    broken = ruled(shop.judge(hour(0)), "type")
    assert broken.status is Status.VIOLATED
    assert broken.detail == "the table exposures as a whole violates the rule"
