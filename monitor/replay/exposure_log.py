"""From the journal of a run to its exposure log: one Parquet file, replaced as a whole."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import duckdb
import pyarrow.parquet as pq

from monitor.core.columns import EVER_SHOWN, INTERRUPTED, LATENCY, OK, REQUEST_ID, STATUS, TS, USER_ID
from monitor.replay.journal import answer_files, begun_files
from monitor.replay.plan import NUMBER, VALUES, plan_path

OWN_COLUMNS: Final = (
    "item_id", "position", "score", "model", "target", "version", "run", STATUS, "http_status", LATENCY,
    "attempts", EVER_SHOWN, "replayed_at", "now_passed", "detail",
)  # fmt: skip
"""The columns of the log that a run adds to those of its requests."""
_FOLDER: Final = "log"
_SHOWN: Final = "shown.parquet"
_LEAST_LINE: Final = 1 << 24  # bytes; what DuckDB reads of a line by itself
_SESSION: Final = r"regexp_extract(filename, '-(\d+)\.\w+$', 1)::INTEGER"
_ANSWERS: Final = {
    "number": "BIGINT", "status": "VARCHAR", "http_status": "INTEGER", "latency": "DOUBLE",
    "attempts": "INTEGER", "replayed_at": "DOUBLE", "items": "VARCHAR[]", "scores": "DOUBLE[]",
    "positions": "BIGINT[]", "model": "VARCHAR", "detail": "VARCHAR",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Marks:
    """What every row of the log is marked with."""

    run: str
    target: str
    version: str | None
    now_passed: bool


def log_file(run: Path) -> Path:
    return run / _FOLDER / "exposures.parquet"


def shown_path(run: Path) -> Path:
    """The pairs of users of the plan and items that the source log has shown them, if it is known."""
    return run / _SHOWN


def write_log(run: Path, marks: Marks) -> Path | None:
    """Write the log of all answers so far; None if nothing was sent.

    Of a request that was sent in two sessions, the later one counts.

    An answer has one row an item, an empty list one row without an item, both with the status `ok`. A request
    without an answer has one row without an item, and its own status.
    """
    begun = [one for one in begun_files(run) if one.stat().st_size]
    if not begun:
        return None
    path = log_file(run)
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        _load(database, run, begun)
        kept = [
            name for name in pq.read_schema(plan_path(run)).names
            if name not in (NUMBER, REQUEST_ID, USER_ID, TS, VALUES)
        ]  # fmt: skip
        database.execute(
            "CREATE TABLE marks AS SELECT ?::VARCHAR AS target, ?::VARCHAR AS version, ?::VARCHAR AS run, "
            "?::BOOLEAN AS now_passed",
            [marks.target, marks.version, marks.run, marks.now_passed],
        )
        database.execute(_query(kept, shown_path(run).exists()))
        database.table("exposures").to_parquet(str(unfinished), compression="zstd")
    unfinished.replace(path)
    return path


def _load(database: duckdb.DuckDBPyConnection, run: Path, begun: Sequence[Path]) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in _ANSWERS.items())
    database.execute(f"CREATE TABLE answers (session INTEGER, {columns})")
    answers = [one for one in answer_files(run) if one.stat().st_size]
    if answers:
        names = ", ".join(_ANSWERS)
        database.execute(
            f"INSERT INTO answers SELECT {_SESSION}, {names} "  # noqa: S608 (our own names)
            "FROM read_json(?, format = 'newline_delimited', columns = ?, filename = true, "
            "hive_partitioning = false, maximum_object_size = ?)",
            [_exactly(answers), _ANSWERS, max(_LEAST_LINE, *map(_longest_line, answers))],
        )
    database.execute(
        f"CREATE TABLE begun AS SELECT number, max({_SESSION}) AS session "  # noqa: S608 (our own names)
        "FROM read_csv(?, header = false, columns = ?, filename = true, hive_partitioning = false) "
        "GROUP BY number",
        [_exactly(begun), {"number": "BIGINT"}],
    )
    database.execute(
        "CREATE TABLE plan AS SELECT * EXCLUDE (values) FROM read_parquet(?, hive_partitioning = false)",
        [_exactly([plan_path(run)])],
    )
    if shown_path(run).exists():
        database.execute(
            "CREATE TABLE shown AS FROM read_parquet(?, hive_partitioning = false)",
            [_exactly([shown_path(run)])],
        )


def _exactly(paths: Iterable[Path]) -> list[str]:
    """The paths as DuckDB takes them for these files alone: the folder of a run may be called `[a]`."""
    return [glob.escape(str(one)) for one in paths]


def _longest_line(path: Path) -> int:
    with path.open("rb") as lines:
        return max(map(len, lines))


def _query(kept: Sequence[str], with_shown: bool) -> str:
    """The statement that makes the log from the tables of `_load`."""
    own = "".join(f"plan.{_quoted(name)}, " for name in kept)
    ever = "CAST(NULL AS BOOLEAN)"
    joined = ""
    if with_shown:
        # Without a user, nobody knows what was shown before.
        asked = "rows.item_id IS NOT NULL AND plan.user_id IS NOT NULL"
        ever = f"CASE WHEN {asked} THEN shown.item_id IS NOT NULL END"
        joined = "LEFT JOIN shown ON shown.user_id = plan.user_id::VARCHAR AND shown.item_id = rows.item_id"
    return f"""
        CREATE TABLE exposures AS
        WITH outcomes AS (
            SELECT begun.number AS number, coalesce(answers.status, '{INTERRUPTED}') AS status,
                   answers.* EXCLUDE (number, status, session)
            FROM begun LEFT JOIN answers USING (number, session)
        ), rows AS (
            SELECT *, items[place] AS item_id,
                CASE WHEN items[place] IS NOT NULL THEN coalesce(positions[place], place) END AS position
            FROM (SELECT *, unnest(range(1, greatest(coalesce(len(items), 0), 1) + 1)) AS place FROM outcomes)
        )
        SELECT plan.request_id, plan.user_id, plan.ts AT TIME ZONE 'UTC' AS ts, {own}
            rows.item_id, rows.position, rows.scores[rows.place] AS score,
            CASE WHEN rows.status = '{OK}' THEN coalesce(rows.model, marks.version) END AS model,
            marks.target, marks.version, marks.run, rows.status, rows.http_status, rows.latency,
            rows.attempts, {ever} AS ever_shown, to_timestamp(rows.replayed_at) AS replayed_at,
            marks.now_passed, nullif(rows.detail, '') AS detail
        FROM rows JOIN plan ON plan.number = rows.number {joined} CROSS JOIN marks
        ORDER BY plan.number, rows.place
    """  # noqa: S608 (names are quoted, values are parameters)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
