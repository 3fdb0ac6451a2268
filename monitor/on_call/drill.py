"""A test page through Alertmanager's API, so that its routes, templates and receivers are the real ones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import yaml

from monitor.core.text import visible
from monitor.on_call.alertmanager import AlertmanagerApi, AlertmanagerError, Integration, Requests
from monitor.on_call.routes import Muted, muted_receivers
from monitor.settings.recommender import RecommenderSettings

ALERT: Final = "RecsysDrill"
_PATIENCE: Final = 10.0  # seconds until Alertmanager shows an alert that it has accepted
_SUFFIX: Final = "_configs"


@dataclass(frozen=True)
class Answer:
    """The requests to an integration of a receiver, and how many failed; fewer than 0 after a restart.

    `others` are receivers of the same kind whose requests are counted with its own.
    """

    receiver: str
    kind: str
    made: int
    failed: int
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drill:
    """What was sent, and what Alertmanager says about it.

    `receivers` are those that get it, each with the kinds of its integrations; an empty tuple of kinds
    delivers to nobody. `muted` are those whose routes have time intervals that hold it back, or may do so.
    `held_back` says why nothing will be sent to anybody. `alike` are all receivers of a kind of integration.
    """

    number: str
    labels: Mapping[str, str]
    ends: datetime
    receivers: Mapping[str, tuple[str, ...]]
    muted: Mapping[str, Muted] = field(default_factory=dict)
    held_back: str = ""
    alike: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def will_be_sent(self) -> bool:
        silent = {name for name, one in self.muted.items() if one.certain}
        return not self.held_back and any(
            kinds for name, kinds in self.receivers.items() if name not in silent
        )

    def answers(
        self, before: Mapping[Integration, Requests], now: Mapping[Integration, Requests]
    ) -> list[Answer]:
        """What each of its receivers answered between two times; those that are muted are left out."""
        found = []
        for name, kinds in self.receivers.items():
            if (muted := self.muted.get(name)) is not None and muted.certain:
                continue
            for kind in kinds:
                own = Integration(kind, name)
                own = own if own in now else Integration(kind, None)
                others = self.alike.get(kind, ()) if own.receiver is None else ()
                then, later = before.get(own, Requests(0, 0)), now.get(own, Requests(0, 0))
                made, failed = later.made - then.made, later.failed - then.failed
                found.append(Answer(name, kind, made, failed, tuple(one for one in others if one != name)))
        return found


def drill_alert(
    recommender: RecommenderSettings,
    base: str,
    dashboards: str | None,
    *,
    number: str,
    severity: str,
    owner: str | None,
    now: datetime,
    ends: datetime,
) -> dict[str, Any]:
    """The alert as Prometheus would send it, marked as a test.

    `base` is the address of the status page, `dashboards` that of Grafana.
    """
    page = f"{base}/recommenders/{quote(recommender.name)}"
    owner = owner or recommender.owner
    return {
        "labels": {
            "alertname": ALERT,
            "recommender": recommender.name,
            "severity": severity,
            "drill": number,
            **({"owner": owner} if owner else {}),
        },
        "annotations": {
            "summary": f"TEST {number}: a drill of {recommender.name}, nothing is broken",
            "description": f"This is a test of the path to you. It resolves by itself at {ends:%H:%M} UTC. "
            "Check that each link opens, and tell the person who runs the drill that it arrived.",
            "offenders": "none, this is a test",
            "evidence": page,
            "dashboard": page
            if dashboards is None
            else f"{dashboards}/d/recsys-overview?var-recommender={quote(recommender.name)}",
            "runbook_url": f"{base}/runbooks/{ALERT}",
        },
        "startsAt": now.isoformat(),
        "endsAt": ends.isoformat(),
        "generatorURL": base,
    }


def send_drill(
    api: AlertmanagerApi, alert: Mapping[str, Any], *, sleep: Callable[[float], None] = time.sleep
) -> Drill:
    """Post the alert, and ask Alertmanager which receivers get it and whether something holds it back.

    Raises AlertmanagerError if Alertmanager cannot be reached, refuses it, or does not show it.
    """
    try:
        return _send(api, alert, sleep)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise AlertmanagerError("the answer is not that of an Alertmanager with API v2") from None


def _send(api: AlertmanagerApi, alert: Mapping[str, Any], sleep: Callable[[float], None]) -> Drill:
    running = _running_config(api)
    integrations = _integrations(running)
    muted = _muted(running, alert)
    api.post("alerts", [alert])
    number = alert["labels"]["drill"]
    end = time.monotonic() + _PATIENCE
    while (shown := _shown(api, number)) is None:
        if time.monotonic() > end:
            raise AlertmanagerError(
                f"Alertmanager accepted the test page, but does not show it after {_PATIENCE:g} s"
            )
        sleep(0.2)
    names = [str(one["name"]) for one in shown["receivers"]]
    status = shown["status"]
    return Drill(
        number=number,
        labels=alert["labels"],
        ends=datetime.fromisoformat(alert["endsAt"]),
        receivers={name: integrations.get(name, ()) for name in names},
        muted={name: muted[name] for name in names if name in muted},
        held_back=_reason(api, status),
        alike={
            kind: tuple(name for name, some in integrations.items() if kind in some)
            for kind in {kind for some in integrations.values() for kind in some}
        },
    )


def _shown(api: AlertmanagerApi, number: str) -> Mapping[str, Any] | None:
    found = api.get("alerts", filter=f'drill="{number}"')
    ready = [one for one in found if one["status"]["state"] != "unprocessed"]
    return ready[0] if ready else None


def _reason(api: AlertmanagerApi, status: Mapping[str, Any]) -> str:
    """Why Alertmanager holds the alert back; empty if it does not."""
    if status["silencedBy"]:
        return f"silence {status['silencedBy'][0]} holds it back"
    if not status["inhibitedBy"]:
        return ""
    by = str(status["inhibitedBy"][0])
    names = [one["labels"].get("alertname", "") for one in api.get("alerts") if one["fingerprint"] == by]
    return f"the alert {visible(names[0]) if names else by} holds it back"


def _running_config(api: AlertmanagerApi) -> Mapping[str, Any]:
    """The configuration that Alertmanager runs with; its secrets are masked."""
    original = api.get("status")["config"]["original"]
    try:
        found: Mapping[str, Any] = yaml.safe_load(original)
    except yaml.YAMLError:
        raise AlertmanagerError("the configuration that Alertmanager shows cannot be read") from None
    return found


def _integrations(config: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The kinds of integrations of each receiver."""
    return {
        str(one["name"]): tuple(
            key.removesuffix(_SUFFIX) for key, configs in one.items() if key.endswith(_SUFFIX) and configs
        )
        for one in config.get("receivers") or ()
    }


def _muted(config: Mapping[str, Any], alert: Mapping[str, Any]) -> dict[str, Muted]:
    try:
        return muted_receivers(config, alert["labels"], datetime.fromisoformat(alert["startsAt"]))
    except (ValueError, re.error):  # Go knows escapes and patterns that Python does not
        why = "the routes have time intervals, and which of them take the alert cannot be judged here"
        return {str(one["name"]): Muted(why, certain=False) for one in config["receivers"]}
