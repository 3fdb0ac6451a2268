"""A table of a lake: the Parquet files of its current version, and why it cannot be read as these files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from monitor.core.text import plural
from monitor.logs.files import LogFile

EXTRA: Final = "pip install 'recsys-monitor[lake]'"
_MOST_NAMED: Final = 3


class TableError(Exception):
    """A table cannot be read, or its files hold other rows or columns than it says."""


@dataclass(frozen=True, slots=True)
class LakeTable:
    """The current version of a table.

    Attributes:
        name: the format and the path, as in `delta table /shop/log`.
        version: the number or id of the version.
        roots: the folders that hold its files.
        files: the files of this version. Those of earlier versions may lie beside them.
    """

    name: str
    version: str
    roots: tuple[str, ...]
    files: tuple[LogFile, ...]

    def __str__(self) -> str:
        return f"{self.name}, version {self.version}: {plural(len(self.files), 'data file')}"


def local_path(path: str) -> str:
    """The path of a file or folder, without the scheme of local ones.

    >>> local_path("file:///shop/a"), local_path("file:/shop/a"), local_path("s3://shop/a")
    ('/shop/a', '/shop/a', 's3://shop/a')
    """
    if not path.startswith("file:"):
        return path
    return "/" + path.removeprefix("file:").lstrip("/")


def place_of(path: str) -> str:
    """The folder or file of a config as an absolute path or a URL, without a slash at its end."""
    path = local_path(path)
    return path.rstrip("/") if "://" in path else str(Path(path).absolute())


def table_format(folder: Path) -> str | None:
    """`delta` or `iceberg` if a local folder is such a table."""
    if (folder / "_delta_log").is_dir():
        return "delta"
    return "iceberg" if any((folder / "metadata").glob("*.metadata.json")) else None


def some(names: Iterable[str]) -> str:
    """The first names of many.

    >>> some("abcde"), some("ab")
    ('a, b, c and 2 more', 'a, b')
    """
    named = list(names)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return ", ".join(named[:_MOST_NAMED]) + more


def why(exc: BaseException) -> str:
    """The message of a library on one line, without the colours and the stack that it may have.

    >>> why(OSError('Local path "/a" does not exist! Error: Os { code: 2, kind: NotFound }'))
    'Local path "/a" does not exist'
    """
    lines = str(exc).split("\n   0: ", maxsplit=1)[0].split("\nstack backtrace", maxsplit=1)[0]
    text = "".join(one for one in lines if one.isprintable() or one == "\n")
    for code in ("[31m", "[0m", "↳"):
        text = text.replace(code, "")
    text = text.partition("! Error: Os {")[0]  # the same once more, as Rust writes it
    return " ".join(text.split()) or type(exc).__name__
