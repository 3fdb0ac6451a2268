"""What a rule counts on DuckDB, and what it counts on pandas."""

from __future__ import annotations

import warnings

import great_expectations as gx
import pyarrow as pa

from monitor.rules.engines.base import build

HOSTILE = [
    "'; DROP TABLE exposures; --",
    'a"b',
    "line\nbreak",
    "<script>alert(1)</script>",
    "comma, and 'quote'",
    "{batch} %s :name $1",
    " padded ",
    "naïve ☃",
]


def expectation(kind, **kwargs):
    return build({"type": kind, "kwargs": kwargs})


def on_duckdb(engine, columns, rule):
    engine.connection.register("given", pa.table(columns))
    engine.connection.execute("CREATE OR REPLACE TABLE exposures AS SELECT * FROM given")
    engine.connection.unregister("given")
    (outcome,) = engine.judge("exposures", [rule])
    assert outcome.error is None, outcome.error
    return outcome.samples, outcome.violations


def on_pandas(columns, rule):
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("p").add_dataframe_asset("a")
    frame = pa.table(columns).to_pandas()
    batch = asset.add_batch_definition_whole_dataframe("b").get_batch({"dataframe": frame})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = batch.validate(rule, result_format="BASIC")
    found = result.result
    assert "element_count" in found, result.exception_info
    return found["element_count"] - (found.get("missing_count") or 0), found["unexpected_count"]


def both(engine, columns, rule):
    counts = on_duckdb(engine, columns, rule)
    assert on_pandas(columns, rule) == counts
    return counts
