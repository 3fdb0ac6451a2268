"""The tables of a window that its rules look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import duckdb
import ibis.expr.operations as ops
import ibis.expr.types as ir

from monitor.engines.duckdb import Engine
from monitor.rules.gx.messages import shorten
from monitor.rules.list_tables import LIST_COLUMNS, arrivals, with_list_columns
from monitor.rules.ready import RuleTables
from monitor.rules.rule import LoadedRule
from monitor.window.tables import WindowTables

OWN: Final = "rule_"
"""How the names of these tables begin."""


def make_tables(
    engine: Engine, rules: Sequence[LoadedRule], tables: WindowTables, key: str | None = None
) -> RuleTables:
    """Make the tables that the loaded rules look at, and no others.

    With a key, `exposures`, `requests` and `arrivals` have it as a column.
    """
    columns = tables.shared.exposures.columns
    known = frozenset(columns) if tables.known is None else tables.known
    result = RuleTables(known=known, has_files=tables.has_files)
    asked = {rule.table for rule in rules} | {str(rule.kwargs.get("catalog_table", "")) for rule in rules}
    shared = tables.shared

    def lists() -> ir.Table:
        wanted = [name for name in LIST_COLUMNS if any(one.mentions(name) for one in on_lists)]
        name = "_".join([f"{OWN}requests", *wanted])  # other rules make another table
        return shared.once(name, key, lambda: with_list_columns(shared, wanted, key))

    def stored(name: str, build: Callable[[], ir.Table]) -> ir.Table:
        return build() if key is None else shared.once(f"{OWN}{name}", key, build)

    on_lists = [rule for rule in rules if rule.table == "requests"]
    if any(getattr(rule.expectation, "catalog_table", None) == "catalog" for rule in rules):
        asked.add("catalog")
    if "catalog" in asked and tables.catalog is None:
        result.missing["catalog"] = "this recommender has no catalog, or it could not be read"
    elif "catalog" in asked and tables.catalog is not None and _is_empty(tables.catalog):
        # With an empty catalog no item is off the shelf, so every rule on it would be ok.
        result.missing["catalog"] = "the catalog is empty: its files hold no item"
    if "feedback" in asked and tables.feedback is None:
        result.missing["feedback"] = "this recommender has no feedback log"
    builders: dict[str, Callable[[], Any]] = {
        "exposures": lambda: stored("exposures", lambda: shared.rows(key)),
        "requests": lists,
        "user_items_day": tables.user_items_day,
        "arrivals": lambda: stored("arrivals", lambda: arrivals(shared.rows(key), tables.future)),
        "catalog": lambda: tables.catalog,
        "feedback": lambda: tables.feedback,
    }
    for name, build in builders.items():
        if name not in asked or name in result.missing:
            continue
        try:
            result.names[name] = _named(engine, f"{OWN}{name}", build(), tables.made)
        except duckdb.InterruptException:
            raise
        except Exception as error:
            result.missing[name] = f"the table could not be made: {shorten(str(error))}"
    return result


def _is_empty(table: ir.Table) -> bool:
    return not table.limit(1).count().to_pyarrow().as_py()


def _named(engine: Engine, name: str, table: ir.Table, made: list[str]) -> str:
    """The name under which GX finds the table: its own if it is stored, else a new one."""
    operation = table.op()
    if isinstance(operation, ops.DatabaseTable):
        return str(operation.name)
    made.append(name)
    if name == "rule_user_items_day":
        engine.create(name, table)  # an aggregate: as a view, each query of GX would compute it again
    else:
        engine.view(name, table)
    return name
