"""Alerts posted to the real Alertmanager, and the messages that it makes of them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from tests.end_to_end.servers import Alertmanager
from tests.processes import ROOT, get, wait_for

SEVERITIES: dict[str, str] = {
    rule["alert"]: rule["labels"]["severity"]
    for path in sorted((ROOT / "rules/alerts").glob("*.yaml"))
    for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
    for rule in group["rules"]
}


@dataclass(frozen=True, order=True)
class Group:
    """One message: who gets it, about what, the names of its alerts, and of those that are held back."""

    receiver: str
    recommender: str
    alerts: tuple[str, ...]
    held: tuple[str, ...] = ()


@contextmanager
def running(folder: Path, webhook: str = "http://127.0.0.1:9", **changed: Any) -> Iterator[Alertmanager]:
    """Alertmanager with the repository's configuration; by default it delivers to nobody."""
    server = Alertmanager(folder, webhook, **changed)
    try:
        server.up()
        yield server
    finally:
        server.stop()


def alert(name: str, recommender: str = "shop", **labels: str) -> dict[str, Any]:
    """An alert of rules/alerts as Prometheus sends it; no label of a recommender where that is empty."""
    of = {"recommender": recommender} if recommender else {}
    return {"labels": {"alertname": name, **of, "severity": SEVERITIES[name], **labels}}


def resolved(sent: dict[str, Any]) -> dict[str, Any]:
    """The same alert, over since a second."""
    end = datetime.now(UTC) - timedelta(seconds=1)
    return sent | {"startsAt": (end - timedelta(hours=1)).isoformat(), "endsAt": end.isoformat()}


def post(server: Alertmanager, what: object, path: str = "alerts") -> dict[str, Any]:
    """Send this to the API; what it answers."""
    request = urllib.request.Request(
        f"http://{server.target}/api/v2/{path}",
        json.dumps(what).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200
        return json.loads(answer.read() or b"{}")


def delete(server: Alertmanager, path: str) -> None:
    """Take something away by the API."""
    request = urllib.request.Request(f"http://{server.target}/api/v2/{path}", method="DELETE")
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


def assert_groups(server: Alertmanager, *expected: Group) -> None:
    """That the alerts become these messages, as soon as Alertmanager has worked through them."""

    def as_expected() -> bool:
        _, body = get(f"http://{server.target}/api/v2/alerts/groups")
        found = sorted(map(_group, json.loads(body)))
        assert found == sorted(expected), found
        return True

    wait_for("these groups of alerts", as_expected)


def _group(given: dict[str, Any]) -> Group:
    def names(*, held: bool) -> Iterable[str]:
        for one in given["alerts"]:
            if (one["status"]["state"] == "suppressed") is held:
                yield one["labels"]["alertname"]

    return Group(
        given["receiver"]["name"],
        given["labels"].get("recommender", ""),
        tuple(sorted(names(held=False))),
        tuple(sorted(names(held=True))),
    )
