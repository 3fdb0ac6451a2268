"""The findings of `validate` on one log: one for each thing it looked at, good or bad."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

from monitor.config.look import ColumnSeen, LogSeen
from monitor.config.pace import Pace, part_of
from monitor.config.problems import Problem, nearest
from monitor.core import columns as c
from monitor.core.settings import show_duration
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.logs.lake.table import table_format
from monitor.logs.listing import no_file
from monitor.settings.logs import TimeSettings

_SHOWN_COLUMNS = 20
_MANY_BAD = 0.01
_MANY_EMPTY = 0.05
_KINDS = {
    "id": "an id",
    "time": "a time",
    "integer": "a whole number",
    "number": "a number",
    "text": "text",
    "texts": "a list of texts",
    "numbers": "a list of numbers",
    "split": "a split (train, test, online, offline)",
}
_MAY_BE_EMPTY = {
    c.EXPOSURES: (c.ITEM_ID,),  # a request that returned nothing
    c.SURVEY: (c.ANSWER,),  # a user who was asked and did not answer
}


class Level(StrEnum):
    """A `problem` makes the config invalid; a `warning` does not."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """One line of the report; `place` is where in the config a problem or a warning is."""

    level: Level
    recommender: str
    log: str
    check: str
    detail: str
    place: str = ""

    def as_problem(self) -> Problem:
        return Problem(self.place, self.detail)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Creates findings on one log of one recommender."""

    recommender: str
    log: str
    where: str  # the place of the log in the config

    def ok(self, check: str, detail: str) -> ConfigFinding:
        return ConfigFinding(Level.OK, self.recommender, self.log, check, detail)

    def warning(self, check: str, detail: str, place: str = "") -> ConfigFinding:
        return ConfigFinding(Level.WARNING, self.recommender, self.log, check, detail, self._at(place))

    def problem(self, check: str, detail: str, place: str = "") -> ConfigFinding:
        return ConfigFinding(Level.PROBLEM, self.recommender, self.log, check, detail, self._at(place))

    def _at(self, place: str) -> str:
        return f"{self.where}.{place}" if place and self.where else place or self.where


def of_log(say: Reporter, seen: LogSeen, time: TimeSettings, now: datetime) -> Iterator[ConfigFinding]:
    """Every finding that needs only this log."""
    if seen.error is not None:
        yield say.problem("files", f"cannot be listed: {seen.error}", "path")
        return
    for error in seen.unlisted:
        yield say.warning("files", error, "path")
    for table in seen.tables:
        yield say.ok("files", str(table))
    if not seen.files:
        yield say.problem(
            "files",
            f"{no_file(seen.settings)}; correct the path, or use --no-logs where the logs are elsewhere",
            "path",
        )
        return
    yield from _files(say, seen)
    yield from _plain_table(say, seen)
    if not seen.measured:
        return
    if seen.rows == 0:
        yield from _no_row(say, seen)
        return
    yield from _columns(say, seen)
    if c.TS in c.TYPES[seen.name]:
        yield from _times(say, seen, time, now)


def size(count: float) -> str:
    """A number of bytes in words.

    >>> size(512), size(1_500_000), size(3 * 2**30)
    ('512 bytes', '1.4 MiB', '3.0 GiB')
    """
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def percent(part: float, whole: float) -> str:
    """A share in percent. Only exactly 0 and 1 are written as 0 % and 100 %.

    >>> percent(1, 3), percent(1, 10**6), percent(10**6 - 1, 10**6)
    ('33.3 %', 'under 0.1 %', 'over 99.9 %')
    """
    share = 100 * part / whole if whole else 0.0
    if 0 < share < 0.1:
        return "under 0.1 %"
    if 99.9 < share < 100:
        return "over 99.9 %"
    return f"{share:.1f} %".replace(".0 %", " %")


def _files(say: Reporter, seen: LogSeen) -> Iterator[ConfigFinding]:
    total, looked = len(seen.files), len(seen.looked)
    whole = sum(one.size for one in seen.files)
    rows = f", {plural(seen.rows, 'row')}" if seen.measured else ""
    some = [one for one in seen.measured if not one.whole]
    cut = f" (only the first rows of {plural(len(some), 'large file')})" if some else ""
    lacking = [one for one in seen.looked if one.problems]
    broken = [one for one in seen.looked if one.reason is not None]
    empty = [one for one in seen.looked if one.is_empty]
    example = f"{broken[0].file.path}: {broken[0].reason}" if broken else ""
    yield say.ok(
        "files", f"looked at {looked:,} of {plural(total, 'file')} ({size(whole)} in all){rows}{cut}"
    )
    if broken:
        text = f"{len(broken)} of {plural(looked, 'file')} looked at cannot be read: {example}"
        yield (say.warning if len(broken) < looked else say.problem)("files", text, "path")
    if empty:
        among = plural(looked, "file")
        text = f"no row in {len(empty)} of {among} looked at, such as {empty[0].file.path}"
        yield (say.warning if seen.sound else say.problem)("files", text, "path")
    if lacking:
        every = not seen.sound
        among = f"in {len(lacking)} of {plural(looked, 'file')} looked at, such as {lacking[0].file.path}: "
        where = "" if every else among
        for sentence in lacking[0].problems:
            ours = sentence.removeprefix("column ").split(" ")[0].rstrip(":")
            make = say.problem if every else say.warning
            place = "columns" if ours in seen.settings.columns or ours in c.TYPES[seen.name] else "only"
            yield make("columns", f"{where}{sentence}{_meant(seen, ours)}", f"{place}.{ours}")


def _plain_table(say: Reporter, seen: LogSeen) -> Iterator[ConfigFinding]:
    """A warning if globs match the files of a table: some of them may belong to its earlier versions."""
    if seen.settings.is_table or not seen.files[0].is_local:
        return
    for folder in Path(seen.files[0].path).parents:
        if (kind := table_format(folder)) is not None:
            text = (
                f"{folder} is a table, and its folder may hold deleted rows too; set format: {kind} and path"
            )
            yield say.warning("files", f"{text}: {folder}", "format")


def _meant(seen: LogSeen, ours: str) -> str:
    """A hint at the column of the file that was probably meant."""
    theirs = seen.settings.columns.get(ours, ours)
    close = nearest(theirs, seen.theirs)
    return f"; did you mean {close!r}?" if close is not None and close != theirs else ""


def _no_row(say: Reporter, seen: LogSeen) -> Iterator[ConfigFinding]:
    if seen.settings.only:
        wanted = ", ".join(f"{name}: {value}" for name, value in seen.settings.only.items())
        yield say.problem("rows", f"no row of the files looked at has {wanted}, so none counts", "only")
    else:
        yield say.warning("rows", "the files looked at hold no row", "path")


def _columns(say: Reporter, seen: LogSeen) -> Iterator[ConfigFinding]:
    found = seen.columns
    known = [name for name in c.TYPES[seen.name] if name in found]
    shown = ", ".join(_column(name, found[name]) for name in known)
    further = [visible(one, NAME_LENGTH) for one in sorted(seen.names - set(c.TYPES[seen.name]))]
    more = f"; further columns: {', '.join(further[:_SHOWN_COLUMNS])}" if further else ""
    more += f" and {len(further) - _SHOWN_COLUMNS} more" if len(further) > _SHOWN_COLUMNS else ""
    yield say.ok("columns", shown + more)
    for ours, theirs in seen.settings.columns.items():
        if seen.mapped.get(ours) != theirs:
            have = ", ".join(map(repr, seen.theirs[:_SHOWN_COLUMNS]))
            text = f"the files looked at have no column {theirs!r}; they have {have}{_meant(seen, ours)}"
            yield say.problem("columns", text, f"columns.{ours}")
    yield from _wide(say, seen)
    for name in known:
        yield from _values(say, seen, name, found[name])


def _wide(say: Reporter, seen: LogSeen) -> Iterator[ConfigFinding]:
    """A warning if the item's column has numbered siblings: it may be a list in several columns."""
    theirs = seen.mapped.get(c.ITEM_ID)
    numbered = re.compile(r"(.*\D)\d{1,4}", re.DOTALL)
    stem = numbered.fullmatch(theirs) if theirs is not None and seen.name == c.EXPOSURES else None
    if stem is None:
        return
    alike = [one for one in seen.theirs if (it := numbered.fullmatch(one)) and it[1] == stem[1]]
    others = [one for one in alike if one != theirs]
    if others:
        text = (
            f"only {theirs!r} is judged, and {', '.join(map(repr, others[:3]))} may hold further items of "
            "the same list; write one row for each item, or one column with a list of the items"
        )
        yield say.warning("columns", text, "columns.item_id")


def _column(name: str, one: ColumnSeen) -> str:
    source = "" if one.theirs == name else f" <- {visible(one.theirs, NAME_LENGTH)}"
    return f"{name}{source} ({one.dtype})" if one.dtype else f"{name}{source}"


def _values(say: Reporter, seen: LogSeen, name: str, one: ColumnSeen) -> Iterator[ConfigFinding]:
    """Findings on unreadable values of one of our columns, and on empty values of a required one."""
    kind, place = c.TYPES[seen.name][name], f"columns.{name}"
    asked = name in c.REQUIRED[seen.name] or name in seen.settings.columns
    example = f", such as {one.example}" if one.example is not None else ""
    there = one.present + one.bad
    if one.bad and not one.present:
        what = f"none of the {there:,} values of {one.theirs!r} ({one.dtype}) can be read as {_KINDS[kind]}"
        hint = "; name a column that holds single values" if _is_nested(one.dtype) else ""
        yield (say.problem if asked else say.warning)("values", f"{what}{example}{hint}", place)
    elif one.bad:
        what = f"{percent(one.bad, there)} of the values of {one.theirs!r} cannot be read as {_KINDS[kind]}"
        if one.bad > _MANY_BAD * there:
            yield say.warning("values", f"{what}{example}", place)
        else:
            yield say.ok("values", f"{what}{example}")
    if kind == "id" and one.dtype.startswith(("timestamp", "date")):
        yield say.warning("values", f"{one.theirs!r} holds times, and {name} should be an id", place)
    empty = seen.rows - there
    if name not in c.REQUIRED[seen.name] or not empty:
        return
    if not there:  # a row counts without a user or an item, but not without a request or a time
        text = f"every value of {one.theirs!r} is empty"
        if name in c.INDISPENSABLE[seen.name]:
            yield say.problem("values", f"{text}, and {name} is required", place)
        else:
            yield say.warning("values", f"{text}, so metrics that need {name} have no data", place)
    elif empty > _MANY_EMPTY * seen.rows and name not in _MAY_BE_EMPTY.get(seen.name, ()):
        yield say.warning("values", f"{percent(empty, seen.rows)} of the rows have no {name}", place)


def _is_nested(dtype: str) -> bool:
    return dtype.startswith(("array", "struct", "map"))


def _times(say: Reporter, seen: LogSeen, time: TimeSettings, now: datetime) -> Iterator[ConfigFinding]:
    first, last = seen.first, seen.last
    if first is None or last is None:
        if c.TS in c.REQUIRED[seen.name] and seen.columns[c.TS].present:
            yield say.problem("times", "no row has a time after the year 1000", "columns.ts")
        return
    zone = seen.settings.timezone
    span = f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC (times without an offset are {zone})"
    age = f"{_age(now - last)} old" if last <= now else f"{_age(last - now)} in the future"
    whole = all(one.whole for one in seen.measured)  # if not, there may be newer rows
    yield say.ok("times", f"{span}; the newest row{'' if whole else ' of those looked at'} is {age}")
    if seen.name in (c.EXPOSURES, c.FEEDBACK):
        yield from _pace(say, seen, time)
    future, rows = sum(one.future for one in seen.measured), seen.rows
    if future:
        text = (
            f"{percent(future, rows)} of the rows have a time after their file was written, and count in no "
            "window; set `timezone` to the zone of this log's times"
        )
        yield (say.problem if future == rows else say.warning)("times", text, "timezone")
    due = time.window + time.lateness + time.max_wait
    if whole and now - last > due and seen.name not in (c.SAMPLES, c.SURVEY, c.REQUESTS):
        longest = show_duration(due)
        text = (
            f"the newest row is {_age(now - last)} old, and a window waits {longest} at most for its rows; "
            "is this log still written?"
        )
        yield say.warning("times", text, "path")
    unusable = rows - sum(one.usable for one in seen.measured)
    names = " and ".join(c.INDISPENSABLE[seen.name])
    if unusable == rows:
        yield say.problem("rows", f"no row can be used: each needs {names}")
    elif unusable > _MANY_BAD * rows:
        yield say.warning("rows", f"{percent(unusable, rows)} of the rows cannot be used: each needs {names}")


def _pace(say: Reporter, seen: LogSeen, time: TimeSettings) -> Iterator[ConfigFinding]:
    """The usual number of rows in a window, as `init` estimates it: by the sizes of the files looked at."""
    read = [(one.file, one.rows) for one in seen.looked if one.rows is not None and one.rows.whole]
    part = part_of((file for file, _ in read), seen.files)
    found = [rows for _, rows in read]
    if not found:  # all of them are large, and have the rows of a time in one place
        found, part = seen.measured[:1], 1.0
    first = min((one.first for one in found if one.first), default=None)
    last = max((one.last for one in found if one.last), default=None)
    if first is None or last is None or first == last:
        return

    def in_window(count: int) -> float:
        return Pace(count / part, last - first, "").in_window(time.window)

    requests = sum(one.requests or 0 for one in found)
    in_requests = f" in {plural(round(in_window(requests)), 'request')}" if requests else ""
    rows = plural(round(in_window(sum(one.rows for one in found))), "row")
    yield say.ok("windows", f"about {rows}{in_requests} per window of {show_duration(time.window)}")


def _age(age: timedelta) -> str:
    """An age in its largest unit, so that two runs within a minute agree."""
    minutes = int(age.total_seconds() // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"
