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

FEATURES = [f"category_{number}" for number in range(CATEGORIES)]
METRICS: dict[str, Callable[[], Any]] = {
    "coverage": lambda: PopularityBiasMetric(k=10, metric="coverage"),
    "NDCG@10": lambda: NDCG(k=10),
    "MAP@10": lambda: MAP(k=10),
    "novelty": lambda: Novelty(k=10),
    "personalization": lambda: Personalization(k=10),
    "AUC": RocAuc,
    "ILD by category": lambda: Diversity(k=10, item_features=FEATURES),
}
_OF_LISTS = ["user_id", "item_id", "position", "clicked"]


def run(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The values of these metrics.

    AUC comes from a report of its own: in one with a ranking Evidently does not find the scores.
    """
    values: dict[str, float] = {}
    if ranking := [name for name in metrics if name != "AUC"]:
        values |= _ranking(folder, ranking)
    if "AUC" in metrics:
        rows = pd.read_parquet(folder / LISTS, columns=["score", "clicked"])
        labelled = BinaryClassification(target="clicked", prediction_probas="score", pos_label=1)
        values |= _report(["AUC"], Dataset.from_pandas(rows, DataDefinition(classification=[labelled])))
    return values


def _ranking(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    diverse = "ILD by category" in metrics
    columns = ["user_id", "item_id", "position", "clicked", *(["category"] if diverse else [])]
    lists = pd.read_parquet(folder / LISTS, columns=columns)
    if diverse:  # the cosine of two items needs a column for each category
        each = {name: (lists["category"] == number).astype(int) for number, name in enumerate(FEATURES)}
        lists = lists.drop(columns="category").assign(**each)
    names = {"user_id": "user_id", "item_id": "item_id", "target": "clicked", "prediction": "position"}
    definition = DataDefinition(
        numerical_columns=FEATURES if diverse else [],
        ranking=[Recsys(**names, recommendations_type="rank")],
    )
    history = None
    if {"coverage", "novelty"} & set(metrics):
        history = {"current_train_data": Dataset.from_pandas(pd.read_parquet(folder / HISTORY), definition)}
    return _report(metrics, Dataset.from_pandas(lists, definition), history)


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
