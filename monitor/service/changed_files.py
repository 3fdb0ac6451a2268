"""When the files beside a log were last written: the catalog, and the lists of rules.

A reader of an incident asks first what changed shortly before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from monitor.core.columns import CATALOG, USERS
from monitor.core.text import VALUE_LENGTH, visible
from monitor.history.snapshot import Change
from monitor.logs.log import Log
from monitor.rules.rule import LoadedRule

_TABLES: Final = {CATALOG: "the catalog was", USERS: "the users were"}


def changed_files(logs: Mapping[str, Log], rules: Iterable[LoadedRule]) -> Iterator[Change]:
    """The newest file of each table, and each list that a rule reads. A file that is gone is left out."""
    for name in _TABLES:
        entries = logs[name].entries.values() if name in logs else ()
        newest = max((entry.file for entry in entries), key=lambda file: file.modified, default=None)
        if newest is not None:
            yield Change(newest.modified, f"{_TABLES[name]} written: {_shown(newest.path)}")
    lists = {str(rule.kwargs["list_path"]) for rule in rules if rule.kwargs.get("list_path")}
    for path in sorted(lists):
        try:
            written = Path(path).stat().st_mtime
        except (OSError, ValueError):
            continue  # the rule itself reports it
        yield Change(datetime.fromtimestamp(written, UTC), f"the list was written: {_shown(path)}")


def _shown(path: str) -> str:
    """The end of a path names a file best, and shows no credentials of a URL.

    >>> _shown("/var/lists/blacklist.csv")
    'blacklist.csv'
    """
    return visible(path.rstrip("/").rpartition("/")[2], VALUE_LENGTH)
