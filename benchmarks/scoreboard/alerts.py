"""The alert rules, and how Prometheus applies `for` and `keep_firing_for` to the result of an expression."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
RULES: Final = ROOT / "rules" / "alerts"
_OWN: Final = ("recommender", "instance", "job", "severity", "alertname")  # labels of every alert
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert rule; `wait` and `keep` are `for` and `keep_firing_for` in seconds."""

    name: str
    expr: str
    wait: float
    keep: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Episode:
    """An alert from firing to resolved, in seconds since 1970; `until` None: still firing at the end."""

    labels: Mapping[str, str]
    since: int
    until: int | None

    @property
    def name(self) -> str:
        return self.labels["alertname"]

    @property
    def severity(self) -> str:
        return self.labels.get("severity", "")

    def fires(self, moment: int) -> bool:
        return self.since <= moment and (self.until is None or moment < self.until)

    def fires_within(self, since: int, end: int) -> bool:
        """Whether it fires at any moment between two, both included."""
        return self.since <= end and (self.until is None or since < self.until)


def alert_text(labels: Mapping[str, str]) -> str:
    """The name of an alert, with the labels that describe what happened.

    >>> alert_text({"alertname": "RecsysWindowLate", "recommender": "a", "severity": "ticket"})
    'RecsysWindowLate'
    >>> alert_text({"alertname": "RecsysAnomaly", "cause": "few_items"})
    'RecsysAnomaly (cause=few_items)'
    """
    further = [f"{name}={value}" for name, value in sorted(labels.items()) if name not in _OWN and value]
    return f"{labels['alertname']} ({', '.join(further)})" if further else labels["alertname"]


def read_alerts(folder: Path = RULES) -> list[Alert]:
    """Every alert of the folder's files, in the order of the files."""
    return [
        Alert(
            rule["alert"],
            rule["expr"],
            seconds(rule.get("for", "0s")),
            seconds(rule.get("keep_firing_for", "0s")),
            # Only the owner is a template. The recommender here has none, and an empty label is no label.
            {name: text for name, text in rule.get("labels", {}).items() if "{{" not in text},
        )
        for path in sorted(folder.glob("*.yaml"))
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
        for rule in group["rules"]
    ]


def seconds(duration: str) -> float:
    """A duration as Prometheus writes it, in seconds.

    >>> seconds("1h30m"), seconds("0s"), seconds("2d")
    (5400.0, 0.0, 172800.0)
    """
    parts = re.findall(r"(\d+)(ms|[smhdwy])", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration!r} is no duration of Prometheus")
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def firing(
    present: Sequence[int], *, step: int, last: int, wait: float, keep: float
) -> list[tuple[int, int | None]]:
    """The times during which an alert fires whose expression has a result at the times `present`.

    As in Prometheus, with an evaluation every `step` seconds up to `last`: a result makes the alert pending,
    and firing after `wait`. Without a result, a pending alert is forgotten, and a firing one resolves after
    `keep`.

    >>> firing([0, 60, 120, 240], step=60, last=600, wait=60, keep=120)
    [(60, 420)]
    >>> firing([0, 120, 180], step=60, last=240, wait=60, keep=120)
    [(180, None)]
    """
    waits, keeps = (-int(-length // step) * step for length in (wait, keep))
    found: list[tuple[int, int | None]] = []
    fired = ends = None
    for first, end in _runs(present, step):
        if fired is not None and ends is not None and first > ends:
            found.append((fired, ends))
            fired = None
        if fired is None:
            if first + waits > end:
                continue
            fired = first + waits
        ends = end + step + keeps
    if fired is not None and ends is not None:
        found.append((fired, ends if ends <= last else None))
    return found


def standing(
    present: Sequence[int], held: Sequence[int], *, step: int, wait: float, keep: float
) -> list[int]:
    """When the expression of an alert that reads its own state has a result.

    `present` are the times with a result if the alert does not fire, `held` those with a result if it fired
    at the evaluation before.

    >>> standing([60, 300], [0, 60, 120, 240, 300], step=60, wait=0, keep=0)
    [60, 120, 300]
    >>> standing([60], [240], step=60, wait=0, keep=120)  # it still fired at 180
    [60, 240]
    """
    waits, keeps = (-int(-length // step) * step for length in (wait, keep))
    asked, found = frozenset(present), list[int]()
    begun = fires_until = -step  # of the unbroken run of results; the last time at which the alert fires
    for moment in sorted(asked.union(held)):
        fired = bool(found) and moment - step <= fires_until
        if moment not in asked and not fired:
            continue
        begun = begun if found and found[-1] == moment - step else moment
        found.append(moment)
        if fired or moment - begun >= waits:
            fires_until = moment + keeps
    return found


def _runs(present: Sequence[int], step: int) -> Iterator[tuple[int, int]]:
    """The first and last time of each run without a gap."""
    first = before = None
    for moment in present:
        if first is None or before is None or moment != before + step:
            if first is not None and before is not None:
                yield first, before
            first = moment
        before = moment
    if first is not None and before is not None:
        yield first, before
