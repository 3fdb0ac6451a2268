"""Writing one evaluated window: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, insert, select, update

from monitor.core.results import Result, Status, Window, rank, worst_status
from monitor.history import counters, schema
from monitor.history.packing import SIGNAL, pack
from monitor.history.rows import batches, by_series, results_of_windows, series_digest, stored_fields
from monitor.history.signals import mark
from monitor.history.snapshot import CounterKey
from monitor.history.standing import signal_of
from monitor.logs.windows import of_whole_data


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One check's results of one window.

    Attributes:
        status: the check's verdict on the window; by default the worst of its results, undefined ones left
            out.
        definition: the version of the check. Results of another definition are kept beside the old ones and
            shown in their place.
        outcome: how the run itself ended; by default `error` if all results are errors.
    """

    check: str
    results: Sequence[Result]
    status: Status | None = None
    definition: str = "1"
    seconds: float = 0.0
    outcome: counters.RunEnd | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Result of recording a window.

    Attributes:
        first: a check had not judged this window before.
        corrected: the window's data changed.
        changed: anything was written.
    """

    first: bool
    corrected: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class _Stored:
    """A window of one check and definition as it is in the store."""

    id: int
    definition: str
    status: Status
    fingerprint: str
    revision: int
    current: bool


def record(
    connection: Connection,
    recommender: str,
    window: Window,
    runs: Sequence[CheckRun],
    *,
    fingerprint: str,
    rows: int,
    evaluated_at: datetime,
    in_maintenance: bool = False,
) -> Recorded:
    """Write the results of a window and add them to the counters."""
    windows = _stored_windows(connection, recommender, window)
    before = _verdict(windows)
    added: dict[CounterKey, float] = {}
    first = changed = False
    for run in runs:
        known = windows.get(run.check, [])
        now = next((row for row in known if row.current), None)
        target = next((row for row in known if row.definition == run.definition), None)
        fresh = by_series(run.results)
        stored = _stored_results(connection, now) if now else {}
        same_data = now is not None and of_whole_data(now.fingerprint) == of_whole_data(fingerprint)
        status = _status(run, fresh)
        unchanged = now is not None and now.fingerprint == fingerprint and now.status is status
        if unchanged and now is target and stored == fresh:
            continue
        changed = True
        first = first or now is None
        counted = counters.of_results(
            recommender, fresh.values(), stored.values(), in_maintenance=in_maintenance
        )
        for name, by in counted.items():
            added[name] = added.get(name, 0) + by
        if now is None:
            added |= counters.of_run(recommender, run.check, _outcome(run, fresh))
        values = {
            "status": status.value,
            "fingerprint": fingerprint,
            "rows": rows,
            "evaluated_at": evaluated_at,
            "seconds": run.seconds,
            "revision": 0 if now is None else now.revision + (not same_data),
            "current": True,
        }
        _supersede(connection, [row for row in known if row.current and row is not target])
        window_id = _put_window(connection, recommender, run, window, target, values)
        _put_results(connection, recommender, run.check, window_id, fresh)
        mark(connection, recommender, run.check, window.end)
    if not changed:
        return Recorded(first=False, corrected=False, changed=False)
    stored_now = _stored_windows(connection, recommender, window)
    corrected = before is not None and _revision(stored_now) > _revision(windows)
    after = _verdict(stored_now)
    worse = after if after is not None and (before is None or rank(after) < rank(before)) else None
    counters.add(connection, added | counters.of_window(recommender, worse, corrected))
    return Recorded(first=first, corrected=corrected, changed=True)


def _stored_windows(connection: Connection, recommender: str, window: Window) -> dict[str, list[_Stored]]:
    columns = schema.windows.c
    query = select(
        columns.check_name,
        columns.id,
        columns.definition,
        columns.status,
        columns.fingerprint,
        columns.revision,
        columns.current,
    ).where(
        columns.recommender == recommender,
        columns.window_start == window.start,
        columns.window_end == window.end,
    )
    held: dict[str, list[_Stored]] = {}
    for check, number, definition, status, fingerprint, revision, current in connection.execute(query):
        row = _Stored(number, definition, Status(status), fingerprint, revision, current)
        held.setdefault(check, []).append(row)
    return held


def _stored_results(connection: Connection, window: _Stored) -> dict[str, Result]:
    results = results_of_windows(connection, [window.id])[window.id]
    return {series_digest(one): one for one in results.values()}


def _current(held: Mapping[str, list[_Stored]]) -> list[_Stored]:
    return [row for rows in held.values() for row in rows if row.current]


def _verdict(held: Mapping[str, list[_Stored]]) -> Status | None:
    """The worst verdict over the checks of a window; None before the first."""
    rows = _current(held)
    return worst_status(row.status for row in rows) if rows else None


def _revision(held: Mapping[str, list[_Stored]]) -> int:
    # The checks of one window share its data: three of them evaluated anew are one correction.
    return max((row.revision for row in _current(held)), default=0)


def _status(run: CheckRun, fresh: Mapping[str, Result]) -> Status:
    judged = worst_status(result.status for result in fresh.values() if result.status is not Status.UNDEFINED)
    if run.status is None:
        return judged
    # If sanitizing made a result an error, the window is one too, whatever status the check gave.
    changed = {result.status for result in fresh.values()} - {result.status for result in run.results}
    return worst_status([run.status, *changed])


def _outcome(run: CheckRun, fresh: Mapping[str, Result]) -> counters.RunEnd:
    if run.outcome is not None:
        return run.outcome
    return "error" if all(result.status is Status.ERROR for result in fresh.values()) else "ok"


def _supersede(connection: Connection, rows: Sequence[_Stored]) -> None:
    for row in rows:
        connection.execute(update(schema.windows).where(schema.windows.c.id == row.id).values(current=False))
        connection.execute(delete(schema.signals).where(schema.signals.c.window_id == row.id))


def _put_window(
    connection: Connection,
    recommender: str,
    run: CheckRun,
    window: Window,
    target: _Stored | None,
    values: Mapping[str, object],
) -> int:
    table = schema.windows
    if target is not None:
        connection.execute(update(table).where(table.c.id == target.id).values(**values))
        for stored in (schema.results, schema.evidence):
            connection.execute(delete(stored).where(stored.c.window_id == target.id))
        return target.id
    key = {
        "recommender": recommender,
        "check_name": run.check,
        "window_start": window.start,
        "window_end": window.end,
        "definition": run.definition,
    }
    made = connection.execute(insert(table).values(**key, **values).returning(table.c.id))
    return int(made.scalar_one())


def _put_results(
    connection: Connection, recommender: str, check: str, window_id: int, fresh: Mapping[str, Result]
) -> None:
    ids = _series_ids(connection, recommender, check, fresh)
    rows = {
        ids[name]: {SIGNAL: int(signal_of(result)), **stored_fields(result)} for name, result in fresh.items()
    }
    evidence = [
        {"window_id": window_id, "series_id": ids[name], "place": place, "content": content}
        for name, result in fresh.items()
        for place, content in enumerate(result.evidence)
    ]
    if rows:
        connection.execute(insert(schema.results).values(window_id=window_id, content=pack(rows)))
    if evidence:
        connection.execute(insert(schema.evidence), evidence)


def _series_ids(
    connection: Connection, recommender: str, check: str, fresh: Mapping[str, Result]
) -> dict[str, int]:
    columns = schema.series.c

    def known() -> dict[str, tuple[int, str]]:
        return {
            name: (number, kind)
            for part in batches(list(fresh))
            for name, number, kind in connection.execute(
                select(columns.digest, columns.id, columns.kind).where(
                    columns.recommender == recommender, columns.check_name == check, columns.digest.in_(part)
                )
            )
        }

    there = known()
    for name, (number, kind) in there.items():
        if kind != fresh[name].kind:  # a version that called it another kind made it
            changed = update(schema.series).where(columns.id == number)
            connection.execute(changed.values(kind=fresh[name].kind.value))
    new = [
        {
            "recommender": recommender,
            "check_name": check,
            "metric": result.metric,
            "labels": dict(result.labels),
            "digest": name,
            "kind": result.kind.value,
        }
        for name, result in fresh.items()
        if name not in there
    ]
    if new:
        connection.execute(insert(schema.series), new)
        there = known()
    return {name: number for name, (number, _) in there.items()}
