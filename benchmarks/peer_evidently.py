"""Evidently's side of `make bench-peers`: all metrics that it offers in one of its reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from evidently import BinaryClassification, DataDefinition, Dataset, Recsys, Report  # type: ignore[import-not-found]
from evidently.metrics import (  # type: ignore[import-not-found]
    MAP,
    NDCG,
    Diversity,
    Novelty,
    Personalization,
    PopularityBiasMetric,
    RocAuc,
)

from benchmarks.peer_shared import CATEGORIES, HISTORY, LISTS, main

AUC, ILD = "AUC", "ILD by category"
FEATURES = [f"category_{number}" for number in range(CATEGORIES)]
METRICS: dict[str, Callable[[], Any]] = {
    "coverage": lambda: PopularityBiasMetric(k=10, metric="coverage"),
    "NDCG@10": lambda: NDCG(k=10),
    "MAP@10": lambda: MAP(k=10),
    "novelty": lambda: Novelty(k=10),
    "personalization": lambda: Personalization(k=10),
    AUC: RocAuc,
    ILD: lambda: Diversity(k=10, item_features=FEATURES),
}
_OF_LISTS = ["user_id", "item_id", "position", "clicked"]


def run(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The values of these metrics.

    AUC comes from a report of its own, since in one with a ranking Evidently does not find the scores; so
    does the diversity of lists, since beside a history it wants the categories in the history too.
    """
    values: dict[str, float] = {}
    if ranking := [name for name in metrics if name not in (AUC, ILD)]:
        lists = pd.read_parquet(folder / LISTS, columns=_OF_LISTS)
        history = None
        if {"coverage", "novelty"} & set(ranking):
            history = {"current_train_data": _ranked(pd.read_parquet(folder / HISTORY))}
        values |= _report(ranking, _ranked(lists), history)
    if ILD in metrics:
        lists = pd.read_parquet(folder / LISTS, columns=[*_OF_LISTS, "category"])
        # The cosine of two items needs a column for each category.
        each = {name: (lists["category"] == number).astype(int) for number, name in enumerate(FEATURES)}
        values |= _report([ILD], _ranked(lists.drop(columns="category").assign(**each), FEATURES))
    if AUC in metrics:
        rows = pd.read_parquet(folder / LISTS, columns=["score", "clicked"])
        labelled = BinaryClassification(target="clicked", prediction_probas="score", pos_label=1)
        values |= _report([AUC], Dataset.from_pandas(rows, DataDefinition(classification=[labelled])))
    return values


def _ranked(rows: pd.DataFrame, features: Sequence[str] = ()) -> Any:
    names = {"user_id": "user_id", "item_id": "item_id", "target": "clicked", "prediction": "position"}
    ranking = [Recsys(**names, recommendations_type="rank")]
    return Dataset.from_pandas(rows, DataDefinition(numerical_columns=list(features), ranking=ranking))


def _report(metrics: Sequence[str], lists: Any, history: Any = None) -> dict[str, float]:
    done = Report([METRICS[name]() for name in metrics]).run(lists, None, additional_data=history)
    values = (one["value"] for one in done.dict()["metrics"])
    return {name: _number(value) for name, value in zip(metrics, values, strict=True)}


def _number(value: Any) -> float:
    """The value; of a table by rank that of the last rank, 10."""
    if isinstance(value, dict):
        ranks, by_rank = list(value["rank"].values()), list(value["value"].values())
        return float(by_rank[max(range(len(ranks)), key=ranks.__getitem__)])
    return float(value)


if __name__ == "__main__":
    main(run)
