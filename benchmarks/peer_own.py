"""The monitor's side of `make bench-peers`: its own engine, shared tables and families, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import ibis

from benchmarks.peer_shared import CATALOG, HISTORY, LISTS, main
from monitor.engines.duckdb import Engine
from monitor.metrics.catalogue import FAMILIES
from monitor.metrics.measure import measure_all
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings

# The benchmark's name -> the metric, its label `by`, and the family that gives it.
METRICS = {
    "coverage": ("coverage", "item", "item_coverage"),
    "NDCG@10": ("ndcg", "", "ranking"),
    "MAP@10": ("average_precision", "", "ranking"),
    "novelty": ("self_information", "", "popularity"),
    "personalization": ("personalization", "", "personalization"),
    "AUC": ("auc", "", "auc"),
    "AUC by user": ("user_auc", "equal", "user_auc"),
    "ILD by category": ("intra_list_diversity", "", "intra_list_diversity"),
}


def run(folder: Path, metrics: Sequence[str]) -> dict[str, float]:
    """The values of these metrics."""
    with duckdb.connect() as connection:
        engine = Engine(connection.cursor())
        lists = engine.reader("lists", "read_parquet", [str(folder / LISTS)])
        clicks = lists.filter(lists.clicked == 1)
        history = engine.reader("history", "read_parquet", [str(folder / HISTORY)])
        shared = Shared(
            engine.view("exposures", lists.drop("clicked", "category")),
            catalog=engine.reader("catalog", "read_parquet", [str(folder / CATALOG)]),
            feedback=engine.view(
                "feedback",
                clicks.select(
                    "request_id",
                    "user_id",
                    "item_id",
                    ts=clicks.ts + ibis.interval(seconds=5),
                    event=ibis.literal("click"),
                ),
            ),
            # The file has each pair of a user and an item once.
            history_user_items=engine.view("pairs", history.mutate(exposures=ibis.literal(1, "int64"))),
            materialise=engine.create,
        )
        wanted = {METRICS[name][2] for name in metrics}
        families = [family for family in FAMILIES if family.name in wanted]
        measured = measure_all(shared, MetricSettings(k=(10,)), families=families)
        found = {(one.metric, one.labels.get("by", "")): one for family in measured for one in family.results}
    values = {}
    for name in metrics:
        result = found[METRICS[name][:2]]
        assert result.value is not None, result
        values[name] = result.value
    return values


if __name__ == "__main__":
    main(run)
