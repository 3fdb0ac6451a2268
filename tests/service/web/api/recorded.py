"""A served history into which a test records windows itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from monitor.core.results import Result, Status
from monitor.history.read_snapshot import read_snapshot
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.service.web.app import ReloadOutcome
from monitor.service.web.server import serve
from monitor.settings.server import ServerSettings
from tests.history.conftest import hour
from tests.service.web.api.judged_shop import PATIENCE

SHOP = "/api/v1/recommenders/shop"
NOON = datetime(2026, 1, 3, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A client of a server on a history, and the history."""

    web: httpx.Client
    store: Store

    def record(self, number: int, *results: Result, check: str = "rules") -> None:
        """Record the hour of this number."""
        window = hour(number)
        run = CheckRun(check=check, results=results)
        self.store.record_window(
            "shop", window, [run], fingerprint=str(results), rows=1, evaluated_at=window.end
        )

    def every(self, address: str, **asked: Any) -> list[dict[str, Any]]:
        """The rows of all pages."""
        rows: list[dict[str, Any]] = []
        while True:
            answer = self.web.get(address, params=asked)
            assert answer.status_code == 200, answer.text
            page = answer.json()
            assert len(page["data"]) <= asked.get("limit", 100)
            rows += page["data"]
            if page["next_cursor"] is None:
                return rows
            assert page["data"]
            asked["cursor"] = page["next_cursor"]

    def follow(self, url: str) -> list[dict[str, Any]]:
        """The rows behind a link of an answer."""
        parts = urlsplit(url)
        answer = self.web.get(f"{parts.path}?{parts.query}")
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]


@contextmanager
def recorded(store: Store) -> Iterator[Recorded]:
    """Serve a history; the snapshot is read anew for every request."""
    server = serve(
        ServerSettings(listen="127.0.0.1:0", external_url="https://monitor.test"),
        lambda: read_snapshot(store, ["shop"], NOON),
        reload=lambda: ReloadOutcome(True),
        not_ready=lambda: "",
        healthy=lambda: True,
        store=store,
    )
    try:
        with httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
            yield Recorded(client, store)
    finally:
        server.stop()


def measured(metric: str, value: float, /, **labels: str) -> Result:
    """A result of a metric."""
    return Result(metric=metric, status=Status.OK, definition="1", labels=labels, value=value)


def keys(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What tells rows apart."""
    return [repr(sorted(row.items(), key=lambda pair: pair[0])) for row in rows]
