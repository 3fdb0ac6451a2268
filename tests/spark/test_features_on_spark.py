"""Features online against offline, and their profiles, on Spark and on DuckDB: the same numbers."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import pyarrow as pa

from monitor.models.feature_profile import bins_of, profiles
from monitor.models.feature_skew import measure_skew
from tests.metrics.worlds import START, embedded
from tests.spark.test_metrics_on_spark import Tables

ODD = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1 + 0.2, 0.3, 1e308, -1e308, 1.0, 1.0 + 1e-9]
WORDS = [None, "", "a", "A", "it's", "\\", 'a"b\\n', "żółć 🎯", "`x;drop`", "line\nbreak", "1.0"]
NAMES = ["odd", 'a"b', "whole", "x;drop", "flag", "at", "mixed"]


def side(seed: int) -> pa.Table:
    dice = np.random.default_rng(seed)
    rows = 120
    days = [START + timedelta(days=int(n)) for n in dice.integers(0, 3, rows)]
    keys = [None if n % 17 == 0 else f"r{n % 100}" for n in range(rows)]  # some twice

    def chosen(values, type_):
        return pa.array([values[n] for n in dice.integers(0, len(values), rows)], type_)

    columns = {
        "request_id": pa.array(keys),
        "odd": chosen(ODD, pa.float64()),
        'a"b': chosen(WORDS, pa.string()),
        "whole": chosen([None, 1, 2, 2**60, 2**60 + 1], pa.int64()),
        "x;drop": pa.array(dice.normal(size=rows).round(2)),
        "flag": chosen([None, True, False], pa.bool_()),
        "at": pa.array(days, pa.timestamp("us")),
        "mixed": chosen(["1", "x", None], pa.string()) if seed else chosen([1.0, 2.0], pa.float64()),
    }
    return pa.table(columns)


def everything(backend):
    online, offline = (backend.create_table(name, side(n)) for n, name in enumerate(("rows_0", "rows_1")))
    skew = measure_skew(online, offline, NAMES, ["request_id"], times={"odd": "at"})
    bins = bins_of(online, NAMES, bins=5, values=4)
    return skew, bins, profiles(online, bins), profiles(offline, bins)


def test_features_are_the_same_on_spark_and_on_duckdb(spark):
    wanted = everything(embedded())
    skew = wanted[0]
    assert skew.pairing.ambiguous
    assert skew.pairing.unknown
    assert all(one.wrong for one in skew.features)
    assert skew.features[0].stale
    found = everything(Tables(spark))
    for got, want in zip(found, wanted, strict=True):
        assert got == want


def test_an_empty_side_is_the_same_on_both(spark):
    for backend in (embedded(), Tables(spark)):
        rows = backend.create_table("rows_e", side(0))
        none = rows.filter(rows.request_id == "nobody")
        found = measure_skew(rows, none, ["odd"], ["request_id"])
        assert (found.pairing.offline, found.features[0].wrong) == (0, 0)
        (bins,) = bins_of(none, ["odd"])
        assert bins.edges == ()
        (profile,) = profiles(none, [bins])
        assert (profile.rows, profile.distinct, profile.top) == (0, 0, None)
