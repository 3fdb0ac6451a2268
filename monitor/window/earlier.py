"""What was before a window: the pairs of users and items shown, and what users did.

Each window stores its pairs, and the pairs of a long history are the sum of these files. Where windows are
judged one after the other, the days that all windows of a day look back on stay in the engine; see
`monitor.metrics.history`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.results import Window
from monitor.engines.duckdb import Engine, Same
from monitor.history.kept import KeptPairs
from monitor.history.sums import Sums
from monitor.logs.empty import feedback_of
from monitor.logs.index import readable, seconds
from monitor.logs.reading import union
from monitor.logs.source import Source
from monitor.metrics.history import EXPOSURES, WINDOW, DayCounts
from monitor.window.counted import CountedPairs
from monitor.window.stored_pairs import id_types, number_of_rows, read_pairs, read_rows, state, typed

log = logging.getLogger(__name__)

FEW: Final = 2_000_000
"""Pairs or actions, about 100 MB; more are added up for each query and never held in memory."""
FEW_BEFORE: Final = 500_000
"""Pairs, each counted in every window that showed it, up to which windows look back on them together."""
_AT_ONCE: Final = 100_000
"""Exposures of windows whose pairs are stored in one pass."""
_DAY: Final = timedelta(days=1)
_FILE: Final = "__monitor_file"


@dataclass(frozen=True, slots=True)
class EarlierPairs:
    """The pairs of the history, each distinct within its part.

    Attributes:
        recent: those that this window alone looks back on; None if there are none.
        lasting: those that the other windows of its day look back on as well.
        key: what `lasting` was read from; None if there are none.
        is_small: whether `recent` is small enough to be stored.
        counts: how often each user and each item was shown, by column, if there are too many pairs to count
            them in each window. Then `recent` has all pairs, and some of them several times.
    """

    recent: ir.Table | None = None
    lasting: ir.Table | None = None
    key: Hashable = None
    is_small: bool = False
    counts: Mapping[str, ir.Table] = field(default_factory=dict)


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
    is_small = engine.keeps_statements and number_of_rows(new) <= FEW
    if engine.keeps_statements and not is_small:
        return _counted_pairs(engine, source, kept, history, made)
    recent = _summed_pairs(engine, source, new, made, view="history_user_items")
    is_small &= recent is not None
    if not old:
        return EarlierPairs(recent, is_small=is_small)
    summed, key = _stays(engine, source, old)
    return EarlierPairs(recent, summed, key, is_small=is_small)


def _counted_pairs(
    engine: Engine, source: Source, kept: KeptPairs, history: Window, made: list[str]
) -> EarlierPairs:
    """The pairs of a long history as they are in its files, and their counts."""
    counted = CountedPairs(engine, source, kept)
    tables = {}
    for column in (c.USER_ID, c.ITEM_ID):
        place = counted.counts(history, column, pairs=column == c.ITEM_ID)
        made.append(f"history_counts_{column}")
        tables[column] = engine.reader(made[-1], "read_parquet", [str(place)])
    made.append("history_user_items")
    recent = read_rows(engine, source, counted.files(history), made[-1])
    return EarlierPairs(recent, counts=tables)


def day_counts(
    engine: Engine, source: Source, kept: KeptPairs, window: Window, made: list[str]
) -> DayCounts | None:
    """What the day before and this one have shown before a window; None if few, or nothing the day before."""
    if not engine.keeps_statements:
        return None
    today = Window.of(window.start, _DAY)
    yesterday = Window(today.start - _DAY, today.start)
    counted = CountedPairs(engine, source, kept)
    before = counted.files(yesterday)
    so_far = Window(today.start, window.start) if today.start < window.start else None
    earlier = counted.files(so_far) if so_far else []
    if not before or number_of_rows([*before, *earlier]) <= FEW:
        return None

    def read(view: str, place: Path) -> ir.Table:
        made.append(view)
        return engine.reader(view, "read_parquet", [str(place)])

    items = read("day_items", counted.counts(yesterday, c.USER_ID))
    new = None
    if so_far is not None and earlier:
        new = read("day_new", counted.counts(so_far, c.USER_ID, without=before, grows=True))
    made.append("day_shown")
    return DayCounts(items, new, read_rows(engine, source, [*before, *earlier], "day_shown"))


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
    if number_of_rows(path for _, path in paths) > FEW_BEFORE:
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
        known = typed(rows, id_types(source), further=(WINDOW,))
        recent = engine.create("together_before", known)
    if not old:
        return EarlierPairs(recent)
    if not stays:
        made += ["together_days", "together_lasting"]
        days = engine.create("together_lasting", read_pairs(engine, source, old, "together_days"))
        return EarlierPairs(recent, days)
    summed, key = _stays(engine, source, old)
    return EarlierPairs(recent, summed, key)


def _lasting_files(engine: Engine, sums: Sums, lasting: Window | None, length: timedelta) -> list[Path]:
    """The files of the lasting part; none if its pairs are too many to stay in the engine."""
    old = [] if lasting is None else sums.files(lasting, length, engine.cursor)
    return old if 0 < number_of_rows(old) <= FEW else []


def _stays(engine: Engine, source: Source, old: Sequence[Path]) -> tuple[ir.Table, Hashable]:
    key = Same(source), id_types(source), tuple(state(path) for path in old)
    return engine.kept("lasting_pairs", key, lambda: read_pairs(engine, source, old, "lasting_pairs")), key


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
    return read_pairs(engine, source, paths, view)


def _around(inner: Window, whole: Window) -> list[Window]:
    """What is left of a span without one inside of it."""
    edges = (whole.start, inner.start), (inner.end, whole.end)
    return [Window(start, end) for start, end in edges if start < end]
