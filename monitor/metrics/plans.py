"""What one window asked of the engine, kept as statements for the windows after it.

To build an expression and to write it as SQL takes longer than to run it on an hour of a log, and hour after
hour it comes out as the same text. So the statement is kept, with all that it was made from: the window's own
tables, the tables that were made of them before, the rows by slice. Where one of these looks different, or
where a value of the window itself stands in the text, it is made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import ibis
import ibis.expr.operations as ops
import ibis.expr.types as ir

Build = Callable[[], ir.Table]
Materialise = Callable[[str, ir.Table], ir.Table]
Records = list[dict[str, Any]]
WINDOW_EDGES: Final = ("window_start", "window_end")


def keep_lazy(_name: str, expression: ir.Table) -> ir.Table:
    """The `materialise` that stores nothing: right for tests and for a single metric."""
    return expression


class Statements(Protocol):
    """What an engine must offer for its statements to be kept: `monitor.engines.duckdb.Engine` does."""

    def select(self, expression: ir.Table) -> str: ...

    def filling(self, name: str, expression: ir.Table) -> str: ...

    def fill(self, name: str, statement: str, schema: ibis.Schema | None = None) -> ir.Table: ...

    def rows(self, statement: str, schema: ibis.Schema) -> Records: ...

    def remember(self, name: str, moment: datetime) -> None: ...

    def remembered(self, name: str) -> ir.Value: ...


@dataclass(slots=True)
class _Sources:
    """What an expression was made from: stored tables with their columns, and parts of the logs."""

    tables: dict[str, ibis.Schema] = field(default_factory=dict)
    parts: dict[str, ops.Node] = field(default_factory=dict)
    lasting: bool = True  # no value of this window is in it


@dataclass(frozen=True, slots=True)
class _Plan:
    statement: str
    schema: ibis.Schema
    sources: _Sources


class Plans:
    """The statements of one recommender's windows, by what they answer.

    For windows whose tables have the same names, as all windows of one recommender's part have.
    """

    def __init__(self) -> None:
        self.kept: dict[str, _Plan] = {}
        self._logs: tuple[object, ...] | None = None

    def begin(self, *logs: object) -> None:
        """A new window: where its logs look different from those of the window before, all is forgotten."""
        if logs != self._logs:
            self.kept.clear()
            self._logs = logs


class Executor:
    """How one window's questions are answered: each is built, and stored or run, as it comes.

    Args:
        materialise: stores an expression under a name and gives the stored table.
    """

    def __init__(self, materialise: Materialise = keep_lazy) -> None:
        self._materialise = materialise

    def stored(self, name: str, build: Build) -> ir.Table:
        """The table that `build` gives, stored under a name."""
        return self._materialise(name, build())

    def answer(self, name: str, build: Build) -> Records:
        """The rows of what `build` gives."""
        found: Records = build().to_pyarrow().to_pylist()
        return found

    def used(self, name: str) -> None:
        """What was stored under this name becomes a part of what is being built."""

    def read(self, name: str, table: ir.Table) -> None:
        """A part of the logs that may look different in the next window goes into what is being built."""

    def moment(self, name: str, moment: datetime) -> ir.Value:
        """A time of this window, without a zone, in an expression; `name` is of WINDOW_EDGES."""
        return ibis.literal(moment)

    def varies(self) -> None:
        """What is being built holds a value of this window, and is not to be kept."""


class CachedExecutor(Executor):
    """Answers by the statements of earlier windows, where these still hold.

    Args:
        plans: those of this recommender and part.
        engine: runs them.
        made: is told of each table that is stored.
        parts: gives the parts of the logs by the names that `read` was told.
        window: the edges of the window, which the statements read by their names.
    """

    def __init__(
        self,
        plans: Plans,
        engine: Statements,
        made: Callable[[str], None],
        parts: Callable[[str], ir.Table | None],
        window: tuple[datetime, datetime],
    ) -> None:
        super().__init__()
        for name, moment in zip(WINDOW_EDGES, window, strict=True):
            engine.remember(name, moment)
        self._plans = plans
        self._engine = engine
        self._made = made
        self._parts = parts
        self._tables: dict[str, ir.Table] = {}
        self._building: list[_Sources] = []
        self._looks: dict[str, ops.Node | None] = {}

    def stored(self, name: str, build: Build) -> ir.Table:
        if name not in self._tables and not self._filled(name):
            with self._recording() as sources:
                expression = build()
            statement = self._engine.filling(name, expression)
            self._tables[name] = self._fill(name, statement)
            self._keep(name, statement, self._tables[name].schema(), sources)
        return self._tables[name]

    def answer(self, name: str, build: Build) -> Records:
        key = f"answer {name}"
        plan = self._plans.kept.get(key)
        if plan is None or not self._holds(plan):
            with self._recording() as sources:
                expression = build()
            plan = self._keep(key, self._engine.select(expression), expression.schema(), sources)
        return self._engine.rows(plan.statement, plan.schema)

    def used(self, name: str) -> None:
        if self._building:
            self._building[-1].tables[name] = self._tables[name].schema()

    def read(self, name: str, table: ir.Table) -> None:
        self._looks[name] = table.op()
        if self._building:
            self._building[-1].parts[name] = table.op()

    def moment(self, name: str, moment: datetime) -> ir.Value:
        return self._engine.remembered(name)

    def varies(self) -> None:
        if self._building:
            self._building[-1].lasting = False

    def _fill(self, name: str, statement: str, schema: ibis.Schema | None = None) -> ir.Table:
        self._made(name)
        return self._engine.fill(name, statement, schema)

    @contextmanager
    def _recording(self) -> Iterator[_Sources]:
        sources = _Sources()
        self._building.append(sources)
        try:
            yield sources
        finally:
            self._building.pop()

    def _keep(self, key: str, statement: str, schema: ibis.Schema, sources: _Sources) -> _Plan:
        plan = _Plan(statement, schema, sources)
        if sources.lasting:
            self._plans.kept[key] = plan
        else:
            self._plans.kept.pop(key, None)
        return plan

    def _filled(self, name: str) -> bool:
        """Whether the table could be stored, with those that it rests on, by what is kept."""
        plan = self._plans.kept.get(name)
        if plan is None or not self._holds(plan):
            return False
        self._tables[name] = self._fill(name, plan.statement, plan.schema)
        return True

    def _holds(self, plan: _Plan) -> bool:
        return self._same_parts(plan.sources.parts) and all(
            (name in self._tables or self._filled(name)) and self._tables[name].schema() == schema
            for name, schema in plan.sources.tables.items()
        )

    def _same_parts(self, parts: Mapping[str, ops.Node]) -> bool:
        for name in parts:
            if name not in self._looks:
                part = self._parts(name)
                self._looks[name] = None if part is None else part.op()
        return all(self._looks[name] == look for name, look in parts.items())
