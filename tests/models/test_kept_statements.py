"""The statements of the models' check are kept from window to window as long as they hold."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pandas as pd
import pytest

from monitor.core.results import Result
from monitor.engines.duckdb import Engine
from tests.models.model_world import offline_of, rows, with_default
from tests.models.test_check import LATER, judged, models
from tests.shop import Shop

__all__ = ["models"]


@pytest.fixture
def selected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that were made of expressions and count something; the others are views of files."""
    made: list[str] = []
    own: Callable[..., str] = Engine.select

    def select(self: Engine, *given: object) -> str:
        statement = own(self, *given)
        if "COUNT(" in statement:
            made.append(statement)
        return statement

    monkeypatch.setattr(Engine, "select", select)
    return made


def write(shop: Shop, at: int, served: pd.DataFrame, right: pd.DataFrame) -> None:
    shop.write(f"samples/{at}.parquet", served, LATER)
    shop.write(f"samples/offline-{at}.parquet", offline_of(right), LATER)


def shown(results: list[Result]) -> list[tuple[object, ...]]:
    return sorted(
        (one.metric, sorted(one.labels.items()), str(one.status), one.value, one.samples, one.detail)
        for one in results
    )


def afresh(shop: Shop, at: int) -> list[Result]:
    """The results of a check that has judged nothing before."""
    other = Shop(shop.folder, shop.runtime)
    other.config = shop.config
    return judged(other, at)


def test_kept_statements_give_what_new_ones_give(models: Shop, selected: list[str]) -> None:
    models.config["models"] = {"over": "1h", "by": ["city"], "budget": 2}
    models.write("samples/train.parquet", rows("train", 600, 1), LATER)
    models.write("samples/test.parquet", rows("test", 400, 2), LATER)
    plain, other_model = rows("online", 400, 3, at=5), rows("online", 400, 4, at=6)
    twice = rows("online", 400, 5, at=7)
    other_model.loc[200:, "model"] = "ranker-v8"
    write(models, 5, with_default(plain, "age", 0.5), plain)
    write(models, 6, with_default(other_model, "clicks", 0.5), other_model)
    write(models, 7, pd.concat([twice, twice.head(20)]), twice)
    models.write("samples/8.parquet", rows("online", 400, 6, at=8).drop(columns=["price"]), LATER)
    models.write("samples/9.parquet", rows("online", 400, 7, at=9).assign(city="chur", score=0.5), LATER)
    for at in (5, 6, 7, 8, 9, 6):
        assert shown(judged(models, at)) == shown(afresh(models, at)), at
    assert selected
    del selected[:]
    judged(models, 6)
    assert selected == []
    models.write("samples/train.parquet", rows("train", 600, 8), LATER + timedelta(hours=1))
    assert shown(judged(models, 6)) == shown(afresh(models, 6))
    assert selected
