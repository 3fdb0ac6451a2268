"""How pyiceberg opens files: by fsspec with the options of the log, as all other files of a log.

Imported by pyiceberg alone, by its name.
"""

from __future__ import annotations

import fsspec
from pyiceberg.io.fsspec import FsspecFileIO

from monitor.logs.lake.iceberg import OPTIONS


class StorageIO(FsspecFileIO):
    """Files by any protocol that fsspec knows."""

    def _get_fs(self, scheme: str, hostname: str | None = None) -> fsspec.AbstractFileSystem:  # noqa: ARG002
        if scheme in ("", "file"):
            return fsspec.filesystem("file")
        return fsspec.filesystem(scheme, use_listings_cache=False, **self.properties[OPTIONS])
