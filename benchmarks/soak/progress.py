"""How far a run is, read from its history by a connection of the soak's own.

The undisturbed run notes its progress at each barrier. The disturbed run waits at the same barrier for the
same progress, so that a late file is a correction in both, and a difference is seen where it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError

from benchmarks.soak.traffic import MINUTE, RECOMMENDERS
from monitor.history import schema
from monitor.history.counters import SCHEDULED, key
from monitor.history.counters import read as read_counters
from monitor.history.readonly import read_only_engine
from monitor.judging.registry import MARKERS
from monitor.settings.history import parse_url

PARTS: Final = {MARKERS["exposures"]: "exposures", MARKERS["feedback"]: "feedback"}
_RECENT: Final = 60 * MINUTE  # no action reaches further back


@dataclass(frozen=True, slots=True)
class Progress:
    """What is judged, and on which files.

    Attributes:
        judged: windows by recommender and part.
        recent: fingerprint, status and revision of the newest windows.
        files: the index of the files.
        turns: the turns of each recommender that ended well.
    """

    judged: Mapping[tuple[str, str], int]
    recent: frozenset[tuple[Any, ...]]
    files: frozenset[tuple[Any, ...]]
    turns: Mapping[str, float]

    @property
    def state(self) -> tuple[object, object, object]:
        """All but the turns, which depend on the number of starts."""
        return dict(self.judged), self.recent, self.files

    def differences(self, other: Progress) -> list[str]:
        """At most a few lines for people."""
        lines = [f"judged: {dict(self.judged)} and {dict(other.judged)}"] * (self.judged != other.judged)
        for name in ("recent", "files"):
            one, two = getattr(self, name), getattr(other, name)
            lines += [f"{name}: only expected: {row}" for row in sorted(map(str, one - two))[:5]]
            lines += [f"{name}: only found: {row}" for row in sorted(map(str, two - one))[:5]]
        return lines


class Reader:
    """Reads the progress of a history; `None` while it cannot be read."""

    def __init__(self, url: str) -> None:
        self._url = parse_url(url)

    def look(self) -> Progress | None:
        engine = read_only_engine(self._url)
        if engine is None:
            return None
        try:
            with engine.connect() as connection:
                return _read(connection)
        except SQLAlchemyError:  # without tables yet, locked, or the server is down
            return None
        finally:
            engine.dispose()


def _read(connection: Connection) -> Progress:
    windows, files = schema.windows.c, schema.log_files.c
    mine = windows.check_name.in_(list(PARTS)), windows.current
    counted = select(windows.recommender, windows.check_name, func.count()).where(*mine)
    judged = {
        (recommender, PARTS[check]): int(count)
        for recommender, check, count in connection.execute(
            counted.group_by(windows.recommender, windows.check_name)
        )
    }
    newest = connection.execute(select(func.max(windows.window_end))).scalar()
    recent: frozenset[tuple[Any, ...]] = frozenset()
    if newest is not None:
        query = select(
            windows.recommender, windows.check_name, windows.window_start, windows.status,
            windows.fingerprint, windows.revision,
        ).where(*mine, windows.window_end > newest - _RECENT)  # fmt: skip
        recent = frozenset(tuple(row) for row in connection.execute(query))
    index = select(files.path, files.size, files.modified, files.status, files.rows).where(
        files.status.in_(("read", "skipped", "unlisted"))
    )
    counters = read_counters(connection)
    return Progress(
        judged,
        recent,
        frozenset(tuple(row) for row in connection.execute(index)),
        {
            name: counters.get(key(SCHEDULED, {"recommender": name, "outcome": "ok"}), 0)
            for name in RECOMMENDERS
        },
    )
