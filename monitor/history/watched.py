"""When the daemon began to watch a recommender, and when it last judged a part of a window without an error.

These times are stored beside the watermarks of the logs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from monitor.history import logstate
from monitor.history.errors import translated
from monitor.history.readonly import read_only_engine
from monitor.settings.history import parse_url

WATCHING: Final = "watching_since"
JUDGED: Final = "judged:"
"""Before the name of a part: when a window of it was last judged without an error."""


def watched_since(location: str, recommender: str) -> datetime | None:
    """The first start of the daemon on this recommender; None if there was none, or if there is no history.

    Nothing is created or upgraded: the caller may be of another version than the daemon.

    Args:
        location: what `HistorySettings.location` gives.
        recommender: its name.

    Raises:
        StoreError: the history exists and cannot be read.
    """
    url = parse_url(location)
    engine = read_only_engine(url)
    if engine is None:
        return None
    try:
        with translated(url), engine.connect() as connection:
            return logstate.watermarks(connection, recommender).get(WATCHING)
    finally:
        engine.dispose()
