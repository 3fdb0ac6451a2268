"""The results of a window become one compressed value, and signals a table of their own.

The file of SQLite is smaller only after a VACUUM, which runs when the upgrade has been committed.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

log = logging.getLogger("monitor.history.migrations")  # Alembic gives this file another name

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_FIRE = 2
_AT_ONCE = 200
_TOLD_EVERY = 5000
_FIELDS = {
    "signal": "signal", "definition": "definition", "status": "status", "value": "value",
    "samples": "samples", "lower": "lower", "upper": "upper", "detail": "detail", "violations": "violations",
    "threshold": "threshold", "bound": "bound", "clear": "clear_bound", "severity": "severity",
}  # fmt: skip
_WINDOWS = sa.table(
    "windows",
    *(sa.column(name) for name in ("id", "recommender", "check_name", "window_end", "current")),
)
_ROWS = sa.table(
    "results_in_rows", *(sa.column(name) for name in ("window_id", "series_id", *_FIELDS.values()))
)
_RESULTS = sa.table("results", sa.column("window_id"), sa.column("content", sa.LargeBinary))
_SIGNALS = sa.table(
    "signals", *(sa.column(name) for name in ("series_id", "signal", "window_end", "window_id"))
)


def upgrade() -> None:
    op.rename_table("results", "results_in_rows")
    op.rename_table("evidence", "evidence_of_rows")
    _create()
    _move(op.get_bind())
    op.execute(
        "INSERT INTO evidence (window_id, series_id, place, content) "
        "SELECT window_id, series_id, place, content FROM evidence_of_rows"
    )
    op.drop_table("evidence_of_rows")
    op.drop_table("results_in_rows")


def _create() -> None:
    of_window = sa.ForeignKey("windows.id", ondelete="CASCADE")
    op.create_table(
        "results",
        sa.Column("window_id", _ID, of_window, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "signals",
        sa.Column("series_id", _ID, sa.ForeignKey("series.id"), primary_key=True),
        sa.Column("signal", sa.SmallInteger, primary_key=True),
        sa.Column("window_end", sa.BigInteger, primary_key=True),
        sa.Column("window_id", _ID, sa.ForeignKey("windows.id", ondelete="CASCADE"), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_index("signals_by_window", "signals", ["window_id"])
    op.create_table(
        "evidence",
        sa.Column("window_id", _ID, sa.ForeignKey("windows.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("series_id", _ID, primary_key=True),
        sa.Column("place", sa.SmallInteger, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


def _move(connection: sa.Connection) -> None:
    """Every window with its results, check by check in the order of time."""
    columns = _WINDOWS.c
    query = sa.select(
        columns.recommender, columns.check_name, columns.window_end, columns.id, columns.current
    )
    order = (columns.recommender, columns.check_name, columns.window_end, columns.id)
    windows = connection.execute(query.order_by(*order)).all()
    before: list[dict[int, int]] = []  # the signals of the windows with the last end
    last: tuple[str, str] | None = None
    done = 0
    for part in _parts(windows):
        stored = _stored(connection, [row.id for row in part])
        for (recommender, check, end), rows in groupby(part, key=lambda row: tuple(row[:3])):
            if (recommender, check) != last:
                before, last = [], (recommender, check)
            ids = [row.id for row in rows if row.current]
            if not ids:
                continue
            here = [{one["series_id"]: one["signal"] for one in stored.get(number, ())} for number in ids]
            known = before[0] if len(before) == len(here) == 1 else {}
            signals = [
                {"series_id": series, "signal": signal, "window_end": end, "window_id": number}
                for number, its in zip(ids, here, strict=True)
                for series, signal in its.items()
                if signal == _FIRE or known.get(series) != signal
            ]
            if signals:
                connection.execute(sa.insert(_SIGNALS), signals)
            before = here
        packed = [{"window_id": number, "content": _packed(rows)} for number, rows in stored.items()]
        if packed:
            connection.execute(sa.insert(_RESULTS), packed)
        if done // _TOLD_EVERY != (done + len(part)) // _TOLD_EVERY:
            log.warning("upgrading the history: %d of %d windows", done + len(part), len(windows))
        done += len(part)


def _parts(windows: Sequence[Any]) -> Iterable[list[Any]]:
    """Some hundred windows at a time; those of one check with one end stay together."""
    part: list[Any] = []
    for _, rows in groupby(windows, key=lambda row: tuple(row[:3])):
        part += rows
        if len(part) >= _AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _stored(connection: sa.Connection, ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    query = sa.select(_ROWS).where(_ROWS.c.window_id.in_(ids)).order_by(_ROWS.c.window_id, _ROWS.c.series_id)
    rows = connection.execute(query).mappings()
    return {
        number: [dict(one) for one in group]
        for number, group in groupby(rows, key=lambda one: one["window_id"])
    }


def _packed(rows: Sequence[dict[str, Any]]) -> bytes:
    series = [one["series_id"] for one in rows]
    content: dict[str, list[Any]] = {
        "series": [*series[:1], *(later - one for one, later in pairwise(series))]
    }
    for field, name in _FIELDS.items():
        column = [one[name] for one in rows]
        if any(one is not None for one in column):
            content[field] = column
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return zlib.compress(text.encode("ascii"))
