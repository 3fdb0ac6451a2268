"""Every query of every family can be written for Spark: nothing in it is DuckDB's alone."""

from __future__ import annotations

import ibis
import pytest
from ibis.config import Config

from monitor.metrics.catalogue import FAMILIES
from monitor.metrics.shared import Shared
from monitor.settings.metrics import EventSettings, MetricSettings

RATING = {"event": "click", "unrated": "as_negative", "distortion": {1: {1: 0.0}}}
EVENTS = {"click": EventSettings(), "play": EventSettings(length="length")}


class SparkOptions(Config):
    treat_nan_as_null: bool = False


IDS = {"user_id": "string", "item_id": "string"}


def unbound(category: str, vector: bool) -> Shared:
    shared = Shared(
        ibis.table(
            IDS
            | {"request_id": "string", "ts": "timestamp", "scene": "string", "score": "float64"}
            | {"propensity": "float64", "position": "int64"}
            | {"status": "string", "latency": "float64", "ever_shown": "boolean"},
            name="exposures",
        ),
        catalog=ibis.table(
            {"item_id": "string", "category": category, "length": "float64"}
            | ({"vector": "array<float64>"} if vector else {}),
            name="catalog",
        ),
        feedback=ibis.table(
            IDS | {"event": "string", "request_id": "string", "ts": "timestamp", "value": "float64"},
            name="feedback",
        ),
        history_user_items=ibis.table(IDS | {"exposures": "int64"}, name="history_user_items"),
        history_actions=ibis.table(IDS, name="history_actions"),
        previous_day_user_items=ibis.table(IDS, name="previous_day_user_items"),
        today_user_items=ibis.table(IDS, name="today_user_items"),
    )
    shared._scalars["vector_width"] = 3
    return shared


@pytest.fixture(autouse=True)
def _options_of_spark(monkeypatch):
    """Ibis registers these when pyspark is imported, which writing a query does not need."""
    monkeypatch.setattr(ibis.options, "pyspark", SparkOptions())


CASES = [(family, key) for family in FAMILIES for key in (None, "scene") if key is None or family.sliced]


@pytest.mark.parametrize(("family", "key"), CASES, ids=lambda part: getattr(part, "name", part))
def test_the_query_of_every_family_compiles_for_spark(family, key):
    for category, vector in (("string", False), ("array<string>", False), ("string", True)):
        shared = unbound(category, vector)
        settings = MetricSettings(score_range=(0, 1), events=EVENTS, seed_item="scene", rating=RATING)
        assert family.reason_not(shared, settings) is None
        sql = ibis.to_sql(family.measure(shared, settings, key), dialect="pyspark")
        assert "SELECT" in sql
        # An uncast division of whole numbers turns into a rounded decimal there.
        assert "DECIMAL" not in sql.upper()
