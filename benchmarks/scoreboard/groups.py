"""The messages that alerts send, according to a real Alertmanager with the shipped routes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.scoreboard.alerts import ROOT, Episode, seconds
from benchmarks.scoreboard.inhibition import Inhibition
from benchmarks.scoreboard.messages import Change, Group, Labels, Message, Pace, sent
from benchmarks.scoreboard.servers import ask, program, serving

CONFIG: Final = ROOT / "deploy" / "alertmanager.yml"
_SECONDS: Final = 10.0
_SETTLES: Final = 0.2  # inhibition learns of alerts separately from grouping
_FAR: Final = timedelta(hours=1)


@contextmanager
def alertmanager() -> Iterator[str]:
    """The URL of an Alertmanager with the shipped config and receivers that send nothing."""
    config = yaml.safe_load(CONFIG.read_text("utf-8"))
    config["receivers"] = [{"name": one["name"]} for one in config["receivers"]]
    with tempfile.TemporaryDirectory(prefix="scoreboard-") as scratch:
        folder = Path(scratch)
        (folder / "alertmanager.yml").write_text(yaml.safe_dump(config), "utf-8")

        def command(address: str) -> list[str]:
            return [
                program("prometheus-alertmanager", "alertmanager"), "--cluster.listen-address=",
                f"--config.file={folder / 'alertmanager.yml'}", f"--storage.path={folder / 'data'}",
                f"--web.listen-address={address}", "--log.level=warn",
            ]  # fmt: skip

        with serving(command, folder, "alertmanager") as url:
            yield url


def messages(url: str, episodes: Sequence[Episode], since: int, end: int) -> list[Message]:
    """Every message that these alerts send from `since` to `end`.

    A real Alertmanager gets the alerts in their order, but not at their pace, and reports how it groups and
    inhibits them; `messages.sent` adds the pace. Alerts with severity `none` are included because they
    inhibit others; they send no messages themselves.
    """
    moments = {max(one.since, since) for one in episodes} | {one.until for one in episodes if one.until}
    try:
        changes = [_change(url, episodes, one) for one in sorted(moments) if since <= one <= end]
    finally:
        _post(url, episodes, None)
    return sent(changes, paces(), end)


def paces() -> dict[str, Pace]:
    root = yaml.safe_load(CONFIG.read_text("utf-8"))["route"]
    return {
        one["receiver"]: Pace(
            *(
                seconds(one.get(name, root[name]))
                for name in ("group_wait", "group_interval", "repeat_interval")
            )
        )
        for one in (*root.get("routes", ()), root)
    }


def _post(url: str, episodes: Sequence[Episode], moment: int | None) -> None:
    """Post each alert that began by this moment as firing or resolved; None: all as resolved."""
    now = datetime.now(UTC)
    states: dict[Labels, bool] = {}
    for one in episodes:
        if moment is None or one.since <= moment:
            key = tuple(sorted(one.labels.items()))
            states[key] = states.get(key, False) or (moment is not None and one.fires(moment))
    alerts = [
        {
            "labels": dict(labels),
            "startsAt": (now - _FAR).isoformat(),
            "endsAt": (now + _FAR if fires else now - timedelta(seconds=1)).isoformat(),
        }
        for labels, fires in states.items()
    ]
    if alerts:
        ask(f"{url}/api/v2/alerts", body=alerts)


def _change(url: str, episodes: Sequence[Episode], moment: int) -> Change:
    """The groups from this moment on, once every firing alert is in a group."""
    _post(url, episodes, moment)
    firing = [one.labels for one in episodes if one.fires(moment)]
    awaited = {tuple(sorted(one.items())) for one in firing}
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        if awaited <= {_labels(alert) for _, alert in _grouped(url)}:
            break
        time.sleep(0.02)
    else:
        raise RuntimeError(f"the Alertmanager did not group {len(awaited)} alerts within {_SECONDS:g} s")
    time.sleep(_SETTLES)
    found: dict[Group, list[Labels]] = {}
    for group, alert in _grouped(url):
        labels = _labels(alert)
        if labels in awaited and alert["labels"].get("severity") != "none":
            if _heard(labels, firing) is (alert["status"]["state"] == "suppressed"):
                raise RuntimeError(
                    f"the Alertmanager holds {labels} back, or not, for no reason that is known here"
                )
            found.setdefault((group["receiver"]["name"], tuple(sorted(group["labels"].items()))), []).append(
                labels
            )
    return Change(moment, found, partial(_heard, firing=firing))


def _heard(labels: Labels, firing: Sequence[Mapping[str, str]]) -> bool:
    return not any(rule.holds_back(dict(labels), firing) for rule in _inhibitions())


@cache
def _inhibitions() -> tuple[Inhibition, ...]:
    return tuple(map(Inhibition.read, yaml.safe_load(CONFIG.read_text("utf-8"))["inhibit_rules"]))


def _labels(alert: dict[str, Any]) -> Labels:
    return tuple(sorted(alert["labels"].items()))


def _grouped(url: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for group in ask(f"{url}/api/v2/alerts/groups"):
        for alert in group["alerts"]:
            yield group, alert
