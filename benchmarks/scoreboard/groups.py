"""Which messages alerts send: they are given to a real Alertmanager with the shipped routes."""

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
_SETTLES: Final = 0.2  # the part that holds alerts back learns of them apart from the part that groups
_FAR: Final = timedelta(hours=1)


@contextmanager
def alertmanager() -> Iterator[str]:
    """The URL of an Alertmanager with the shipped config, but for receivers that tell nobody."""
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

    A real Alertmanager is given the alerts as they come and go, in their order but not at their pace, and
    says how it groups them and what it holds back; `messages.sent` has the pace. Alerts meant for a machine
    (severity `none`) are given for what they hold back: nobody reads their own messages.
    """
    moments = {max(one.since, since) for one in episodes} | {one.until for one in episodes if one.until}
    try:
        changes = [_change(url, episodes, one) for one in sorted(moments) if since <= one <= end]
    finally:
        _post(url, episodes, None)
    return sent(changes, paces(), end)


def paces() -> dict[str, Pace]:
    """Receiver -> the pace at which its groups send."""
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
    """Say of each alert that has come until a moment whether it fires; None: that all are over."""
    now = datetime.now(UTC)
    states: dict[Labels, bool] = {}
    for one in episodes:
        if moment is None or one.since <= moment:
            key = tuple(sorted(one.labels.items()))
            states[key] = states.get(key, False) or (moment is not None and one.fires(moment))
    told = [
        {
            "labels": dict(labels),
            "startsAt": (now - _FAR).isoformat(),
            "endsAt": (now + _FAR if fires else now - timedelta(seconds=1)).isoformat(),
        }
        for labels, fires in states.items()
    ]
    if told:
        ask(f"{url}/api/v2/alerts", body=told)


def _change(url: str, episodes: Sequence[Episode], moment: int) -> Change:
    """The groups from a moment on, once every alert that fires then has been sorted in."""
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
