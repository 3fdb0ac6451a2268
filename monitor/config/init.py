"""From a log to a config that works: `recsys-monitor init`."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import duckdb

from monitor.config.guess import GUESS, Guess, guess_columns, slice_columns, time_settings
from monitor.config.neighbours import neighbours
from monitor.config.problems import show_duration
from monitor.config.profile import TABLE, Profile, patterns, profile
from monitor.config.suggest import suggest_metrics, suggest_objectives, suggest_rules
from monitor.config.suggest_actions import suggest_actions
from monitor.config.template import Draft, LogDraft, render
from monitor.config.traits import Traits, traits, window_length
from monitor.logs import columns as c
from monitor.logs.engine import Engine
from monitor.logs.settings import LogSettings

TODO = "TODO"
_WITHOUT = {
    c.REQUEST_ID: "which rows were shown together. Let the log carry an id for each request; if every row "
    "is a request of its own, map request_id to a column that is different in every row",
    c.USER_ID: "to whom it was shown. Let the log carry an id of the user (a hash will do); without one, "
    "map user_id to the request's column: every request then counts as a user",
    c.TS: "when it was shown. The log needs a time in every row: ISO 8601, or a count since 1970",
    c.ITEM_ID: "which item was shown: one id a row, or a list of ids a row",
}
_WITHOUT_OF_ACTION = {
    c.USER_ID: "who did it. Let each action carry the id of the user that the exposures have",
    c.TS: _WITHOUT[c.TS].replace("it was shown", "it was done"),
    c.ITEM_ID: "on which item it was done: one id a row",
    c.EVENT: "what was done. Let each row name its event: click, add_to_cart, buy",
}
_DULL_NAMES = ("exposures", "exposure", "impressions", "logs", "log", "data", "part", "tmp", "")


@dataclass(frozen=True, slots=True)
class Written:
    """A config's text; `missing` are sentences on what keeps it from working, `notes` what else was seen."""

    text: str
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def write_config(arguments: Sequence[str], folder: Path, feedback: Sequence[str] = ()) -> Written:
    """Look at a log and write a config for it.

    Args:
        arguments: files, folders or globs, as given.
        folder: where the config will lie; paths are written relative to it where they are below it.
        feedback: the log of what users did, if it is named; else one is looked for beside the exposures.

    Raises:
        CannotProfile: the log cannot be looked at.
    """
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '1GiB'")
        engine = Engine(connection)
        paths = patterns(arguments)
        found = profile(engine, LogSettings(path=paths))
        guesses = guess_columns(c.EXPOSURES, found, engine.backend.table(TABLE))
        missing = [role for role in c.REQUIRED[c.EXPOSURES] if role not in guesses]
        read = None if missing else _read(engine, found, guesses)
        beside = neighbours(engine, found, arguments, feedback)
        draft = _draft(found, guesses, missing, read, paths, folder)
        for name, other in beside.items():
            gaps = other.missing(name)
            draft.logs[name] = _log_draft(name, other.profile, other.guesses, gaps, other.paths, folder)
        _same_zone(draft.logs)
        draft.rules = suggest_rules(found, guesses, read, beside)
        draft.metrics = suggest_metrics(guesses, read)
        if c.FEEDBACK in beside:
            draft.metrics += suggest_actions(beside[c.FEEDBACK].actions, read, draft.window)
        draft.objectives = suggest_objectives(guesses, beside)
    sentences = [f"no column was found that says {_WITHOUT[role]} ({role})" for role in missing]
    if c.FEEDBACK in beside:
        sentences += [
            f"no column of the feedback was found that says {_WITHOUT_OF_ACTION[role]} ({role})"
            for role in beside[c.FEEDBACK].missing(c.FEEDBACK)
        ]
    return Written(render(draft), tuple(sentences), found.notes)


def _read(engine: Engine, found: Profile, guesses: Mapping[str, Guess]) -> Traits:
    columns = {role: one.column for role, one in guesses.items()}
    extra: dict[str, str] = {key: value for key, value, _ in time_settings(found, guesses)}
    settings = LogSettings.model_validate({"path": found.settings.path, "columns": columns, **extra})
    return traits(engine, settings, guesses)


def _draft(
    found: Profile,
    guesses: Mapping[str, Guess],
    missing: Sequence[str],
    read: Traits | None,
    paths: tuple[str, ...],
    folder: Path,
) -> Draft:
    draft = Draft(name=_name(paths))
    draft.logs[c.EXPOSURES] = _log_draft(c.EXPOSURES, found, guesses, missing, paths, folder)
    if read is not None:
        length = window_length(found, read)
        draft.window = show_duration(length)
        draft.window_comment = _rate(read, length)
        draft.logs[c.EXPOSURES].settings = _zone_by_clock(draft.logs[c.EXPOSURES].settings, found, read)
    slices = slice_columns(found, guesses)
    draft.slices = [name for name, _ in slices[:3]]
    few = ", ".join(f"{name}: {column.distinct}" for name, column in slices[:6])
    further = f"; more to choose from: {', '.join(name for name, _ in slices[3:6])}" if slices[3:] else ""
    draft.slices_comment = f"columns of few values ({few}){further}" if slices else ""
    return draft


def _rate(read: Traits, length: timedelta) -> str:
    if not read.span:
        return "a guess: the log spans no time yet; choose one that holds about 1,000 requests"
    per = read.requests * (length / read.span)
    seen = f"{read.requests:,} requests in {show_duration(read.span)} looked at"
    return f"{seen}; a window holds about {min(per, read.requests):,.0f} of such" if per else seen


def _log_draft(
    log: str,
    found: Profile,
    guesses: Mapping[str, Guess],
    missing: Sequence[str],
    paths: tuple[str, ...],
    folder: Path,
) -> LogDraft:
    without = _WITHOUT_OF_ACTION if log == c.FEEDBACK else _WITHOUT
    draft = LogDraft(tuple(_from(path, folder) for path in paths), _about_paths(paths, found))
    draft.settings = time_settings(found, guesses)
    draft.columns = [(role, one.column, f"{one.sureness}: {one.why}") for role, one in guesses.items()]
    draft.columns += [(role, TODO, f"TODO: no column says {without[role].split('.')[0]}") for role in missing]
    if missing:
        draft.todo.append("name the missing columns below; the log has: " + ", ".join(
            one.name for one in found.columns
        ))  # fmt: skip
    draft.todo += [
        f"{one.name!r} holds several values in one text, which is not read; write lists (Parquet, JSON), "
        "or a row for each"
        for one in found.columns
        if one.packed > 0.5 and c.ITEM_ID in missing
    ]
    draft.todo += [
        f"{one.name!r} holds structures, which are not read; write its fields as columns of their own"
        for one in found.columns
        if not one.readable and log == c.EXPOSURES and missing
    ]
    return draft


def _zone_by_clock(
    settings: list[tuple[str, str, str]], found: Profile, read: Traits
) -> list[tuple[str, str, str]]:
    """Times later than their file was written cannot be UTC: they are local, east of it."""
    if not settings or settings[0][0] != "timezone" or not settings[0][2].startswith(GUESS):
        return settings
    if read.last is None or read.last <= found.written + timedelta(minutes=5):
        return settings
    hours = math.ceil((read.last - found.written) / timedelta(hours=1))
    if hours > 14:
        return settings
    why = f"{GUESS}: read as UTC, the newest time would be after its file was written; name your zone"
    return [("timezone", f"Etc/GMT-{hours}", why)]


def _same_zone(logs: Mapping[str, LogDraft]) -> None:
    """A feedback log whose times say no zone is written by the same clock as the exposures."""
    shown = logs[c.EXPOSURES].settings
    if c.FEEDBACK in logs and shown and shown[0][2].startswith(GUESS):
        logs[c.FEEDBACK].settings = [
            shown[0] if key == shown[0][0] and why.startswith(GUESS) else (key, value, why)
            for key, value, why in logs[c.FEEDBACK].settings
        ]


def _about_paths(paths: tuple[str, ...], found: Profile) -> str:
    count = len(found.files)
    if count == 1 and len(paths) == 1 and re.search(r"\d", Path(paths[0]).name) and "://" not in paths[0]:
        ending = "".join(Path(paths[0]).suffixes[-2:])
        return f"one file; if new ones land beside it, write a glob such as *{ending}"
    return f"{count:,} file{'' if count == 1 else 's'} of {found.kind} when this was written"


def _from(path: str, folder: Path) -> str:
    if "://" in path:
        return path
    whole = os.path.abspath(path)
    base = os.path.abspath(folder)
    return os.path.relpath(whole, base) if whole.startswith(base + os.sep) else whole


def _name(paths: Sequence[str]) -> str:
    """A name for the recommender from where its log lies."""
    path = paths[0].split("://")[-1]
    if "://" not in paths[0]:
        path = os.path.abspath(path)
    for part in reversed(path.split("/")):
        stem = re.sub(r"\.[A-Za-z.]+$", "", part)
        word = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
        if word not in _DULL_NAMES and not re.fullmatch(r"[\d-]+", word) and "*" not in stem:
            return word[:63].strip("-")
    return "recommender"
