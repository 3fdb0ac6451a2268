"""Finds a catalog, a feedback log and a table of users near the exposures.

They are files or folders with the usual names of such logs, in the folder of the exposures or in its parent.
Folders of partitions (`date=2026-01-31`, `2026-01-31`) belong to the folder around them. A log that was found
by its name is used only if its ids join the exposures.
"""

from __future__ import annotations

import glob
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from monitor.config.init.guess import Guess, guess_columns, values_of
from monitor.config.init.joins import EmptyJoin, Joins, Side, empty_joins, joins_nothing, match_columns
from monitor.config.init.kinds import Kind, name_like
from monitor.config.init.profile import CannotProfile, Only, Profile, in_folder, named_log, narrowed, profile
from monitor.config.init.synonyms import LOG_NAMES, NOT_ACTIONS, SHOWN, likeness, plain
from monitor.core import columns as c
from monitor.engines.duckdb import Engine
from monitor.logs.lake.table import table_format
from monitor.logs.listing import LogListingError, list_files
from monitor.settings.logs import LogSettings

_KEYS = {c.FEEDBACK: (c.REQUEST_ID, c.USER_ID, c.ITEM_ID), c.CATALOG: (c.ITEM_ID,), c.USERS: (c.USER_ID,)}
_PARTITION = re.compile(r"[^=]+=.*|[\d_-]+(T\d+)?")
_MOST_EVENTS = 10


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another log of the same recommender.

    Attributes:
        only: the rows of a shared log that belong to it.
        by_name: `init` found it by its name; nobody named it.
        empty: the columns whose join with the exposures finds nothing. Optional ones are not in `guesses`.
    """

    paths: tuple[str, ...]
    profile: Profile
    guesses: dict[str, Guess]
    only: Only | None = None
    empty: tuple[EmptyJoin, ...] = ()
    by_name: bool = False

    def missing(self, log: str) -> list[str]:
        """The required columns that were not found."""
        return [role for role in c.REQUIRED[log] if role not in self.guesses]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A log near the exposures that is not used, and why; `named`: the user asked for it."""

    log: str
    path: str
    why: str
    named: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The exposures, the logs beside them, and the logs that are left out."""

    exposures: Profile
    guesses: dict[str, Guess]
    beside: dict[str, Neighbour]
    left_out: tuple[LeftOut, ...] = ()
    only: Only | None = None


def look_around(
    engine: Engine,
    exposures: Profile,
    guesses: dict[str, Guess],
    arguments: Sequence[str],
    feedback: Sequence[str] = (),
    others: Sequence[Kind] = (),
) -> Neighbourhood:
    """Find the logs near the exposures that have all required columns.

    A feedback log that the user names may lack columns. If the exposures hold other events too, those rows
    are the feedback. `others` are the other kinds of files that the user's paths matched.

    Raises:
        CannotProfile: the named feedback log cannot be looked at.
    """
    found = _shared_log(engine, exposures, guesses) or Neighbourhood(exposures, guesses, {})
    joins = Joins(engine)
    if feedback:
        found = _with(engine, joins, found, c.FEEDBACK, named_log(feedback), named=True)
    if not exposures.files[0].is_local:
        return found
    used = {Path(one.path).resolve() for one in exposures.files}
    for log in LOG_NAMES:
        if log == c.FEEDBACK and feedback:
            continue
        for settings in _candidates(exposures, log, others, near=len(arguments) == 1):
            if log in found.beside:
                break
            try:
                files = {Path(one.path).resolve() for one in list_files(settings)}
                if files & used:
                    continue
                found = _with(engine, joins, found, log, settings)
            except (CannotProfile, LogListingError, OSError, ImportError, ValueError):
                continue
            if log in found.beside:
                used |= files
    return found


def _candidates(exposures: Profile, log: str, others: Sequence[Kind], *, near: bool) -> Iterator[LogSettings]:
    """What may be this log, by its name; of files of one kind, those in the folders of the exposures.

    Without `near`, only files that the user named.
    """
    places = {path.rpartition("/")[0] for path in exposures.settings.paths}
    for kind in others:
        if kind.log == log:
            beside = [one for one in kind.patterns if one.rpartition("/")[0] in places]
            yield LogSettings(path=tuple(beside or kind.patterns))
    for path in _near(Path(exposures.files[0].path).resolve().parent, log) if near else ():
        try:
            settings = _log_at(path)
        except (CannotProfile, OSError):
            continue
        yield settings


def _near(folder: Path, log: str) -> Iterator[Path]:
    """Files and folders with a usual name of this log, in the folder of the exposures and in its parent."""
    while _PARTITION.fullmatch(folder.name) or (folder.name == "data" and table_format(folder.parent)):
        folder = folder.parent
    names = LOG_NAMES[log]
    around = [folder] if folder.parent in (Path(folder.anchor), Path.home()) else [folder, folder.parent]
    for place in around:
        try:
            inside = sorted(place.iterdir())
        except OSError:
            continue
        by_name: list[tuple[int, Path]] = []
        for path in inside:
            stem = plain(path.name if path.is_dir() else path.name.split(".")[0])
            words = {stem} if path.is_dir() or place != folder else {stem, *stem.split("_")}
            if path != folder and words & set(names) and path.name[:1] not in "._":
                by_name.append((0 if stem in names else 1, path))
        yield from (path for _, path in sorted(by_name))


def _log_at(path: Path) -> LogSettings:
    if path.is_file():
        return LogSettings(path=f"{glob.escape(str(path.parent))}/{name_like(path.name)}")
    if table_format(path) is not None:
        return named_log([str(path)])
    return LogSettings(path=in_folder(path, deep=False))


def _with(
    engine: Engine,
    joins: Joins,
    found: Neighbourhood,
    log: str,
    settings: LogSettings,
    *,
    named: bool = False,
) -> Neighbourhood:
    """The neighbourhood with one more log, or with the reason why that is left out."""
    paths = settings.paths
    seen = profile(engine, settings, f"sample_{log}_{zlib.crc32(repr(paths).encode()):x}")
    side = Side(seen, guess_columns(log, seen, engine.backend.table(seen.table)))
    mine, theirs = match_columns(joins, _KEYS[log], Side(found.exposures, found.guesses), side)
    empty = empty_joins(joins, _KEYS[log], mine, theirs)
    unused = {one.role for one in empty} - set(c.REQUIRED[log])
    used = {role: guess for role, guess in theirs.guesses.items() if role not in unused}
    neighbour = Neighbour(paths, seen, used, empty=empty, by_name=not named)
    why = None
    if not named and (missing := neighbour.missing(log)):
        why = f"it looks like {log}, but has no column for {', '.join(missing)}"
    elif lost := joins_nothing(log, mine, theirs, empty):
        why = str(lost) if named else f"it looks like {log}, but {lost}"
    if why is not None:
        return replace(found, left_out=(*found.left_out, LeftOut(log, paths[0], why, named)))
    return replace(found, guesses=dict(mine.guesses), beside={**found.beside, log: neighbour})


def _shared_log(engine: Engine, exposures: Profile, guesses: dict[str, Guess]) -> Neighbourhood | None:
    """The exposures and the feedback of one log of several events, split by the event's name."""
    taken = {one.column for one in guesses.values()}
    for column in exposures.usable:
        if column.name in taken or column.lists or column.distinct > 50 or not likeness(column.name, c.EVENT):
            continue
        values = values_of(engine.backend.table(exposures.table), column.name)
        shown = [one for one in values if SHOWN & set(plain(one).split("_"))][:1]
        if not shown or len(values) < 2 or any("*" in one for one in values):
            continue
        seen = narrowed(engine, exposures, column.name, shown, "sample_shown")
        mine = guess_columns(c.EXPOSURES, seen, engine.backend.table(seen.table))
        only = (column.name, tuple(shown))
        done = [one for one in values if one not in shown and not NOT_ACTIONS & set(plain(one).split("_"))]
        if not done:
            return Neighbourhood(seen, mine, {}, only=only)
        rest = narrowed(engine, exposures, column.name, done, "sample_done")
        theirs = guess_columns(c.FEEDBACK, rest, engine.backend.table(rest.table))
        acts = Neighbour(exposures.settings.paths, rest, theirs, (c.EVENT, tuple(done[:_MOST_EVENTS])))
        return Neighbourhood(seen, mine, {c.FEEDBACK: acts}, only=only)
    return None
