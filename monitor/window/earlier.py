"""What was before a window: the pairs of users and items shown, and what users did.

Each window stores its pairs, and the pairs of a long history are the sum of these files. Where windows are
judged one after the other, the days that all windows of a day look back on stay in the engine; see
`monitor.metrics.history`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

import duckdb
import ibis
import ibis.expr.types as ir
import pyarrow.parquet as pq

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine, Same
from monitor.history.kept import KeptPairs
from monitor.history.sums import Sums
from monitor.logs.empty import feedback_of
from monitor.logs.index import readable, seconds
from monitor.logs.reading import union
from monitor.logs.source import Source
from monitor.metrics.history import EXPOSURES, WINDOW

log = logging.getLogger(__name__)

FEW: Final = 2_000_000
"""Pairs or actions, about 100 MB; more are added up for each query and never held in memory."""
FEW_BEFORE: Final = 500_000
"""Pairs, each counted in every window that showed it, up to which windows look back on them together."""
_AT_ONCE: Final = 100_000
"""Exposures of windows whose pairs are stored in one pass."""
_DAY: Final = timedelta(days=1)
_FILE: Final = "__monitor_file"
_IDS: Final = (c.USER_ID, c.ITEM_ID)


@dataclass(frozen=True, slots=True)
class EarlierPairs:
    """The pairs of the history, each distinct within its part.

    Attributes:
        recent: those that this window alone looks back on; None if there are none.
        lasting: those that the other windows of its day look back on as well.
        key: what `lasting` was read from; None if there are none.
        is_small: whether `recent` is small enough to be stored.
    """

    recent: ir.Table | None = None
    lasting: ir.Table | None = None
    key: Hashable = None
    is_small: bool = False


def common_days(history: Window, window: Window) -> Window | None:
    """The whole days that every window of the day looks back on; None if there are none.

    Args:
        history: what this window looks back on; it ends where the window begins.
        window: the window.
    """
    day = Window.of(window.start, _DAY)
    last = Window.of(day.end - timedelta.resolution, window.length)  # it may end on the next day
    last_start = last.start - history.length
    first = Window.of(last_start, _DAY)
    start = first.start if first.start == last_start else first.end
    return Window(start, day.start) if start < day.start else None


def earlier_pairs(
    engine: Engine, source: Source, kept: KeptPairs, history: Window, lasting: Window | None, made: list[str]
) -> EarlierPairs:
    """The stored pairs of the history; those of the span `lasting`, if there is one, stay in the engine."""
    sums, length = Sums(kept), source.time.window
    old = _lasting_files(engine, sums, lasting, length)
    spans = _around(lasting, history) if old and lasting is not None else [history]
    new = [path for span in spans for path in sums.files(span, length, engine.cursor)]
    recent = _summed_pairs(engine, source, new, made, view="history_user_items")
    is_small = recent is not None and engine.keeps_statements and _rows(new) <= FEW
    if not old:
        return EarlierPairs(recent, is_small=is_small)
    summed, key = _stays(engine, source, old)
    return EarlierPairs(recent, summed, key, is_small=is_small)


def pairs_before_windows(
    engine: Engine,
    source: Source,
    kept: KeptPairs,
    first: Window,
    reach: int,
    made: list[str],
    *,
    stays: bool,
) -> EarlierPairs | None:
    """The pairs that `first` and the next windows of its day look back on.

    Those of the recent part have in `WINDOW` the number of their window, below 0: `first` has 0. None if
    there are too many to do this for all windows at once. If it `stays`, the engine keeps the lasting part.
    """
    length = first.length
    history = Window(first.start - reach * length, first.start)
    lasting = common_days(history, first)
    old = _lasting_files(engine, Sums(kept), lasting, length)
    spans = _around(lasting, history) if old and lasting is not None else [history]
    paths = [item for one in spans for item in kept.paths(one.start, one.end, length).items()]
    if _rows(path for _, path in paths) > FEW_BEFORE:
        return None
    recent = None
    if paths:
        made += ["together_history", "together_numbers", "together_before"]
        files = [str(path) for _, path in paths]
        numbers = [(window.start - first.start) // length for window, _ in paths]
        numbered = engine.create("together_numbers", ibis.memtable({_FILE: files, WINDOW: numbers}))
        rows = engine.reader(
            "together_history", "read_parquet", files, union_by_name=True, filename=_FILE
        ).join(numbered, _FILE)
        typed = _typed(rows, _kinds(source), several=False, further=(WINDOW,))
        recent = engine.create("together_before", typed)
    if not old:
        return EarlierPairs(recent)
    if not stays:
        made += ["together_days", "together_lasting"]
        days = engine.create("together_lasting", _read(engine, source, old, "together_days"))
        return EarlierPairs(recent, days)
    summed, key = _stays(engine, source, old)
    return EarlierPairs(recent, summed, key)


def _lasting_files(engine: Engine, sums: Sums, lasting: Window | None, length: timedelta) -> list[Path]:
    """The files of the lasting part; none if its pairs are too many to stay in the engine."""
    old = [] if lasting is None else sums.files(lasting, length, engine.cursor)
    return old if 0 < _rows(old) <= FEW else []


def _stays(engine: Engine, source: Source, old: Sequence[Path]) -> tuple[ir.Table, Hashable]:
    key = Same(source), _kinds(source), tuple(_state(path) for path in old)
    return engine.kept("lasting_pairs", key, lambda: _lasting_pairs(engine, source, old)), key


def earlier_actions(
    engine: Engine, source: Source, history: Window, lasting: Window | None, made: list[str]
) -> ir.Table | None:
    """The actions of the history; those of the span `lasting`, if there is one, stay in the engine."""
    name = "earlier_actions"
    made.append(name)
    if c.FEEDBACK not in source.logs or lasting is None:
        return feedback_of(engine, source, history, name)
    feedback = source.logs[c.FEEDBACK]
    entries = feedback.files_in(lasting)
    if not 0 < feedback.rows_in(lasting) <= FEW:
        return feedback_of(engine, source, history, name)
    key = (
        Same(source),
        lasting,
        tuple(sorted(source.id_types().items())),
        tuple((one.file, one.digest, one.shape) for one in entries),
    )

    def read() -> ir.Table:
        old = source.load(engine, c.FEEDBACK, lasting, table="lasting_actions", few=True)
        assert old is not None  # it has rows
        return old

    parts = [engine.kept("lasting_actions", key, read)]
    for number, span in enumerate(_around(lasting, history)):
        made.append(f"{name}_{number}")
        part = source.load(engine, c.FEEDBACK, span, table=made[-1])
        parts += [] if part is None else [part]
    operations = tuple(part.op() for part in parts)
    return engine.view(name, engine.once((name, operations), lambda: union(parts)))


def keep_missing(engine: Engine, source: Source, kept: KeptPairs, span: Window) -> None:
    """Store the pairs of windows that were never judged, so that the order of judging does not matter."""
    present = kept.paths(span.start, span.end, source.time.window)
    inside = {one for one in source.exposures.windows() if span.start <= one.start and one.end <= span.end}
    keep_pairs(engine, source, kept, inside - present.keys())


def keep_pairs(engine: Engine, source: Source, kept: KeptPairs, windows: Iterable[Window]) -> None:
    """Store the pairs of these windows as the log has them now."""
    todo = deque(_runs(source, sorted(windows)))
    while todo:
        run = todo.popleft()
        try:
            _keep_run(engine, source, kept, run)
        except duckdb.IOException as exc:  # a file went away; a window can be judged without it
            if len(run) > 1:
                todo.extendleft([one] for one in reversed(run))
            else:
                log.warning("the pairs of %s cannot be read: %s", run[0].start, readable(exc))
    engine.drop("kept_source", "kept_pairs")


def _runs(source: Source, windows: Sequence[Window]) -> Iterator[list[Window]]:
    """Consecutive windows that have few rows together; a larger one alone."""
    run: list[Window] = []
    rows = 0
    for window in windows:
        own = source.exposures.rows(window)
        if run and (run[-1].end != window.start or rows + own > _AT_ONCE):
            yield run
            run, rows = [], 0
        run.append(window)
        rows += own
    if run:
        yield run


def _keep_run(engine: Engine, source: Source, kept: KeptPairs, run: Sequence[Window]) -> None:
    """Store the pairs of consecutive windows, which are read in one pass."""
    first, span = run[0], Window(run[0].start, run[-1].end)
    rows = source.load(engine, c.EXPOSURES, span, table="kept_source")
    if rows is None:
        for window in run:
            kept.forget(window)
        return
    since = rows[c.TS].epoch_seconds() - seconds(first.start)
    number = since // int(first.length.total_seconds())
    found = engine.relation(engine.create("kept_pairs", pairs(rows.mutate(**{WINDOW: number}), WINDOW)))
    for place, window in enumerate(run):
        if source.exposures.files_in(window):
            own = found.filter(duckdb.ColumnExpression(WINDOW) == duckdb.ConstantExpression(place))
            kept.keep(window, own.select(duckdb.StarExpression(exclude=[WINDOW])))
        else:
            kept.forget(window)


def pairs(exposures: ir.Table, *by: str) -> ir.Table:
    """The pairs of a window that are stored, or of several by a key: user, item, number of exposures."""
    shown = exposures.filter(exposures[c.USER_ID].notnull(), exposures[c.ITEM_ID].notnull())
    return shown.group_by([c.USER_ID, c.ITEM_ID, *by]).aggregate(**{EXPOSURES: shown.count()})


def remembered(
    engine: Engine, source: Source, kept: KeptPairs, span: Window, made: list[str], *, view: str
) -> ir.Table | None:
    """The stored pairs of a span, summed; None if nothing was shown in it."""
    return _summed_pairs(
        engine, source, Sums(kept).files(span, source.time.window, engine.cursor), made, view=view
    )


def _summed_pairs(
    engine: Engine, source: Source, paths: Sequence[Path], made: list[str], *, view: str
) -> ir.Table | None:
    if not paths:
        return None
    made += [view]
    return _read(engine, source, paths, view)


def _lasting_pairs(engine: Engine, source: Source, paths: Sequence[Path]) -> ir.Table:
    return _read(engine, source, paths, "lasting_pairs")


def _read(engine: Engine, source: Source, paths: Sequence[Path], view: str) -> ir.Table:
    table = engine.reader(view, "read_parquet", [str(path) for path in paths], union_by_name=True)
    kinds, several = _kinds(source), len(paths) > 1
    return engine.once(("kept", table.op(), kinds, several), lambda: _typed(table, kinds, several))


def _kinds(source: Source) -> tuple[str, ...]:
    """The types of the ids; they may have changed since the files were written."""
    types = source.id_types()
    return tuple(types.get(name, "string") for name in _IDS)


def _typed(table: ir.Table, kinds: Sequence[str], several: bool, further: Sequence[str] = ()) -> ir.Table:
    ids = {name: table[name].try_cast(kind) for name, kind in zip(_IDS, kinds, strict=True)}
    table = table.select(*further, **ids, **{EXPOSURES: table[EXPOSURES]})
    return _summed(table) if several else table


def _around(inner: Window, whole: Window) -> list[Window]:
    """What is left of a span without one inside of it."""
    edges = (whole.start, inner.start), (inner.end, whole.end)
    return [Window(start, end) for start, end in edges if start < end]


def _rows(paths: Iterable[Path]) -> int:
    return sum(_rows_of(*_state(path)) for path in paths)


def _state(path: Path) -> tuple[Path, int, int, int]:
    """A file and what changes when it is written again."""
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size, found.st_ino


@lru_cache(maxsize=10_000)
def _rows_of(path: Path, *_state: int) -> int:
    return int(pq.read_metadata(path).num_rows)


def _summed(table: ir.Table) -> ir.Table:
    return table.group_by([c.USER_ID, c.ITEM_ID]).aggregate(**{EXPOSURES: table[EXPOSURES].sum()})
