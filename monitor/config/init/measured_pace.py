"""How many requests an hour a log holds, over all of its files; the length of a window follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import duckdb

from monitor.config.init.guess import Guess
from monitor.config.init.profile import Profile, spread
from monitor.config.init.traits import Traits, moment
from monitor.config.pace import Pace, part_of
from monitor.core import columns as c
from monitor.core.text import plural
from monitor.engines.duckdb import DeadlineExceeded, Engine, deadline
from monitor.logs.canonical import canonical, to_text
from monitor.logs.files import LogFile
from monitor.logs.reading import open_filesystems, open_shape
from monitor.settings.logs import LogSettings

SECONDS = 20.0  # the time for reading all files, and again for reading a few
SOME_FILES = 8


def measure_pace(
    connection: duckdb.DuckDBPyConnection,
    found: Profile,
    settings: LogSettings,
    guesses: Mapping[str, Guess],
    sample: Traits,
    seconds: float = SECONDS,
) -> Pace:
    """Read the times and the requests of every file; if that takes too long, of a few whole files.

    Args:
        connection: the database; the work is done on a cursor of its own.
        found: the log's files and shape.
        settings: how the log is read.
        guesses: the columns.
        sample: what the sampled rows say, if even a few whole files take too long.
        seconds: how long each of the two readings may take.
    """
    for files in (found.files, spread(found.files, SOME_FILES)):
        try:
            with deadline(seconds, (engine := Engine(connection.cursor())).interrupt):
                requests, first, last, hours = _count(engine, found, settings, guesses, files)
        except (DeadlineExceeded, duckdb.Error):
            continue
        part = part_of(files, found.files)
        exact = len(files) == len(found.files)
        basis = (
            f"counted in the whole log, {plural(len(files), 'file')}"
            if exact
            else f"estimated by size from {len(files)} of {len(found.files):,} files"
        )
        span = last - first if first and last else timedelta(0)
        return Pace(requests / part, span, basis, exact, first, last, hours if exact else ())
    rows = f"counted in {sample.rows:,} rows of the log; this is wrong if they are not sorted by time"
    return Pace(sample.requests, sample.span, rows, False, sample.first, sample.last)


def _count(
    engine: Engine,
    found: Profile,
    settings: LogSettings,
    guesses: Mapping[str, Guess],
    files: Sequence[LogFile],
) -> tuple[int, datetime | None, datetime | None, tuple[int, ...]]:
    open_filesystems(engine, settings)
    request, time = guesses[c.REQUEST_ID].column, guesses[c.TS].column
    paths = [file.path for file in files]
    rows = open_shape(engine, "pace_files", found.shape, paths, fields=(request, time))
    for column, wanted in settings.only.items():
        values = [wanted] if isinstance(wanted, str) else list(wanted)
        rows = rows.filter(to_text(rows[settings.columns.get(column, column)]).isin(values))
    # As feedback: the lists of exposures would be made rows, which takes long and changes no count here.
    read = canonical(rows.select(request, time), c.FEEDBACK, settings, {})
    read = read.filter(read[c.TS].notnull())
    sums = read.aggregate(
        requests=lambda t: t[c.REQUEST_ID].nunique(),
        first=lambda t: t[c.TS].min(),
        last=lambda t: t[c.TS].max(),
        **{f"hour_{hour}": read.count(where=read[c.TS].hour() == hour) for hour in range(24)},
    )
    row = engine.backend.execute(sums).iloc[0].to_dict()
    hours = tuple(int(row[f"hour_{hour}"]) for hour in range(24))
    return int(row["requests"]), moment(row["first"]), moment(row["last"]), hours
