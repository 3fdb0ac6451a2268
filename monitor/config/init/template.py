"""Renders a config for people: each guessed line says how sure the guess is, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import yaml

from monitor.core.settings import parse_duration
from monitor.core.text import visible

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_PATH = re.compile(r"[A-Za-z_]\w*(\[\])?(\.[A-Za-z_]\w*(\[\])?)+", re.ASCII)
_COMMENT_LENGTH = 240
_OTHER_LOGS = {
    "feedback": "what users did: user_id, item_id, ts, event",
    "catalog": "every item: item_id, category, ...; for gini, diversity",
    "users": "every user: user_id, plan, country, ...; to slice by users.plan",
    "survey": "what users say: user_id, ts, question, answer; for the command survey",
}


@dataclass(slots=True)
class Draft:
    """The content of a config. Comments are raw; rendering makes them harmless."""

    name: str
    logs: dict[str, LogDraft] = field(default_factory=dict)
    window: str = "1h"
    window_comment: str = ""
    rules: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    slices: list[str] = field(default_factory=list)
    slices_comment: str = ""
    objectives: list[str] = field(default_factory=list)
    experiments: list[str] = field(default_factory=list)
    feedback_hint: list[str] = field(default_factory=list)  # lines of a feedback log, written as comments
    zone: str = "UTC"  # of the users
    zone_comment: str = ""
    country: str = "DE"
    left_out: dict[str, tuple[str, str, bool]] = field(default_factory=dict)  # log: path, why, is it a TODO


@dataclass(slots=True)
class LogDraft:
    """One log: its paths, its columns as (ours, theirs, comment), further keys as lines."""

    paths: tuple[str, ...]
    path_comment: str = ""
    columns: list[tuple[str, str, str]] = field(default_factory=list)
    settings: list[tuple[str, str, str]] = field(default_factory=list)  # key, value, comment
    todo: list[str] = field(default_factory=list)
    unused: list[tuple[str, str, str]] = field(default_factory=list)  # as `columns`, each as a comment


def scalar(text: str) -> str:
    """A text as a YAML value that reads back as this very text, references switched off.

    >>> scalar("item_id"), scalar("no"), scalar('a"b'), scalar("${HOME}")
    ('item_id', '"no"', '"a\\\\"b"', '"$${HOME}"')
    """
    text = text.replace("${", "$${")
    if _PLAIN.fullmatch(text) and isinstance(yaml.safe_load(text), str):
        return text
    shown = text.isprintable()  # what cannot be seen, or turns text around, is escaped
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=shown, width=10**9)
    return dumped.strip()


def key(text: str) -> str:
    """A text as a key of a YAML mapping: references are not filled in there.

    >>> key("click"), key("${HOME}"), key("<<")
    ('click', '"${HOME}"', '"<<"')
    """
    return scalar(text).replace("$${", "${")


def flow(values: Sequence[str]) -> str:
    """A list on one line.

    >>> flow(["scene", "a b"])
    '[scene, "a b"]'
    """
    return f"[{', '.join(map(scalar, values))}]"


def flow_paths(paths: Sequence[str]) -> str:
    """The path of a log, or a list of its paths."""
    return scalar(paths[0]) if len(paths) == 1 else flow(paths)


def flow_map(pairs: Mapping[str, str]) -> str:
    """A mapping on one line.

    >>> flow_map({"event": "1"})
    '{event: "1"}'
    """
    return "{" + ", ".join(f"{key(name)}: {scalar(value)}" for name, value in pairs.items()) + "}"


def comment(text: str) -> str:
    """Text, that may quote a log, as the end of one line."""
    return f" # {visible(text, _COMMENT_LENGTH)}" if text else ""


def render(draft: Draft) -> str:
    """The YAML text."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: Draft) -> Iterable[str]:
    yield "# Written by `recsys-monitor init` after it read the log. Check every guess."
    yield "# Check it with `recsys-monitor validate`, try it with `recsys-monitor check`, then `run` it."
    yield "# Values may use the environment (${NAME}, ${NAME:-default}) and secret files (${file:path})."
    yield "state: ./state # the monitor's own folder, relative to this file; the history is kept in it"
    yield "# history: {url: postgresql://me:${PASSWORD}@db/history, retention: 90d} # else SQLite in `state`"
    yield "# server: {listen: 127.0.0.1:9108, external_url: https://monitor.example.org} # links in alerts"
    yield "recommenders:"
    yield f"  - name: {scalar(draft.name)} # a label of every series; a new name begins a new history"
    yield "    logs:"
    for name, log in draft.logs.items():
        yield from _log(name, log)
    for name, what in _OTHER_LOGS.items():
        if name in draft.logs:
            continue
        if name in draft.left_out:
            path, why, todo = draft.left_out[name]
            mark = "TODO " if todo else ""
            yield f"      # {mark}{name}: {{path: {scalar(path)}}}{comment(f'not used: {why}')}"
        elif name == "feedback" and draft.feedback_hint:
            yield from (f"      # {line}" for line in draft.feedback_hint)
        else:
            yield f"      # {name}: {{path: ...}} # {what}"
    yield f"    window: {draft.window}{comment(draft.window_comment)}"
    yield "    every: 1m # how often the monitor looks for new rows"
    yield "    lateness: 5m # a window is judged once the log has rows this long after its end"
    yield "    max_wait: 1h # a window without such rows is late once this time has passed"
    yield "    rules: # more in rules/business, and your own with `suite: file.yaml`"
    yield from (f"      {line}" for line in draft.rules)
    yield from _section("metrics: # every one: docs/metrics/README.md", draft.metrics)
    if draft.slices:
        by = flow(draft.slices)
        yield f"    slices: {{by: {by}, budget: 10}}{comment(draft.slices_comment)}"
    else:
        yield "    # slices: {by: [scene], budget: 10} # no column with few values was found"
    yield from _section("experiments: # does each arm get its share? docs/experiments.md", draft.experiments)
    yield from _bands(draft)
    yield "    # objectives: # bounds; violated if the whole interval is beyond one, docs/objectives.md"
    yield from (f"    #   {line}" for line in draft.objectives)


def _bands(draft: Draft) -> Iterable[str]:
    about = "# the range expected of every metric from its own past, docs/bands.md"
    if parse_duration(draft.window) > timedelta(days=1):  # too few windows in four weeks
        yield f"    # bands: {{}} {about}"
        return
    yield f"    bands: {about}"
    yield f"      timezone: {scalar(draft.zone)}{comment(draft.zone_comment)}"
    yield f"      # country: {draft.country} # its public holidays count as a Sunday; a part of it: US-NY"


def _section(head: str, lines: Sequence[str]) -> Iterable[str]:
    """A key with its lines; a comment as a whole if all of its lines are comments."""
    if any(not line.lstrip().startswith("#") for line in lines):
        yield f"    {head}"
        yield from (f"      {line}" for line in lines)
    elif lines:
        yield f"    # {head}"
        yield from (f"    #   {line.removeprefix('# ')}" for line in lines)


def _log(name: str, log: LogDraft) -> Iterable[str]:
    yield f"      {name}:"
    yield f"        path: {flow_paths(log.paths)}{comment(log.path_comment)}"
    yield from (f"        {key}: {value}{comment(why)}" for key, value, why in log.settings)
    yield "        columns: # the monitor's name: the log's name"
    for line in log.todo:
        yield f"          # TODO{comment(line).removeprefix(' #')}"
    for before, columns in (("", log.columns), ("# ", log.unused)):
        for ours, theirs, why in columns:
            name = theirs if _PATH.fullmatch(theirs) else scalar(theirs)
            yield f"          {before}{scalar(ours)}: {name}{comment(why)}"
