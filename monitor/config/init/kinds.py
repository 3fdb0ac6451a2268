"""Tells kinds of files apart, if a folder or a glob holds more than exposures, and finds the exposures.

Files are of one kind if their names differ only in numbers, dates and partitions (`day=2026-01-31`). Kinds
with the same columns are one log, unless a name says otherwise, such as `clicks`.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from monitor.config.init.synonyms import LOG_NAMES, SHOWN, likeness, plain
from monitor.core import columns as c
from monitor.core.record_path import parse
from monitor.engines.duckdb import Engine
from monitor.logs.files import LogFile
from monitor.logs.listing import LogListingError, belongs, list_files
from monitor.logs.mapping import readable_paths
from monitor.logs.reading import open_filesystems, sniff
from monitor.settings.logs import LogSettings

MOST_KINDS = 40  # more are names that say nothing, such as hashes
_SOUNDS = 0.5
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NUMBER = r"\d+(?:[-_:.T]\d+)*"
_VIEW = "kind_file"


@dataclass(slots=True)
class Kind:
    """Files of one kind.

    Attributes:
        patterns: globs that match them and no file of another kind.
        names: their columns, and the paths into their records; empty if no file could be read.
        log: the log that their name says, such as feedback; None if it says none.
        top: whether they lie directly in the folder.
        folders: those of them whose names differ in words, such as `news` and `shop`.
    """

    patterns: list[str]
    files: list[LogFile]
    names: tuple[str, ...] = ()
    log: str | None = None
    top: bool = True
    folders: set[str] = field(default_factory=set)
    roles: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.roles = [role for role in c.TYPES[c.EXPOSURES] if self._sounds_like(role)]

    @property
    def fitness(self) -> tuple[int, int, bool, int]:
        """The larger, the more these files look like exposures."""
        required = sum(role in self.roles for role in c.REQUIRED[c.EXPOSURES])
        signs = (self.log == c.EXPOSURES) - (self.log not in (None, c.EXPOSURES))
        signs += (c.POSITION in self.roles or c.SCORE in self.roles) - self.has_outcomes
        return required, signs, self.top, len(self.files)

    @property
    def has_outcomes(self) -> bool:
        """Whether a column seems to say what users did, or what a model should have predicted."""
        return self._sounds_like(c.EVENT) or any(plain(name) == "label" for name in self.names)

    def _sounds_like(self, role: str) -> bool:
        return any(
            max(likeness(name, role), likeness(parse(name).fields[-1], role)) >= _SOUNDS
            for name in self.names
        )

    def __str__(self) -> str:
        return ", ".join(self.patterns)


def kinds_of(engine: Engine, settings: LogSettings, arguments: Sequence[str]) -> list[Kind]:
    """The kinds of files that the user's arguments name, the one that looks most like exposures first."""
    folder = arguments[0] if len(arguments) == 1 and os.path.isdir(arguments[0]) else None
    try:
        files = [] if settings.is_table else list_files(settings)
        open_filesystems(engine, settings)
    except (LogListingError, OSError, ImportError, ValueError):
        files = []  # `profile` says why they cannot be listed
    return tell_kinds_apart(engine, settings, files, folder and os.path.abspath(folder))


def tell_kinds_apart(
    engine: Engine, settings: LogSettings, files: Sequence[LogFile], folder: str | None = None
) -> list[Kind]:
    """The kinds of files of a log, the one that looks most like exposures first.

    Args:
        engine: reads the columns of one file a kind.
        settings: how the files are read.
        files: every file of the log.
        folder: the folder that the user named. Files directly in it are not mixed with those below it.
    """
    base = folder or _common_folder([file.path for file in files])
    families: dict[str, list[LogFile]] = {}
    for file in files:
        families.setdefault(_pattern(file.path[len(base) + 1 :]), []).append(file)
    whole = Kind(list(settings.paths), list(files))
    if not 2 <= len(families) <= MOST_KINDS:
        return [whole]
    kinds: dict[tuple[object, ...], Kind] = {}
    for pattern, some in families.items():
        names, log = _names(engine, settings, some), log_named(pattern)
        top = folder is None or "/" not in pattern
        same = kinds.setdefault((frozenset(names), log, top), Kind([], [], names, log, top))
        same.patterns.append(f"{glob.escape(base)}/{pattern}")
        same.files += some
        same.folders.add(f"{base}/{pattern.rpartition('/')[0]}".rstrip("/"))
    if len(kinds) == 1:
        whole.folders = next(iter(kinds.values())).folders
    if sum(bool(kind.names) for kind in kinds.values()) < 2:
        return [whole]  # a file that cannot be read belongs to the only log there is
    wide = list(settings.paths)
    if folder is not None:
        endings = sorted({_ending(file.path) for file in files})
        wide = [f"{glob.escape(base)}/{level}{end}" for level in ("*", "**/*") for end in endings]
    for kind in kinds.values():
        kind.patterns = list(_short(kind, wide, files))
    return sorted(kinds.values(), key=lambda kind: kind.fitness, reverse=True)


def _common_folder(paths: Sequence[str]) -> str:
    """The deepest folder of all these files, which may be URLs.

    >>> _common_folder(["s3://logs/a/1.csv", "s3://logs/ab/1.csv"])
    's3://logs'
    """
    folders = [path.split("/")[:-1] for path in paths]
    pairs = zip(min(folders, default=[]), max(folders, default=[]), strict=False)
    return "/".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _names(engine: Engine, settings: LogSettings, files: Sequence[LogFile]) -> tuple[str, ...]:
    for file in dict.fromkeys((files[-1], files[0])):
        try:
            shape = sniff(engine, _VIEW, settings, file)
        except Exception:  # noqa: S112 - an engine's or a codec's, of any kind; `profile` tells it
            continue
        finally:
            engine.drop(_VIEW)
        if shape.columns:
            return tuple(readable_paths(shape.types))
    return ()


def log_named(pattern: str) -> str | None:
    """The log that the last telling name of a path says.

    >>> [log_named(one) for one in ("day=*/clicks-[0-9]*.csv", "impressions/part-[0-9]*.csv", "a.csv")]
    ['feedback', 'exposures', None]
    """
    for part in reversed(pattern.split("/")):
        words = {plain(part.split(".")[0]), *plain(part.split(".")[0]).split("_")}
        if SHOWN & words:
            return c.EXPOSURES
        for log, names in LOG_NAMES.items():
            if words & set(names):
                return log
    return None


def _pattern(path: str) -> str:
    """A glob of the files that are named alike but for numbers, dates and partitions.

    >>> _pattern("log/day=2026-01-05/part-00001.parquet"), _pattern("2026-01-05/clicks.csv")
    ('log/day=*/part-[0-9]*.parquet', '[0-9]*/clicks.csv')
    """
    *folders, name = path.split("/")
    return "/".join([*map(_folder_like, folders), name_like(name)])


def _folder_like(part: str) -> str:
    key, equals, _ = part.partition("=")
    if equals:
        return f"{glob.escape(key)}=*"
    return "[0-9]*" if re.fullmatch(_NUMBER + "Z?", part) else glob.escape(part)


def name_like(name: str) -> str:
    """A glob of the file names that differ from this one only in numbers, dates and UUIDs.

    >>> name_like("exposures-2026-01-05.csv.gz"), name_like("items.csv")
    ('exposures-[0-9]*.csv.gz', 'items.csv')
    """
    parts = re.split(f"({_UUID}|{_NUMBER})", name)
    return "".join(
        glob.escape(part) if not number % 2 else "*" if re.fullmatch(_UUID, part) else "[0-9]*"
        for number, part in enumerate(parts)
    )


def _short(kind: Kind, wide: Sequence[str], every: Sequence[LogFile]) -> Iterator[str]:
    """The simplest globs that match the files of a kind and no other; `wide` are the first to try."""
    mine = {file.path for file in kind.files}

    def matches(pattern: str) -> set[str]:
        settings = LogSettings(path=pattern)
        return {file.path for file in every if belongs(settings, file.path)}

    if len(mine) > 1:
        for pattern in wide:
            if matches(pattern) == mine:
                yield pattern
                return
    found = []
    for pattern in kind.patterns:
        place, _, name = pattern.rpartition("/")
        every_name = f"{place}/*{_ending(name)}"
        found.append(every_name if "*" in pattern and matches(every_name) <= mine else pattern)
    yield from dict.fromkeys(found)


def _ending(name: str) -> str:
    """The endings of a file, without those that hold a number.

    >>> _ending("part-0.c000.snappy.parquet"), _ending("a.csv.gz")
    ('.parquet', '.csv.gz')
    """
    ending = re.search(r"(\.[A-Za-z]+)?\.(gz|zst)$|\.[A-Za-z]+$", name)
    return ending[0] if ending else ""
