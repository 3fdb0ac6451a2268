"""How many messages an incident is: its alerts, given to a real Alertmanager with the shipped routes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import yaml

from benchmarks.scoreboard.alerts import ROOT, Episode, seconds
from benchmarks.scoreboard.servers import ask, program, serving

CONFIG: Final = ROOT / "deploy" / "alertmanager.yml"
Group = tuple[str, tuple[tuple[str, str], ...]]  # receiver, the labels that its alerts have in common
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


def notified(url: str, episodes: Sequence[Episode], since: int) -> set[Group]:
    """Every group that sends a message from `since` on: alerts not held back, for as long as it waits first.

    The alerts are given as they come and go, in their order but not at their pace. Those meant for a machine
    (severity `none`) are given too, for what they hold back; their own group does not count.
    """
    waits, found = _waits(), set()
    active: dict[Group, int] = {}
    changes = {max(one.since, since) for one in episodes} | {one.until for one in episodes if one.until}
    moments = sorted(one for one in changes if one >= since)
    try:
        for moment, following in zip_longest(moments, moments[1:]):
            _post(url, episodes, moment)
            groups = _active(url, [one for one in episodes if one.fires(moment)])
            active = {group: active.get(group, moment) for group in groups}
            found |= {
                group
                for group, begun in active.items()
                if following is None or following - begun >= waits[group[0]]
            }
    finally:
        _post(url, episodes, None)
    return found


def _waits() -> dict[str, float]:
    """Receiver -> how long its groups wait before they send."""
    root = yaml.safe_load(CONFIG.read_text("utf-8"))["route"]
    routes = (*root.get("routes", ()), root)
    return {one["receiver"]: seconds(one.get("group_wait", root["group_wait"])) for one in routes}


def _post(url: str, episodes: Sequence[Episode], moment: int | None) -> None:
    """Say of each alert that has come until a moment whether it fires; None: that all are over."""
    now = datetime.now(UTC)
    states: dict[tuple[tuple[str, str], ...], bool] = {}
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


def _active(url: str, episodes: Sequence[Episode]) -> set[Group]:
    """The groups with an alert of these that is not held back, once all of them have been sorted in."""
    awaited = {tuple(sorted(one.labels.items())) for one in episodes}
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        if awaited <= {tuple(sorted(alert["labels"].items())) for _, alert in _grouped(url)}:
            break
        time.sleep(0.02)
    else:
        raise RuntimeError(f"the Alertmanager did not group {len(awaited)} alerts within {_SECONDS:g} s")
    time.sleep(_SETTLES)
    return {
        (group["receiver"]["name"], tuple(sorted(group["labels"].items())))
        for group, alert in _grouped(url)
        if tuple(sorted(alert["labels"].items())) in awaited
        and alert["labels"].get("severity") != "none"
        and alert["status"]["state"] != "suppressed"
    }


def _grouped(url: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for group in ask(f"{url}/api/v2/alerts/groups"):
        for alert in group["alerts"]:
            yield group, alert
