"""The statements of one window, kept for the windows after it.

To build an expression and compile it takes longer than to run it on an hour of a log, and each hour gives the
same text. So the statement is kept with everything it was built from: the window's tables, tables derived
from them, the rows by slice. It is built again if one of these has other columns, or if the text holds a
value of the window itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

import ibis
import ibis.expr.types as ir

Build = Callable[[], ir.Table]
Materialise = Callable[[str, ir.Table], ir.Table]
Records = list[dict[str, Any]]
WINDOW_EDGES: Final = ("window_start", "window_end")


def keep_lazy(_name: str, expression: ir.Table) -> ir.Table:
    """The `materialise` that stores nothing, for tests and single metrics."""
    return expression


class Statements(Protocol):
    """The interface of an engine whose statements can be kept, such as `monitor.engines.duckdb.Engine`."""

    def select(self, expression: ir.Table) -> str: ...

    def filling(self, name: str, expression: ir.Table) -> str: ...

    def fill(self, name: str, statement: str, schema: ibis.Schema | None = None) -> ir.Table: ...

    def kept(self, name: str, key: Hashable, make: Build) -> ir.Table: ...

    def rows(self, statement: str, schema: ibis.Schema) -> Records: ...

    def remember(self, name: str, moment: datetime) -> None: ...

    def remembered(self, name: str) -> ir.Value: ...


@dataclass(slots=True)
class _Sources:
    """What an expression was built from: stored tables with their columns, and looks at the logs."""

    tables: dict[str, ibis.Schema] = field(default_factory=dict)
    looks: dict[str, Hashable] = field(default_factory=dict)
    lasting: bool = True  # no value of this window is in it


@dataclass(frozen=True, slots=True)
class _Plan:
    statement: str
    schema: ibis.Schema
    sources: _Sources


@dataclass(slots=True)
class _Kept:
    """The statements of windows whose logs have the same columns."""

    plans: dict[str, _Plan] = field(default_factory=dict)
    lasting: dict[str, str] = field(default_factory=dict)  # a table that may stay -> what it reads


_MOST: Final = 128  # a set of statements takes about 200 kB
_shared: OrderedDict[Hashable, _Kept] = OrderedDict()
_lock = threading.Lock()


class Plans:
    """The statements of one recommender's windows, by name.

    The tables of these windows must have the same names, as in all windows of one part of a recommender.

    Args:
        of: all that the statements depend on besides the logs, such as the settings. Plans that are equally
            `of` share their statements, so that the next recommender of the same form starts with them.
            None: they share with no others.
    """

    def __init__(self, of: Hashable = None) -> None:
        self._of = of
        self._logs: tuple[object, ...] | None = None
        self._now = _Kept()

    @property
    def kept(self) -> dict[str, _Plan]:
        return self._now.plans

    @property
    def lasting(self) -> dict[str, str]:
        return self._now.lasting

    def begin(self, *logs: Hashable) -> None:
        """Start a new window. Statements of logs with other columns than those of this window do not hold."""
        if logs == self._logs:
            return
        self._logs = logs
        if self._of is None:
            self._now = _Kept()
            return
        key = self._of, logs
        with _lock:
            self._now = _shared.setdefault(key, _Kept())
            _shared.move_to_end(key)
            if len(_shared) > _MOST:
                _shared.popitem(last=False)


class Executor:
    """Runs the queries of one window: each is built, and then stored or run.

    Args:
        materialise: stores an expression under a name and gives the stored table.
    """

    def __init__(self, materialise: Materialise = keep_lazy) -> None:
        self._materialise = materialise

    def stored(self, name: str, build: Build, *, lasting: str | None = None) -> ir.Table:
        """The table that `build` gives, stored under a name.

        A `lasting` one reads nothing but what is known under that name. It may stay for later windows.
        """
        return self._materialise(name, build())

    def answer(self, name: str, build: Build) -> Records:
        """The rows of what `build` gives."""
        found: Records = build().to_pyarrow().to_pylist()
        return found

    def used(self, name: str) -> None:
        """The expression being built uses the table stored under this name."""

    def read(self, name: str, look: Hashable) -> None:
        """The expression being built depends on how something looks that may change by window.

        That is the expression of a part of the logs, or a fact of the window.
        """

    def moment(self, name: str, moment: datetime) -> ir.Value:
        """An edge of this window, without a zone, as an expression; `name` is one of WINDOW_EDGES."""
        return ibis.literal(moment)

    def varies(self) -> None:
        """The expression being built holds a value of this window, so it must not be kept."""


Ask = Callable[[str, Build], Records]
"""Gives the rows of what is built, by a name that says which query it is: `Executor.answer`."""
ASK_ONCE: Final[Ask] = Executor().answer
"""The `Ask` that keeps no statement."""


class CachedExecutor(Executor):
    """Runs the statements of earlier windows if these still hold.

    Args:
        plans: those of this recommender and part.
        engine: runs them.
        made: called with the name of each stored table.
        look: says how something looks now, by the name passed to `read`.
        window: the edges of the window; statements read them by name.
        lasting: what can outlast a window, by name, each with what it was read from. Tables that read
            nothing else stay while that is the same.
    """

    def __init__(
        self,
        plans: Plans,
        engine: Statements,
        made: Callable[[str], None],
        look: Callable[[str], Hashable],
        window: tuple[datetime, datetime],
        lasting: Mapping[str, Hashable] | None = None,
    ) -> None:
        super().__init__()
        for name, moment in zip(WINDOW_EDGES, window, strict=True):
            engine.remember(name, moment)
        self._plans = plans
        self._engine = engine
        self._made = made
        self._look = look
        self._lasting = {} if lasting is None else lasting
        self._tables: dict[str, ir.Table] = {}
        self._building: list[_Sources] = []
        self._looks: dict[str, Hashable] = {}

    def stored(self, name: str, build: Build, *, lasting: str | None = None) -> ir.Table:
        if lasting is not None:
            self._plans.lasting[name] = lasting
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

    def read(self, name: str, look: Hashable) -> None:
        self._looks[name] = look
        if self._building:
            self._building[-1].looks[name] = look

    def moment(self, name: str, moment: datetime) -> ir.Value:
        return self._engine.remembered(name)

    def varies(self) -> None:
        if self._building:
            self._building[-1].lasting = False

    def _fill(self, name: str, statement: str, schema: ibis.Schema | None = None) -> ir.Table:
        source = self._lasting.get(self._plans.lasting.get(name, ""))
        if source is not None:
            key = source, statement
            return self._engine.kept(name, key, lambda: self._engine.fill(name, statement, schema))
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
        """Store the table, and those that it needs, by kept statements; False if there is none that holds."""
        plan = self._plans.kept.get(name)
        if plan is None or not self._holds(plan):
            return False
        self._tables[name] = self._fill(name, plan.statement, plan.schema)
        return True

    def _holds(self, plan: _Plan) -> bool:
        return self._looks_the_same(plan.sources.looks) and all(
            (name in self._tables or self._filled(name)) and self._tables[name].schema() == schema
            for name, schema in plan.sources.tables.items()
        )

    def _looks_the_same(self, looks: Mapping[str, Hashable]) -> bool:
        for name in looks:
            if name not in self._looks:
                self._looks[name] = self._look(name)
        return all(self._looks[name] == look for name, look in looks.items())
