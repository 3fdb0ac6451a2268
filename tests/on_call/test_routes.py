"""Which routes of an Alertmanager take an alert, and when their time intervals hold it back."""

from __future__ import annotations

import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.on_call.drill import _muted
from monitor.on_call.routes import Muted, _taken, muted_receivers
from tests.conftest import need

ALWAYS = {"name": "always", "time_intervals": [{}]}
TREE = {
    "receiver": "root",
    "routes": [
        {"matchers": ['severity=~"page|ticket"', 'team!="a"', 'who!~"x.*"'],
         "receiver": "one", "continue": True},
        {"match": {"severity": "ticket"}, "routes": [
            {"match_re": {"team": "a|b"}, "receiver": "two"},
            {"matchers": ['team=""'], "receiver": "three"},
            {"matchers": ['team=""'], "receiver": "not reached"},
        ]},
        {"matchers": [r'text="say \"a\\b\" on\ntwo lines"'], "receiver": "odd"},
    ],
}  # fmt: skip


def config(**route: Any) -> dict[str, Any]:
    """One route, whose intervals may be `given`."""
    return {"route": {"receiver": "root", "routes": [{"receiver": "chat", **route}]}}


def is_muted(interval: dict[str, Any], at: str) -> bool:
    """Whether a route that this interval mutes is muted; one that it activates is muted at other times."""
    given = {"time_intervals": [{"name": "given", "time_intervals": [interval]}]}
    muted, idle = (
        "chat" in muted_receivers(config(**{kind: ["given"]}) | given, {}, datetime.fromisoformat(at))
        for kind in ("mute_time_intervals", "active_time_intervals")
    )
    assert muted != idle
    return muted


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        ({"severity": "page"}, ["one"]),
        ({"severity": "paged"}, ["root"]),
        ({"severity": "ticket"}, ["one", "three"]),
        ({"severity": "ticket", "team": "a"}, ["two"]),
        ({"severity": "ticket", "team": "b"}, ["one", "two"]),
        ({"severity": "ticket", "team": "c", "who": "xy"}, ["root"]),
        ({"text": 'say "a\\b" on\ntwo lines'}, ["odd"]),
    ],
)
def test_an_alert_takes_the_routes_that_alertmanager_gives_it(
    tmp_path: Path, labels: dict[str, str], receivers: list[str]
) -> None:
    assert [receiver for receiver, _ in _taken(TREE, labels, "")] == receivers
    names = ("root", "one", "two", "three", "not reached", "odd")
    (tmp_path / "am.yml").write_text(
        yaml.safe_dump({"route": TREE, "receivers": [{"name": name} for name in names]})
    )
    given = [f"{name}={value}" for name, value in labels.items()]
    if "text" in labels:
        return  # the command line of amtool takes no such value
    command = [need("amtool", "prometheus-alertmanager"), "config", "routes", "test"]
    done = subprocess.run(
        [*command, f"--config.file={tmp_path / 'am.yml'}", *given],
        check=True, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    assert done.stdout.strip().split(",") == receivers


@pytest.mark.parametrize(
    ("interval", "inside", "outside"),
    [
        (
            {"times": [{"start_time": "22:00", "end_time": "24:00"}]},
            "2026-03-01T23:59:59Z",
            "2026-03-01T21:59Z",
        ),
        ({"times": [{"start_time": "09:00", "end_time": "17:30"}]}, "2026-03-01T09:00Z", "2026-03-01T17:30Z"),
        ({"weekdays": ["monday:friday", "sunday"]}, "2026-03-01T12:00Z", "2026-02-28T12:00Z"),
        ({"days_of_month": ["7", "-3:-1"]}, "2026-02-26T12:00Z", "2026-02-25T12:00Z"),
        ({"days_of_month": ["-31:2"]}, "2026-02-01T12:00Z", "2026-02-03T12:00Z"),
        ({"months": ["1:3", "12"]}, "2026-12-31T12:00Z", "2026-04-01T12:00Z"),
        ({"years": ["2020:2026"]}, "2026-12-31T23:59Z", "2027-01-01T00:00Z"),
        ({"years": ["2026"], "location": "Europe/Berlin"}, "2025-12-31T23:30Z", "2026-12-31T23:30Z"),
        ({"weekdays": ["monday"], "months": ["3"]}, "2026-03-02T12:00Z", "2026-03-03T12:00Z"),
    ],
)
def test_an_interval_holds_where_every_kind_of_its_ranges_does(
    interval: dict[str, Any], inside: str, outside: str
) -> None:
    assert is_muted(interval, inside)
    assert not is_muted(interval, outside)


def test_a_receiver_with_a_further_route_that_sends_is_not_muted() -> None:
    now = datetime.fromisoformat("2026-03-01T12:00Z")
    muted = {"receiver": "chat", "mute_time_intervals": ["always"], "continue": True}
    route = {"receiver": "root", "routes": [muted, {"receiver": "chat"}]}
    assert muted_receivers({"route": route, "mute_time_intervals": [ALWAYS]}, {}, now) == {}
    route["routes"] = [muted, {"receiver": "mail"}]
    assert list(muted_receivers({"route": route, "mute_time_intervals": [ALWAYS]}, {}, now)) == ["chat"]


def test_what_cannot_be_judged_here_is_no_certain_answer() -> None:
    now = datetime.fromisoformat("2026-03-01T12:00Z")
    local = {"name": "night", "time_intervals": [{"weekdays": ["sunday"], "location": "Local"}]}
    found = muted_receivers(config(mute_time_intervals=["night"]) | {"time_intervals": [local]}, {}, now)
    why = "its route has the time intervals night, which cannot be judged here"
    assert found == {"chat": Muted(why, certain=False)}
    odd = config(matchers=[r'a=~"\\C"']) | {"time_intervals": [ALWAYS], "receivers": [{"name": "chat"}]}
    alert = {"labels": {"a": "b"}, "startsAt": now.isoformat()}
    assert not _muted(odd, alert)["chat"].certain
