"""Incidents of the monitor itself: its history is full, or a rule file is broken."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import event, text

from benchmarks.scoreboard.play import Operation
from benchmarks.scoreboard.watched import MINUTE, Watched
from monitor.simulate.incidents.incident import Incident

_NO_LIMIT: Final = 1_073_741_823  # pages


def operation(incident: Incident, size: float, since: datetime) -> Operation:
    """The operation of an incident. Raises ValueError if it is unknown."""
    match incident.operation:
        case "history_full":
            return _history_full(since, since + timedelta(hours=size))
        case "rule_file_broken":
            return _rule_file_broken(since, int(size))
        case None:
            return lambda _watched, _minute: False
    raise ValueError(f"{incident.operation!r} is nothing that can be done to a monitor")


def _history_full(since: datetime, until: datetime) -> Operation:
    """Between the two times the database takes no further page, on any connection."""
    begins = since + MINUTE
    ends = max(begins + MINUTE, begins + (until - since) // MINUTE * MINUTE)
    most = [_NO_LIMIT]

    def limit(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {most[0]}").close()

    def act(watched: Watched, minute: datetime) -> bool:
        if minute not in (begins, ends):
            return False
        store = watched.daemon.store
        if minute == begins:
            watched.housekeeping()  # what it frees later would be room
            with closing(sqlite3.connect(watched.folder / "state" / "history.sqlite")) as history:
                history.execute("VACUUM")
            event.listen(store._database._engine, "checkout", limit)
            with store.reading() as connection:
                most[0] = connection.execute(text("PRAGMA page_count")).scalar_one()
        else:
            most[0] = _NO_LIMIT
        return True

    return act


def _rule_file_broken(since: datetime, files: int) -> Operation:
    """Break the YAML of this number of files, then reload the config."""

    def act(watched: Watched, minute: datetime) -> bool:
        if minute != since + MINUTE:
            return False
        for path in sorted((watched.folder / "rules").glob("*.yaml"))[:files]:
            path.write_text(path.read_text("utf-8") + "  - rule: [not closed\n", "utf-8")
        watched.reload()
        return True

    return act
