"""Files behind URLs, copied to the shared folder by the executors.

Spark needs a connector for each kind of URL. The monitor already opens URLs by fsspec, with the config's
own options; so do the executors here, and Spark then reads plain files. Each file is copied once for all
tables that read it at one time.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from monitor.core.digest import digest

if TYPE_CHECKING:
    import fsspec

_PACKED: Final = ".gz"  # Spark knows a compressed file by its name


class Copies:
    """The copies that one engine's tables read.

    Args:
        session: runs the copying.
        folder: for the copies; all executors see it under the same path.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._filesystems: dict[str, fsspec.AbstractFileSystem] = {}
        self._of: dict[str, list[str]] = {}  # the URLs of each table
        self._used: Counter[str] = Counter()  # tables by URL

    def register(self, filesystem: fsspec.AbstractFileSystem) -> None:
        """Open URLs of this filesystem's protocols with it."""
        protocols = filesystem.protocol
        for protocol in [protocols] if isinstance(protocols, str) else protocols:
            self._filesystems[protocol] = filesystem

    def take(self, table: str, paths: Sequence[str]) -> Mapping[str, str]:
        """Where a table reads each path: its copy for a URL, else the path itself.

        Raises:
            FileNotFoundError: a file is not there any more.
        """
        urls = [path for path in paths if "://" in path]
        if urls:
            self.give_back(table)
            missing = [url for url in dict.fromkeys(urls) if not self._used[url]]
            self._copy(missing)
            self._of[table] = urls
            self._used.update(urls)
        return {path: str(self._place(path)) if "://" in path else path for path in paths}

    def give_back(self, table: str) -> None:
        """The table is gone; delete the copies that no other table reads."""
        for url in self._of.pop(table, ()):
            self._used[url] -= 1
            if not self._used[url]:
                del self._used[url]
                self._place(url).unlink(missing_ok=True)

    def _place(self, url: str) -> Path:
        ending = _PACKED if url.lower().endswith(_PACKED) else ""
        return self._folder / f"{digest(url, 32)}{ending}"

    def _copy(self, urls: Sequence[str]) -> None:
        if not urls:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        context = self._session.sparkContext
        work = [(self._filesystems[url.partition("://")[0]], url, str(self._place(url))) for url in urls]
        context.parallelize(work, len(work)).foreachPartition(copy)


def copy(files: Iterable[tuple[fsspec.AbstractFileSystem, str, str]]) -> None:
    """Copy files on an executor: each whole or not at all, as it may run twice at a time."""
    for filesystem, url, place in files:
        part = f"{place}.{os.getpid()}.part"
        try:
            with filesystem.open(url, "rb") as source, open(part, "wb") as target:
                shutil.copyfileobj(source, target, 1 << 24)
            os.replace(part, place)
        finally:
            if os.path.exists(part):
                os.remove(part)


# Executors get the code of `copy` itself, so that they need fsspec but not the monitor.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
