"""A window's logs as plain rows that break no rule, to be changed until they break one."""

from __future__ import annotations

from datetime import datetime, timedelta

import pyarrow as pa

from monitor.engines.duckdb import Engine
from monitor.metrics.shared import Shared
from monitor.rules.check import check_rules
from monitor.rules.engines.duckdb import DuckDBRuleEngine
from monitor.rules.suites import load_rules
from monitor.settings.rules import RuleSettings
from monitor.window.tables import WindowTables

START = datetime(2026, 1, 1, 10)


LISTS = 1000


PACKS = {
    "blacklist": {"blacklist": "blacklist.csv"},
    "catalog": {"available_from": "starts", "available_until": "ends", "status": "active"},
    "lists": {"max_length": 10},
    "category": {"max_per_category": 2},
    "scores": {},
    "order": {},
    "arithmetic": {"denominators": ["shown"], "factors": ["price", "boost"], "underflow": ["product"]},
    "frequency": {"max_a_day": 3},
    "time": {},
    "importance": {},
}


class World:
    """A window's logs as plain rows, and the check run on them."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.rule_engine = DuckDBRuleEngine(f"world_{id(self)}")
        self.engine = Engine(self.rule_engine.cursor())
        (folder / "blacklist.csv").write_text("item_id\nbanned\n")
        self.catalog = [
            {
                "item_id": f"item{n}",
                "category": f"category{n}",
                "starts": START - timedelta(days=n),
                "ends": START + timedelta(days=n + 1),
                "active": True,
            }
            for n in range(5)
        ]
        self.rows = [self.row(request, position) for request in range(LISTS) for position in (1, 2, 3)]
        self.day: list[dict] | None = None
        self.future: list[dict] | None = None
        self.feedback: list[dict] | None = None

    @staticmethod
    def row(request: int, position: int, **changes) -> dict:
        return {
            "request_id": f"r{request:04}",
            "user_id": f"u{request:04}",
            "ts": START + timedelta(seconds=request),
            "item_id": f"item{position}",
            "position": position,
            "score": 0.9 - position / 10,
            "scene": "home",
            "propensity": 0.5,
            "shown": 10,
            "price": 2.0,
            "boost": 1.0,
            "product": 1e-5,
            **changes,
        }

    def find(self, request: int, position: int) -> dict:
        return next(
            row for row in self.rows if row["request_id"] == f"r{request:04}" and row["position"] == position
        )

    def without(self, *columns: str) -> None:
        self.rows = [{k: v for k, v in row.items() if k not in columns} for row in self.rows]

    def _table(self, name, rows, schema=None):
        cursor = self.engine.cursor
        cursor.register("given", pa.Table.from_pylist(rows, schema=schema))
        cursor.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
        cursor.unregister("given")
        return self.engine.backend.table(name)

    def tables(self) -> WindowTables:
        schema = None if self.rows else pa.Table.from_pylist([self.row(0, 1)]).schema
        catalog = self._table("catalog", self.catalog) if self.catalog else None
        shared = Shared(
            self._table("exposures", self.rows, schema), catalog=catalog, materialise=self.engine.create
        )
        return WindowTables(
            shared=shared,
            user_items_day=lambda: self._table("day", self.day) if self.day else shared.user_items(),
            catalog=catalog,
            feedback=self._table("feedback", self.feedback) if self.feedback else None,
            future=self._table("future_exposures", self.future) if self.future else None,
        )

    def rules(self, *sources: RuleSettings):
        sources = sources or tuple(RuleSettings(pack=name, parameters=given) for name, given in PACKS.items())
        return load_rules(sources, self.folder)

    def check(self, *sources: RuleSettings, **options):
        """Results by the name of their rule."""
        tables = self.tables()
        results = check_rules(self.rule_engine, self.engine, self.rules(*sources), lambda: tables, **options)
        self.engine.drop(*tables.made)
        return {result.labels["rule"]: result for result in results}

    def suite(self, text: str) -> RuleSettings:
        (self.folder / "ours.yaml").write_text("name: ours\nexpectations:\n" + text)
        return RuleSettings(suite="ours.yaml")


def put(world, request=0, position=1, **changes):
    world.find(request, position).update(changes)


def several(count, **changes):
    """Change the first item of each of the first lists."""

    def change(world):
        for request in range(count):
            put(world, request, 1, **changes)

    return change
