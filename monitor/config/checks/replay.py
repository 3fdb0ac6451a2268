"""Can the targets of a replay be asked? Hosts, templates, JSON paths, names of columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

from monitor.config.problems import Problem
from monitor.core.columns import ITEM_ID, REQUEST_ID, TS, USER_ID
from monitor.core.text import quoted
from monitor.replay.answers import path_problem
from monitor.replay.exposure_log import OWN_COLUMNS
from monitor.replay.plan import NUMBER, VALUES
from monitor.replay.templates import TemplateProblems, Templates
from monitor.settings.recommender import RecommenderSettings
from monitor.settings.replay import ReplaySettings, TargetSettings

_TAKEN = (*OWN_COLUMNS, REQUEST_ID, USER_ID, TS, NUMBER, VALUES)
"""Names that no further column of the new log may have, in no case: `Status` and `status` are one column."""


def check_replay(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each target that can never be asked, and each column that cannot be kept."""
    replay = settings.replay
    if replay is None:
        return
    first: dict[str, int] = {}
    for number, target in enumerate(replay.targets):
        place = f"{where}.targets[{number}]"
        if target.name in first:
            same = f"is already the name of targets[{first[target.name]}]"
            yield Problem(f"{place}.name", f"{quoted(target.name)} {same}")
        first.setdefault(target.name, number)
        yield from _target(place, target, replay)
    kept: dict[str, str] = {}
    for number, name in enumerate(replay.keep):
        if name.casefold() in _TAKEN:
            yield Problem(f"{where}.keep[{number}]", f"{quoted(name)} is a column of the new log already")
        elif name.casefold() in kept:
            yield Problem(f"{where}.keep[{number}]", _same_name(name, kept[name.casefold()]))
        kept.setdefault(name.casefold(), name)
    named: dict[str, str] = {}
    for name in replay.cases or {}:
        if name.casefold() in _TAKEN and name != USER_ID:
            yield Problem(
                f"{where}.cases.{name}", "a replay sets this column itself; give the value another name"
            )
        elif name.casefold() in named:
            yield Problem(f"{where}.cases.{name}", _same_name(name, named[name.casefold()]))
        named.setdefault(name.casefold(), name)
    if replay.requests is not None and ITEM_ID in replay.requests.columns:
        yield Problem(f"{where}.requests.columns.{ITEM_ID}", "a log of requests has no items; leave it out")


def _same_name(name: str, first: str) -> str:
    if name == first:
        return f"{quoted(name)} is there twice"
    return f"{quoted(name)} and {quoted(first)} would be one column, since the case does not count"


def _target(place: str, target: TargetSettings, replay: ReplaySettings) -> Iterator[Problem]:
    parts = urlsplit(target.url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    with_port = f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    if host not in replay.allowed_hosts and with_port not in replay.allowed_hosts:
        yield Problem(
            f"{place}.url",
            f"the host {quoted(host)} is not in allowed_hosts; add it if requests may go there",
        )
    try:
        Templates(target)
    except TemplateProblems as found:
        for within, message in found.problems:
            yield Problem(f"{place}.{within}", message)
    try:
        json.dumps(target.body, allow_nan=False)
    except (TypeError, ValueError):
        yield Problem(f"{place}.body", "JSON has no dates, no .nan and no .inf; put such a value in quotes")
    for name, path in target.response.model_dump().items():
        if path is not None and (why := path_problem(path)) is not None:
            yield Problem(f"{place}.response.{name}", why)
