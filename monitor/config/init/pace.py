"""How many requests an hour a log holds, over all of its files; the length of a window follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import duckdb

from monitor.config.init.guess import Guess
from monitor.config.init.profile import Profile, spread
from monitor.config.init.traits import Traits, moment
from monitor.core import columns as c
from monitor.engines.duckdb import DeadlineExceeded, Engine, deadline
from monitor.logs.canonical import canonical, to_text
from monitor.logs.files import LogFile
from monitor.logs.reading import open_filesystems, open_shape
from monitor.settings.logs import LogSettings

SECONDS = 20.0  # the time for reading all files, and again for reading a few
SOME_FILES = 8
_WANTED_REQUESTS = 1000
_WINDOWS = tuple(timedelta(minutes=one) for one in (5, 15, 60, 360, 720, 1440))


@dataclass(frozen=True, slots=True)
class Pace:
    """Requests and the time that they span; `basis` says what was counted, `exact`: the whole log was.

    `hours` are the rows of each hour of the day in UTC, if the whole log was counted.
    """

    requests: float
    span: timedelta
    basis: str
    exact: bool = False
    first: datetime | None = None
    last: datetime | None = None
    hours: tuple[int, ...] = ()

    @property
    def an_hour(self) -> float:
        """Requests an hour; 0 if the log spans no time."""
        return self.requests / (self.span / timedelta(hours=1)) if self.span else 0.0

    @property
    def window(self) -> timedelta:
        """The shortest usual window that holds about a thousand requests; a day if none does.

        >>> Pace(24_000, timedelta(hours=6), "all 3 files").window == timedelta(minutes=15)
        True
        """
        if not self.an_hour:
            return timedelta(hours=1)
        fitting = (one for one in _WINDOWS if self.an_hour * (one / timedelta(hours=1)) >= _WANTED_REQUESTS)
        return next(fitting, timedelta(days=1))


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
    size = sum(file.size for file in found.files)
    for files in (found.files, spread(found.files, SOME_FILES)):
        try:
            with deadline(seconds, (engine := Engine(connection.cursor())).interrupt):
                requests, first, last, hours = _count(engine, found, settings, guesses, files)
        except (DeadlineExceeded, duckdb.Error):
            continue
        looked_at = sum(file.size for file in files)
        part = looked_at / size if size else 1.0
        several = "" if len(files) == 1 else "s"
        exact = len(files) == len(found.files)
        basis = (
            f"counted in the whole log, {len(files):,} file{several}"
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
