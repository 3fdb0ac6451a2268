"""When Alertmanager sends, held against the real one at a pace of seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from benchmarks.scoreboard.messages import Change, Labels, Pace, sent
from benchmarks.scoreboard.servers import ask, serving
from tests.conftest import need
from tests.processes import Webhook

PACE = Pace(wait=1, interval=2, repeat=5)  # so that a group looks at every odd second
END = 10
CHANGES = (0, 2, 4)
FIRING: dict[str, list[tuple[str, int, int]]] = {  # group -> its alerts, from when to when they fire
    "stands": [("A", 0, END)],
    "grows": [("A", 0, END), ("B", 2, END), ("C", 4, END)],
    "changes": [("A", 0, 2), ("B", 2, END)],
    "comes back": [("A", 0, 2), ("A", 4, END)],
    "late": [("A", 4, END)],
    "over": [("A", 0, 2)],
}


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    server = Webhook()
    yield server
    server.close()


def labels(group: str, name: str) -> Labels:
    return (("alertname", name), ("recommender", group))


def at(group: str, second: float) -> str:
    """The alerts that fire at a second."""
    return "".join(name for name, since, until in FIRING[group] if since <= second < until)


def expected() -> dict[str, dict[int, str]]:
    """Group -> second at which a message is sent -> the alerts that fire by then."""
    found: dict[str, dict[int, str]] = {}
    for name in FIRING:
        group = ("page", (("recommender", name),))
        changes = [
            Change(second, {group: [labels(name, one) for one in at(name, second)]}) for second in CHANGES
        ]
        messages = sent(changes, {"page": PACE}, END)
        for message in messages:
            assert {dict(alert)["alertname"] for alert in message.told} <= set(at(name, message.moment))
        found[name] = {int(one.moment): at(name, one.moment) for one in messages}
    return found


def received(webhook: Webhook, began: float) -> dict[str, dict[int, str]]:
    """The same, of what came; a look at an odd second counts as that until the next even one."""
    found: dict[str, dict[int, str]] = {name: {} for name in FIRING}
    for one in webhook.alerts:
        second = int((one["received"] - began) // 2 * 2 + 1)
        if one["status"] == "firing":
            of = found[one["labels"]["recommender"]]
            of[second] = "".join(sorted([*of.get(second, ""), one["labels"]["alertname"]]))
    return found


def post(url: str, began: datetime, second: int) -> None:
    """Say what begins or is over at a second."""
    told = [
        {
            "labels": dict(labels(group, name)),
            "startsAt": (began + timedelta(seconds=since)).isoformat(),
            "endsAt": (began + timedelta(seconds=second if second == until else 3600)).isoformat(),
        }
        for group, alerts in FIRING.items()
        for name, since, until in alerts
        if second in (since, until)
    ]
    ask(f"{url}/api/v2/alerts", body=told)


def test_messages_have_the_times_of_the_real_alertmanager(tmp_path: Path, webhook: Webhook) -> None:
    program = need("prometheus-alertmanager", "prometheus-alertmanager")
    seconds = {"group_wait": PACE.wait, "group_interval": PACE.interval, "repeat_interval": PACE.repeat}
    route = {"receiver": "page", "group_by": ["recommender"], **{key: f"{n}s" for key, n in seconds.items()}}
    receivers = [{"name": "page", "webhook_configs": [{"url": webhook.url, "send_resolved": True}]}]
    config = tmp_path / "alertmanager.yml"
    config.write_text(yaml.safe_dump({"route": route, "receivers": receivers}), "utf-8")

    def command(address: str) -> list[str]:
        return [
            program, "--cluster.listen-address=", f"--config.file={config}",
            f"--storage.path={tmp_path / 'data'}", f"--web.listen-address={address}",
        ]  # fmt: skip

    with serving(command, tmp_path, "alertmanager") as url:
        began, clock = datetime.now(UTC), time.monotonic()
        for second in CHANGES:
            time.sleep(max(0.0, (began + timedelta(seconds=second) - datetime.now(UTC)).total_seconds()))
            post(url, began, second)
        time.sleep((began + timedelta(seconds=END) - datetime.now(UTC)).total_seconds())
    assert received(webhook, clock) == expected()
    assert expected()["stands"] == {1: "A", 7: "A"}, "it is told once more"
