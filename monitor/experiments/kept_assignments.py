"""Which arm of an experiment each user was in, kept by window over the whole life of the experiment.

Whether a split is as intended is asked of users counted once, however long the experiment runs; that must
not take reading its raw logs again at every window. One Parquet file a window and column: user_id and arm as
text, `first` the start of the first window that the user was in the arm, in seconds since 1970.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb

from monitor.core.columns import ARM, USER_ID
from monitor.core.results import Window
from monitor.history.kept import KeptWindows, write_whole
from monitor.history.sums import PERIODS, Sums

FIRST: Final = "first"
_FOLDER: Final = "arms"
_PERIODS: Final = (timedelta(days=8), *PERIODS)


class KeptAssignments(KeptWindows):
    """The kept users and arms of one column of a recommender's exposures.

    Args:
        beside: the folder of the recommender's kept pairs.
        column: the column of exposures that holds the arm.
        names: what the log calls our columns; under other names other values are read, and kept apart.
    """

    what = "the users of an experiment"

    def __init__(self, beside: Path, column: str, names: Mapping[str, str] | None = None) -> None:
        known = names or {}
        read = [column, known.get(column, column), known.get(USER_ID, USER_ID)]
        # A digest: the name of a column may hold anything, the name of a folder may not.
        digest = hashlib.sha256(json.dumps(read).encode()).hexdigest()[:16]
        super().__init__(beside / _FOLDER / digest)

    def keep(self, window: Window, rows: duckdb.DuckDBPyRelation) -> None:
        """Write the users and arms of a window (user_id, arm, first), in place of those kept before.

        Raises StoreError when the file cannot be written; the old file is then still there.
        """
        write_whole(self.added_up(rows), self.path(window), self.what)

    def files(self, span: Window, length: timedelta, connection: duckdb.DuckDBPyConnection) -> list[Path]:
        """Few files that together hold what is kept of the windows of this length in a span."""
        return Sums(self, _PERIODS).files(span, length, connection)

    def drop_before(self, moment: datetime) -> int:
        """Delete the windows, and the sums of windows, that ended before this time."""
        Sums(self, _PERIODS).drop_before(moment)
        return super().drop_before(moment)

    def added_up(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        """Each user and arm once, with the first of its windows."""
        keys = f"{USER_ID}, {ARM}"
        return rows.aggregate(f"{keys}, CAST(MIN({FIRST}) AS BIGINT) AS {FIRST}", keys)


def forget_others(beside: Path, kept: Iterable[KeptAssignments]) -> None:
    """Delete what is kept of columns that no experiment names any more."""
    wanted = {one.folder for one in kept}
    for folder in (beside / _FOLDER).glob("*"):
        if folder not in wanted:
            shutil.rmtree(folder, ignore_errors=True)
