"""The metrics of a span of days, from what its windows keep; no row of a log is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import duckdb
import ibis.expr.types as ir

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.results import Result, Status, Window
from monitor.engines.duckdb import Engine
from monitor.history.kept import KeptPairs
from monitor.logs.empty import empty_exposures, feedback_of
from monitor.logs.source import Source
from monitor.logs.windows import Part
from monitor.metrics.family import Family
from monitor.metrics.measure import explain, resolved
from monitor.metrics.plans import CachedExecutor, Plans
from monitor.metrics.shared import CATALOG, USER_ITEMS, Shared
from monitor.rollups.addends import ADDENDS, COLUMN, FAMILY, VALUE, Addend, families_of
from monitor.rollups.kept import KeptRollups
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import ROLLUP
from monitor.window.earlier import remembered
from monitor.window.verdicts import mark_late

_SPAN: Final = "rollup_span"
_NOTHING: Final = Window(datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 2, tzinfo=UTC))
"""Long before any row."""

Sums = Mapping[str, dict[str, float | None]]
"""Family -> its summed columns; the empty name has the number of windows."""


@dataclass(frozen=True, slots=True)
class Span:
    """What is rolled up.

    Attributes:
        window: from the start of the first day to the end of the last.
        length: as the config has it; the label `value`.
        windows: how many windows it has.
        late: how many of them were judged on rows that may be incomplete.
    """

    window: Window
    length: timedelta
    windows: int
    late: int = 0


class RollUp:
    """Adds up the windows of one span at a time.

    The results have the labels of a slice, `dimension` rollup and `value` such as 7d: so a roll-up is shown,
    exported and judged like a slice.

    Args:
        engine: the embedded one, which computes on the kept tables.
        source: the logs, for the catalog and the types of ids.
        kept: what the windows keep.
        pairs: the pairs of users and items, which they keep for the history.
        settings: of the metrics.
        plans: the statements of earlier spans.
    """

    def __init__(
        self,
        engine: Engine,
        source: Source,
        kept: KeptRollups,
        pairs: KeptPairs,
        settings: MetricSettings,
        plans: Plans | None = None,
    ) -> None:
        self._engine, self._source, self._kept, self._pairs = engine, source, kept, pairs
        self._settings = settings
        self._plans = Plans() if plans is None else plans
        self._made: list[str] = []

    def measure(self, span: Span) -> list[Result]:
        """The results of a span, of every family that its windows measured."""
        self._made = []
        try:
            sums = {part: self._sums(part, span) for part in (EXPOSURES, FEEDBACK)}
            families = [one for part in sums for one in families_of(part) if one.name in sums[part]]
            tables = {name for one in families if one.adds_up is not None for name in one.adds_up.tables}
            views = {name: view for name in sorted(tables) if (view := self._view(name, span)) is not None}
            shared = self._shared(span, views)
            settings = resolved(self._settings, shared)
            columns = {name: row for of_part in sums.values() for name, row in of_part.items()}
            return [
                result
                for family in families
                for result in self._results(family, columns[family.name], (shared, views), settings, span)
            ]
        finally:
            self._engine.drop(*self._made)
            self._source.release(self._engine)

    def _results(
        self,
        family: Family,
        sums: Mapping[str, float | None],
        tables: tuple[Shared, Mapping[str, ir.Table]],
        settings: MetricSettings,
        span: Span,
    ) -> Iterable[Result]:
        adds = family.adds_up
        assert adds is not None
        shared, views = tables
        try:
            row = {name: value for name, value in sums.items() if name}
            if adds.tables:
                for name in adds.tables:
                    shared.once(name, None, partial(self._added_up, name, views))
                (measured,) = shared.answer(
                    f"{family.name} kept", None, lambda: family.measure_kept(shared, settings)
                )
                row |= measured
            found = list(_labelled(family.outcomes_kept(row, settings), settings, span))
        except duckdb.InterruptException:
            raise
        except Exception as error:
            failed = family.without_rows(settings, Status.ERROR, explain(error))
            return _rolled_up(family, _labelled(failed, settings, span))
        results = _rolled_up(family, found)
        length = self._source.time.window
        counts = [
            self._kept.windows_with(name, span.window, length) for name in adds.tables if name != USER_ITEMS
        ]
        lacking = span.windows - min([round(sums[""] or 0), *counts])
        why = [f"{lacking} of {span.windows} windows lack it"] if lacking > 0 else []
        why += [f"{span.late} of {span.windows} windows are late"] if span.late else []
        return mark_late(results, "; ".join(why)) if why else results

    def _shared(self, span: Span, views: Mapping[str, ir.Table]) -> Shared:
        """A window without rows: its columns, and the catalog."""
        source, engine = self._source, self._engine
        names = (_SPAN, f"{_SPAN}_feedback")
        self._made += names
        known = source.id_types() | source.schema(EXPOSURES)
        exposures = empty_exposures(engine, names[0], known=known)
        feedback = feedback_of(engine, source, _NOTHING, names[1])
        catalog = source.load_catalog(engine, table="catalog")
        asked = None

        def look(name: str) -> Hashable:
            return shared.look(name)

        if engine.keeps_statements:
            logs = exposures, feedback, catalog
            self._plans.begin(
                *sorted(source.id_types().items()),
                *(None if one is None else one.op() for one in logs),
                *((name, view.op()) for name, view in views.items()),
            )
            edges = (span.window.start.replace(tzinfo=None), span.window.end.replace(tzinfo=None))
            lasting = {CATALOG: engine.key_of("catalog")}
            asked = CachedExecutor(self._plans, engine, self._made.append, look, edges, lasting)
        shared = Shared(exposures, catalog=catalog, feedback=feedback, materialise=self._store, asked=asked)
        return shared

    def _store(self, name: str, expression: ir.Table) -> ir.Table:
        self._made.append(name)
        return self._engine.create(name, expression)

    def _view(self, name: str, span: Span) -> ir.Table | None:
        """The files of a table; None if no window has it."""
        view = f"{_SPAN}_{name}_files"
        if name == USER_ITEMS:
            return remembered(self._engine, self._source, self._pairs, span.window, self._made, view=view)
        files = self._kept.files(name, span.window, self._source.time.window, self._engine)
        if not files:
            return None
        self._made.append(view)
        return self._engine.reader(view, "read_parquet", [str(path) for path in files], union_by_name=True)

    def _added_up(self, name: str, views: Mapping[str, ir.Table]) -> ir.Table:
        """The table of a span."""
        if name not in views:
            raise ValueError(f"no window has the table {name}")
        if name == USER_ITEMS:
            return views[name]
        addend = next(one for one in ADDENDS if one.name == name)
        return _added_up(views[name], addend, self._source.id_types())

    def _sums(self, part: Part, span: Span) -> Sums:
        files = self._kept.files(part, span.window, self._source.time.window, self._engine)
        found: dict[str, dict[str, float | None]] = defaultdict(dict)
        if files:
            rows = self._engine.cursor.read_parquet([str(path) for path in files])
            for row in self._kept.sums[part].added_up(rows).to_arrow_table().to_pylist():
                found[row[FAMILY]][row[COLUMN]] = row[VALUE]
        return found


def length_label(length: timedelta) -> str:
    """The label `value` of a span.

    >>> length_label(timedelta(weeks=1))
    '7d'
    """
    return f"{length.days}d"


def _rolled_up(family: Family, found: Iterable[Result]) -> list[Result]:
    """The results that do not need the rows of the log."""
    assert family.adds_up is not None
    without = family.adds_up.without
    return [one for one in found if (one.metric, one.labels.get("by", "")) not in without]


def _labelled(found: Iterable[Result], settings: MetricSettings, span: Span) -> Iterator[Result]:
    labels = {"dimension": ROLLUP, "value": length_label(span.length)}
    for one in found:
        if one.metric not in settings.disable:
            yield replace(one, labels={**one.labels, **labels})


def _added_up(rows: ir.Table, addend: Addend, types: Mapping[str, str]) -> ir.Table:
    """The rows of several files as those of one; ids get the log's types of now."""
    rows = rows.mutate(**{name: rows[name].try_cast(types[name]) for name in addend.keys if name in types})
    columns = {
        name: _sum(rows, name, addend).cast(rows[name].type())
        for name in rows.columns
        if name not in addend.keys
    }
    if not addend.alone:
        return rows.aggregate(by=list(addend.keys), **columns)
    (key,) = addend.keys
    known = rows[key].notnull()
    summed = rows.filter(known).aggregate(by=list(addend.keys), **columns)
    return summed.union(rows.filter(~known).select(*summed.columns))


def _sum(rows: ir.Table, name: str, addend: Addend) -> ir.Value:
    column = rows[name]
    if name in addend.smallest:
        return column.min()
    return column.max() if name in addend.largest else column.sum()
