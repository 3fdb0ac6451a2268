"""RecTools' side of `make bench-peers`: all metrics that it offers in one call of its `calc_metrics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rectools import Columns  # type: ignore[import-not-found]
from rectools.metrics import (  # type: ignore[import-not-found]
    MAP,
    NDCG,
    CatalogCoverage,
    IntraListDiversity,
    MeanInvUserFreq,
    PairwiseHammingDistanceCalculator,
    PartialAUC,
    calc_metrics,
)

from benchmarks.peer_shared import CATALOG, HISTORY, LISTS, main

METRICS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "coverage": lambda _: CatalogCoverage(k=10, normalize=True),
    "NDCG@10": lambda _: NDCG(k=10, divide_by_achievable=True),
    "MAP@10": lambda _: MAP(k=10),
    "novelty": lambda _: MeanInvUserFreq(k=10),
    "AUC by user": lambda _: PartialAUC(k=10),
    "ILD by category": lambda catalog: IntraListDiversity(
        k=10, distance_calculator=PairwiseHammingDistanceCalculator(catalog.set_index(Columns.Item))
    ),
}


def run(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The values of these metrics."""
    columns = ["user_id", "item_id", "position", "clicked"]
    lists = pd.read_parquet(folder / LISTS, columns=columns).rename(columns={"position": Columns.Rank})
    history = pd.read_parquet(folder / HISTORY) if "novelty" in metrics else None
    catalog = pd.read_parquet(folder / CATALOG)
    found = calc_metrics(
        {name: METRICS[name](catalog) for name in metrics},
        reco=lists[[Columns.User, Columns.Item, Columns.Rank]],
        interactions=lists.loc[lists["clicked"] == 1, [Columns.User, Columns.Item]],
        prev_interactions=history,
        catalog=catalog[Columns.Item].to_numpy(),
    )
    return {name: float(value) for name, value in found.items()}


if __name__ == "__main__":
    main(run)
