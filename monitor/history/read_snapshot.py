"""Reads the snapshot that the exporter and the page show until the next one is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise

from sqlalchemy import Connection, or_, select

from monitor.core.results import Result, Status, Window
from monitor.history import counters, schema
from monitor.history.logstate import log_states
from monitor.history.lookback import last_of_each_signal, standings
from monitor.history.rows import batches, results_of_windows, window_results
from monitor.history.snapshot import (
    Change,
    LogState,
    Point,
    RecommenderState,
    Series,
    Snapshot,
    Violation,
)
from monitor.history.standing import BLANK, Signal, Standing, fold, signal_of
from monitor.history.store import Store


@dataclass(slots=True)
class _Evaluated:
    id: int
    window: Window
    status: Status
    evaluated_at: datetime
    seconds: float
    state: _State  # changes whenever the window is written again
    definition: str


_State = tuple[object, ...]


@dataclass(slots=True)
class _KeptCheck:
    """What earlier calls read of a check.

    `points` maps the id of a window to its state when it was read, and to its points by series. `results` has
    id, state and results of the newest window with any. `series` was made from windows with the states `of`.
    """

    points: dict[int, tuple[_State, dict[int, Point]]] = field(default_factory=dict)
    results: tuple[int, _State, dict[int, Result]] | None = None
    of: tuple[_State, ...] | None = None
    series: tuple[Series, ...] = ()


@dataclass(slots=True)
class Kept:
    """What earlier calls read of a recommender, so that only what has changed is read again.

    A result that did not change is the same object in the next snapshot, so that it can be compared quickly.
    """

    checks: dict[str, _KeptCheck] = field(default_factory=dict)


@dataclass(slots=True)
class _Check:
    """A check of a recommender: its windows, newest first, and the results of the newest that has any."""

    recommender: str
    check: str
    windows: list[_Evaluated]
    kept: _KeptCheck = field(default_factory=_KeptCheck)
    points: dict[int, list[Point]] = field(default_factory=dict)
    results: dict[int, Result] = field(default_factory=dict)
    shown: int = 0  # place in `windows` of the one that the results are from

    @property
    def blank(self) -> list[_Evaluated]:
        """The newer windows, oldest first: they could not be judged and gave no result."""
        return self.windows[: self.shown][::-1]

    @property
    def states(self) -> tuple[_State, ...]:
        return tuple((one.id, *one.state) for one in self.windows)


def read_snapshot(
    store: Store,
    names: Sequence[str],
    now: datetime,
    past: int = 48,
    kept: dict[str, Kept] | None = None,
    *,
    only: bool = False,
    written: Mapping[str, Collection[str]] | None = None,
) -> Snapshot:
    """The newest result of every series of these recommenders, its recent past, standing, logs and counters.

    A series that the newest window of its check lacks is gone. But if that window could not be judged and
    gave no result (its run failed or was interrupted), the series stay and take on the status of that window.
    The caller adds what the store cannot know: pending windows, and errors of the config.

    Args:
        store: the history.
        names: the recommenders.
        now: the time of the snapshot.
        past: the most windows of each check.
        kept: recommender -> what earlier calls read of it; the entries of `names` are updated.
        only: read no counters but those of `names`.
        written: recommender -> the checks of which any window may have been written since the call before
            with this `kept`, however old it is. Of the others, the newest windows alone say whether anything
            has changed. By default any window of any check may have been written.

    Raises:
        StoreError: the history cannot be read.
    """
    kept = {} if kept is None else kept
    with store.reading() as connection:
        checks = {name: _checks(connection, name, past) for name in names}
        changed = []
        for name, mine in checks.items():
            of_name = None if written is None else written.get(name, ())
            new = _changed(mine, kept.setdefault(name, Kept()), of_name)
            _read_points(connection, new)
            _read_results(connection, new)
            changed += new
        last = last_of_each_signal(connection, [number for check in changed for number in check.results])
        stands = standings(connection, last)
        began = _windows_by_end(connection, changed, stands)
        violations = _violations(connection, changed, stands, last)
        for check in changed:
            check.kept.series = tuple(_series(check, stands, began, violations))
            check.kept.of = check.states
        states = [_state(name, mine, log_states(connection, name)) for name, mine in checks.items()]
        found = counters.read(connection, names if only else None)
        return Snapshot(taken_at=now, recommenders=tuple(states), counters=found)


def read_logs(store: Store, names: Iterable[str]) -> dict[str, tuple[LogState, ...]]:
    """The state of the logs of these recommenders, without their results.

    Raises:
        StoreError: the history cannot be read.
    """
    with store.reading() as connection:
        return {name: log_states(connection, name) for name in names}


def _checks(connection: Connection, recommender: str, past: int) -> list[_Check]:
    columns = schema.windows.c
    names = select(columns.check_name).where(columns.recommender == recommender).distinct()
    found = []
    for check in sorted(connection.scalars(names)):
        query = (
            select(
                columns.id,
                columns.window_start,
                columns.window_end,
                columns.status,
                columns.evaluated_at,
                columns.seconds,
                columns.fingerprint,
                columns.revision,
                columns.definition,
            )
            .where(columns.recommender == recommender, columns.check_name == check, columns.current)
            .order_by(columns.window_end.desc(), columns.window_start.desc())
            .limit(max(past, 1))
        )
        rows = connection.execute(query)
        windows = [
            _Evaluated(
                number,
                Window(start, end),
                Status(status),
                evaluated_at,
                seconds,
                (end, status, evaluated_at, seconds, *state),
                definition,
            )
            for number, start, end, status, evaluated_at, seconds, *state, definition in rows
        ]
        if windows:
            found.append(_Check(recommender, check, windows))
    return found


def _changed(checks: Sequence[_Check], kept: Kept, written: Collection[str] | None) -> list[_Check]:
    """The checks of a recommender that must be read again. All get what is kept of them."""
    for gone in kept.checks.keys() - {check.check for check in checks}:
        del kept.checks[gone]
    changed = []
    for check in checks:
        check.kept = kept.checks.setdefault(check.check, check.kept)
        if written is None or check.check in written or check.kept.of != check.states:
            changed.append(check)
    return changed


def _read_points(connection: Connection, checks: Sequence[_Check]) -> None:
    """The newest values of each series of these checks, oldest first; and which window is shown."""
    named = {status.value: status for status in Status}
    new: dict[int, tuple[_Check, _Evaluated]] = {}
    for check in checks:
        windows = {one.id: one for one in check.windows}
        kept = check.kept.points
        for number in kept.keys() - windows.keys():
            del kept[number]
        new |= {
            number: (check, one)
            for number, one in windows.items()
            if number not in kept or kept[number][0] != one.state
        }
    for number, results in window_results(connection, list(new)).items():
        columns = (results.column(name) for name in ("value", "status", "lower", "upper"))
        check, one = new[number]
        check.kept.points[number] = (
            one.state,
            {
                series: Point(one.window, value, named[status], lower, upper)
                for series, value, status, lower, upper in zip(results.series, *columns, strict=True)
            },
        )
    for check in checks:
        there = [check.kept.points[one.id][1] for one in check.windows]
        check.shown = _shown(check.windows, there)
        check.points = {
            series: [one[series] for one in reversed(there) if series in one] for series in there[check.shown]
        }


def _shown(windows: Sequence[_Evaluated], points: Sequence[Mapping[int, Point]]) -> int:
    for place, (one, its_points) in enumerate(zip(windows, points, strict=True)):
        if its_points or one.status not in BLANK:
            return place
    return 0


def _read_results(connection: Connection, checks: Sequence[_Check]) -> None:
    new = {}
    for check in checks:
        one = check.windows[check.shown]
        if check.kept.results is None or check.kept.results[:2] != (one.id, one.state):
            new[one.id] = check
    for number, results in results_of_windows(connection, list(new)).items():
        check = new[number]
        check.kept.results = number, check.windows[check.shown].state, results
    for check in checks:
        known = check.kept.results
        if known is not None and known[0] == check.windows[check.shown].id:
            check.results = known[2]


_End = tuple[str, str, datetime]  # recommender, check, end of a window


def _windows_by_end(
    connection: Connection, checks: Iterable[_Check], stands: Mapping[int, tuple[Status, datetime]]
) -> dict[_End, Window]:
    """The windows in which standings began, or with a violation to show."""
    found: dict[_End, Window] = {}
    for check in checks:
        known = {one.window.end: one.window for one in reversed(check.windows)}
        wanted = {stands[number][1] for number in check.results if number in stands} - set(known)
        columns = schema.windows.c
        for part in batches(sorted(wanted)):
            query = select(columns.window_start, columns.window_end).where(
                columns.recommender == check.recommender,
                columns.check_name == check.check,
                columns.current,
                columns.window_end.in_(part),
            )
            known |= {end: Window(start, end) for start, end in connection.execute(query)}
        found |= {(check.recommender, check.check, end): window for end, window in known.items()}
    return found


def _violations(
    connection: Connection,
    checks: Iterable[_Check],
    stands: Mapping[int, tuple[Status, datetime]],
    last: Mapping[int, Mapping[Signal, datetime]],
) -> dict[int, Violation]:
    """Series id -> its newest violated window, if that is not the newest window itself."""
    columns, windows = schema.signals.c, schema.windows.c
    wanted: list[tuple[int, datetime]] = []
    for check in checks:
        oldest = check.windows[-1].window.end
        for number, result in check.results.items():
            fired = last.get(number, {}).get(Signal.FIRE)
            if result.status is Status.VIOLATED or fired is None:
                continue
            if fired >= oldest or stands[number][0] is Status.VIOLATED:
                wanted.append((number, fired))
    found: dict[int, Violation] = {}
    for part in batches(wanted, 200):
        where = or_(
            *(
                (columns.series_id == number)
                & (columns.signal == int(Signal.FIRE))
                & (columns.window_end == end)
                for number, end in part
            )
        )
        query = select(columns.series_id, windows.id, windows.window_start, windows.window_end)
        rows = connection.execute(
            query.join(schema.windows, windows.id == columns.window_id).where(where)
        ).all()
        results = results_of_windows(connection, sorted({number for _, number, _, _ in rows}))
        for series, number, start, end in rows:
            found[series] = Violation(Window(start, end), results[number][series])
    return found


def _series(
    check: _Check,
    stands: Mapping[int, tuple[Status, datetime]],
    began: Mapping[_End, Window],
    violations: Mapping[int, Violation],
) -> list[Series]:
    newest, source = check.windows[0], check.windows[check.shown]
    blanks = [
        (one.window, signal_of(Result(metric="", status=one.status, definition=""))) for one in check.blank
    ]
    shown = []
    for number, result in sorted(check.results.items(), key=lambda item: _order(item[1])):
        status, end = stands[number]
        standing = fold(blanks, Standing(status, began[check.recommender, check.check, end]))
        violation = violations.get(number)
        if result.status is Status.VIOLATED:
            violation = Violation(source.window, result)
        past = check.points[number] + [Point(one.window, None, one.status) for one in check.blank]
        shown.append(
            Series(
                recommender=check.recommender,
                check=check.check,
                window=newest.window,
                result=result if not blanks else _unjudged(result, newest.status),
                evaluated_at=newest.evaluated_at,
                standing=standing.status,
                since=standing.since.start,
                past=tuple(past),
                violation=violation,
            )
        )
    return shown


def _order(result: Result) -> tuple[str, str]:
    return result.metric, schema.canonical(dict(result.labels))


def _unjudged(result: Result, status: Status) -> Result:
    return replace(
        result,
        status=status,
        value=None,
        samples=None,
        lower=None,
        upper=None,
        violations=None,
        evidence=(),
        detail="the newest window could not be judged by this check at all",
    )


def _state(name: str, checks: Sequence[_Check], logs: tuple[LogState, ...]) -> RecommenderState:
    newest = [check.windows[0] for check in checks]
    return RecommenderState(
        name=name,
        series=tuple(one for check in checks for one in check.kept.series),
        logs=logs,
        last_run=max((one.evaluated_at for one in newest), default=None),
        last_window=max((one.window for one in newest), key=lambda window: window.end, default=None),
        check_seconds={check.check: check.windows[0].seconds for check in checks},
        changes=tuple(change for check in checks for change in _new_definitions(check)),
    )


def _new_definitions(check: _Check) -> Iterator[Change]:
    """The windows from which on a check judged by another definition: other settings, or another version."""
    for newer, older in pairwise(check.windows):
        if newer.definition != older.definition:
            yield Change(newer.window.start, f"the check {check.check} has a new definition")
