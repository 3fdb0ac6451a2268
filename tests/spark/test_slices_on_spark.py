"""Every kind of slice gives a row the same value on both engines."""

from __future__ import annotations

import pyarrow as pa
import pytest

from monitor.settings.recommender import SliceSettings
from monitor.window.slices import add_slices
from tests.metrics.worlds import embedded, shared_of
from tests.spark.test_metrics_on_spark import Tables
from tests.window.test_slices_alone import BY, WINDOW, a_world

USERS = pa.table({"user_id": ["u", "v"], "plan": ["free", "other"]})


def values_of(backend, budget):
    shared = shared_of(a_world(2, 25), backend)
    users = backend.create_table("users", USERS)
    by = SliceSettings(by=(*BY, "score", "position"), budget=budget, heavy=10)
    dimensions = add_slices(shared, by, WINDOW, frozenset(), lambda _: users)
    found = {}
    for name, key in dimensions.items():
        rows = shared.rows(key).select("request_id", "position", key).to_pyarrow().to_pylist()
        found[name] = sorted((row["request_id"], row["position"], row[key]) for row in rows)
    return found


@pytest.mark.parametrize("budget", [3, 50])
def test_a_row_has_the_same_value_on_both_engines(spark, budget):
    found, wanted = values_of(Tables(spark), budget), values_of(embedded(), budget)
    assert len(wanted) == len(BY) + 2
    assert found == wanted
