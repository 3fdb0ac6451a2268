"""Which files match the globs of a log or belong to its tables, and which folders could not be listed.

fsspec does not walk local folders here, because it ignores errors: an unreadable folder would look empty.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from fsspec.utils import glob_translate

from monitor.core.redaction import redact
from monitor.logs.files import LogFile, filesystem, is_named, local_file, modified
from monitor.logs.lake.delta import delta_table
from monitor.logs.lake.iceberg import iceberg_table
from monitor.logs.lake.table import LakeTable, TableError
from monitor.settings.logs import LogSettings

_WILDCARD = re.compile(r"[*?\[]")
_ANY_DEPTH: Final = "**"


class LogListingError(Exception):
    """The place of a log cannot be listed."""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """A folder, file or glob that could not be listed. It may hide everything below it.

    `is_missing`: the fixed folder of a glob does not exist. It hides something only if files were read from
    there before.
    """

    path: str
    reason: str
    is_missing: bool = False

    def hides(self, path: str) -> bool:
        """Whether a file that was not listed may still exist.

        >>> folder = Unlisted("/logs/a", "denied")
        >>> folder.hides("/logs/a/1.csv"), folder.hides("/logs/ab")
        (True, False)
        """
        return path == self.path or path.startswith(self.path.rstrip("/") + "/")

    def __str__(self) -> str:
        return f"{self.path}: cannot be listed: {self.reason}"


@dataclass(slots=True)
class Listing:
    """The files that match the globs, by path, and what could not be listed; of tables, which versions."""

    files: dict[str, LogFile] = field(default_factory=dict)
    errors: list[Unlisted] = field(default_factory=list)
    tables: list[LakeTable] = field(default_factory=list)


def hiding(errors: Mapping[str, Unlisted], path: str) -> Unlisted | None:
    """The error, by its path, that may hide a file: that of the file itself, or of a folder above it.

    >>> hiding({"/logs/a": Unlisted("/logs/a", "denied")}, "/logs/a/b/1.csv").reason
    'denied'
    """
    while path not in errors and path.strip("/"):
        path = path.rpartition("/")[0] or "/"
    return errors.get(path)


def list_log(settings: LogSettings) -> Listing:
    """List the files of a log.

    Names that start with a dot or an underscore, or end in `.tmp` or `.part`, are left out: writers that
    rename finished files into place use such names.

    An error in a local folder hides only the files below it. A remote listing fails as a whole, and so does
    that of a table.

    Raises:
        LogListingError: a remote glob cannot be listed, or a table cannot be read as its files are.
        ValueError: `**` is only a part of a folder's name.
    """
    found = Listing()
    for pattern in settings.paths:
        if settings.is_table:
            _list_table(settings, pattern, found)
        elif "://" in pattern:
            _list_remote(settings, pattern, found)
        else:
            _Walk(pattern, found).run()
    found.files = dict(sorted(found.files.items()))
    return found


def list_files(settings: LogSettings) -> list[LogFile]:
    """Every file that matches the globs, in the order of their names.

    Raises:
        LogListingError: no file was found, and a folder could not be listed.
    """
    found = list_log(settings)
    errors = [one for one in found.errors if not one.is_missing]
    if errors and not found.files:
        raise LogListingError(str(errors[0]))
    return list(found.files.values())


def no_file(settings: LogSettings) -> str:
    """Why the paths and globs match nothing, with advice if the path is a folder."""
    if settings.is_table:
        return f"the {settings.format} table {', '.join(settings.paths)} has no data file"
    folders = [one for one in settings.paths if "://" not in one and os.path.isdir(one)]
    if folders:
        pattern = f"{folders[0].rstrip('/')}/*{_ending_in(folders[0])}"
        return f"{folders[0]} is a folder, not a file; name the files in it, such as {pattern!r}"
    shown = ", ".join(settings.paths)
    return f"no file matches {shown}" if _has_pattern(settings) else f"there is no file {shown}"


def _has_pattern(settings: LogSettings) -> bool:
    """Whether one of the paths is a glob."""
    return any(map(_WILDCARD.search, settings.paths))


def _ending_in(folder: str) -> str:
    """The ending of the first file in a folder that can be read, such as `.csv.gz`."""
    with suppress(OSError):
        for name in sorted(os.listdir(folder)):
            ending = re.search(r"(\.[A-Za-z]+)(\.gz|\.zst)?$", name)
            if ending is not None and is_named(name):
                return ending[0]
    return ".parquet"


def belongs(settings: LogSettings, path: str, tables: Iterable[LakeTable] = ()) -> bool:
    """Whether the path of a file matches the globs of these settings, or lies in the folder of a table.

    >>> settings = LogSettings(path="/logs/*/a.csv")
    >>> belongs(settings, "/logs/x/a.csv"), belongs(settings, "/logs/a.csv")
    (True, False)
    """
    if settings.is_table:
        return any(path.startswith(f"{root}/") for table in tables for root in table.roots)
    return any(_matches(settings, pattern, path) for pattern in settings.paths)


def _matches(settings: LogSettings, pattern: str, path: str) -> bool:
    if "://" not in pattern:
        pattern = _absolute(pattern)
        return path == pattern or _compiled(pattern).match(path) is not None
    if "://" not in path:
        return False
    fs, inner = filesystem(settings, pattern)
    return _compiled(inner).match(str(fs._strip_protocol(path))) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(glob_translate(pattern))


def _absolute(pattern: str) -> str:
    return str(Path(pattern).absolute())


def _is_unfinished(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name[:1] in "._" or name.endswith((".tmp", ".part"))


class _Walk:
    """One local glob. Only folders that can hold a match are opened.

    A glob means the same as in fsspec, and so for URLs: `*` and `?` also match names that begin with a dot,
    `**` matches any number of folders, and links to folders are not followed.
    """

    def __init__(self, pattern: str, found: Listing) -> None:
        path = _absolute(pattern)
        glob_translate(path)  # raises where ** is part of a name
        wild = _WILDCARD.search(path)
        cut = len(path) if wild is None else path.rindex("/", 0, wild.start()) + 1
        self._root, rest = path[:cut].rstrip("/") or "/", path[cut:]
        self._parts = rest.split("/") if rest else []
        self._names = [
            None if part == _ANY_DEPTH else re.compile(glob_translate(part)) for part in self._parts
        ]
        self._found = found

    def run(self) -> None:
        if not self._parts:
            self._take(self._root)
            return
        folders = [(self._root, self._reached({0}))]
        while folders:
            folder, places = folders.pop()
            for entry in self._entries(folder):
                matched, deeper = self._step(entry.name, places)
                path = folder.rstrip("/") + "/" + entry.name
                try:
                    is_folder = entry.is_dir(follow_symlinks=False)
                except OSError as exc:
                    self._failed(path, exc)
                    continue
                if is_folder and deeper:
                    folders.append((path, deeper))
                elif matched and not is_folder and not _is_unfinished(path):
                    self._take(path)

    def _reached(self, places: set[int]) -> set[int]:
        """The places in the glob, and those after a `**`, which can match no folder."""
        reached = set(places)
        for place in range(len(self._parts) - 1):
            if place in reached and self._names[place] is None:
                reached.add(place + 1)
        return reached

    def _step(self, name: str, places: set[int]) -> tuple[bool, set[int]]:
        """Whether a file of this name matches here, and the places that a folder of this name leads to."""
        last = len(self._parts) - 1
        matched, deeper = False, set[int]()
        for place in places:
            wanted = self._names[place]
            if wanted is None:
                deeper.add(place)
            elif not wanted.match(name):
                continue
            elif place < last:
                deeper.add(place + 1)
            matched = matched or place == last
        return matched, self._reached(deeper)

    def _entries(self, folder: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except FileNotFoundError as exc:  # a folder below the fixed one has just been deleted
            if folder == self._root:
                self._failed(folder, exc, is_missing=True)
        except OSError as exc:
            self._failed(folder, exc)

    def _take(self, path: str) -> None:
        """Add the file at a path or behind a link."""
        try:
            file = local_file(path)
            folder = os.path.dirname(path)
            if file is not None:
                self._found.files[path] = file
            elif not self._parts and not os.path.isdir(folder):
                self._failed(
                    folder, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)), is_missing=True
                )
        except OSError as exc:
            self._failed(path, exc)

    def _failed(self, path: str, exc: OSError, *, is_missing: bool = False) -> None:
        path = path.rstrip("/") or "/"
        self._found.errors.append(Unlisted(path, exc.strerror or type(exc).__name__, is_missing))


def _list_table(settings: LogSettings, path: str, found: Listing) -> None:
    read = delta_table if settings.format == "delta" else iceberg_table
    try:
        table = read(settings, path)
    except TableError as exc:
        raise LogListingError(redact(str(exc))) from exc
    found.tables.append(table)
    found.files.update({file.path: file for file in table.files})


def _list_remote(settings: LogSettings, pattern: str, found: Listing) -> None:
    try:
        fs, inner = filesystem(settings, pattern)
        matches: Mapping[str, Mapping[str, Any]] = fs.glob(inner, detail=True)
        for name, info in matches.items():
            if info.get("type") == "file" and not _is_unfinished(name):
                size = int(info.get("size") or 0)
                file = LogFile(fs.unstrip_protocol(name), size, modified(fs, name, info))
                found.files[file.path] = file
    except Exception as exc:
        why = redact(str(exc)) or type(exc).__name__
        raise LogListingError(f"{pattern}: cannot be listed: {why}") from exc
