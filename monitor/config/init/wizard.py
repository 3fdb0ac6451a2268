"""`recsys-monitor init`: looks at a log and writes a config for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from monitor.config.init.acted_columns import ActedColumn, acted_columns, as_feedback, events, sentence
from monitor.config.init.actions import Actions, look_at_actions
from monitor.config.init.calendar import guess_zone, machine_zone
from monitor.config.init.guess import (
    EMPTY,
    GUESS,
    Guess,
    format_settings,
    guess_columns,
    holds_labels,
    list_settings,
    looks_like_id,
    slice_columns,
    time_settings,
    values_of,
)
from monitor.config.init.joins import EmptyJoin
from monitor.config.init.kinds import Kind, kinds_of, log_named
from monitor.config.init.measured_pace import measure_pace
from monitor.config.init.neighbours import Neighbour, Neighbourhood, look_around
from monitor.config.init.profile import Only, Profile, named_log, profile
from monitor.config.init.suggest import suggest_metrics, suggest_objectives, suggest_rules
from monitor.config.init.suggest_actions import about, suggest_actions
from monitor.config.init.suggest_experiments import suggest_experiments
from monitor.config.init.synonyms import ACTION_WORDS, likeness, plain
from monitor.config.init.template import Draft, LogDraft, comment, flow, flow_paths, key, render, scalar
from monitor.config.init.traits import READ, Traits, traits
from monitor.config.init.zones import Clock, zones
from monitor.config.pace import Pace
from monitor.core import columns as c
from monitor.core.settings import show_duration
from monitor.core.text import NAME_LENGTH, plural, quoted
from monitor.engines.duckdb import Engine
from monitor.settings.logs import LogSettings

TODO = "TODO"
FEW_REQUESTS = 500
_KINDS = {"parquet": "Parquet", "csv": "CSV", "json": "JSON lines"}
_WITHOUT = {
    c.REQUEST_ID: "which rows were shown together. Write an id of each request to the log; if every row "
    "is a request of its own, map request_id to a column that is different in every row",
    c.USER_ID: "to whom it was shown. Write an id of the user to the log (a hash is enough); without one, "
    "map user_id to the request's column: every request then counts as a user",
    c.TS: "when it was shown. The log needs a time in every row: ISO 8601, or a count since 1970",
    c.ITEM_ID: "which item was shown: one id per row, or a list of ids per row",
}
_WITHOUT_OF_ACTION = {
    c.USER_ID: "who did it. Write to each action the user id that the exposures have",
    c.TS: _WITHOUT[c.TS].replace("it was shown", "it was done"),
    c.ITEM_ID: "on which item it was done: one id per row",
    c.EVENT: "what was done. Write the event to each row: click, add_to_cart, buy",
}
_DONE = (
    "and every row counts as shown; if this is what users did, give the exposures as LOG, and this log with "
    "--feedback"
)
_VIEWS = {"view", "viewed"}  # what was seen in a list, or opened from it
_DULL_NAMES = ("exposures", "exposure", "impressions", "logs", "log", "data", "part", "tmp", "")


@dataclass(frozen=True, slots=True)
class Written:
    """A config's text; `missing` says what keeps it from working, `notes` what else is worth knowing."""

    text: str
    missing: tuple[str, ...]
    notes: tuple[str, ...]


def write_config(
    arguments: Sequence[str], folder: Path, feedback: Sequence[str] = (), kind: str = "auto"
) -> Written:
    """Look at a log and write a config for it.

    Args:
        arguments: files, folders or globs, as given.
        folder: where the config will lie; paths are written relative to it where they are below it.
        feedback: the log of what users did; by default `init` searches near the exposures.
        kind: the format of the exposures: parquet, csv, json, delta or iceberg; auto detects it by name or
            content.

    Raises:
        CannotProfile: the log cannot be looked at.
    """
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '1GiB'")
        engine = Engine(connection)
        given = named_log(arguments, kind)
        kinds = kinds_of(engine, given, arguments)
        seen = profile(engine, given.model_copy(update={"path": tuple(kinds[0].patterns)}))
        guesses = guess_columns(c.EXPOSURES, seen, engine.backend.table(seen.table))
        around = look_around(engine, seen, guesses, arguments, feedback, kinds[1:])
        exposures, guesses, beside = around.exposures, around.guesses, around.beside
        missing = [role for role in c.REQUIRED[c.EXPOSURES] if role not in guesses]
        settings = _settings(exposures, guesses, around.only)
        read = None if missing else traits(engine, exposures.table, settings, guesses)
        pace = None if read is None else measure_pace(connection, exposures, settings, guesses, read)
        acted = beside.get(c.FEEDBACK)
        actions = _actions(engine, exposures, acted, read) if acted else None

        draft = Draft(name=_name(given.paths))
        draft.logs[c.EXPOSURES] = _log_draft(c.EXPOSURES, exposures, guesses, around.only, folder)
        for name, log in beside.items():
            draft.logs[name] = _log_draft(name, log.profile, log.guesses, log.only, folder)
            _mark_empty(draft.logs[name], name, log.empty)
        for left in around.left_out:
            draft.left_out.setdefault(left.log, (_from(left.path, folder), left.why, left.named))
        warnings = _warnings(exposures, guesses)
        if not around.only:
            warnings += _mixed_events(engine, exposures, guesses) or _named_for_actions(exposures, guesses)
        warnings += _set_zones(draft.logs, exposures, pace, acted, actions)
        _set_calendar(draft, pace)
        if pace is not None:
            draft.window, draft.window_comment = show_duration(pace.window), _rate(pace)
        flags = acted_columns(exposures, guesses, engine.backend.table(exposures.table))
        _slices(draft, exposures, guesses, {flag.name for flag in flags})
        draft.rules = suggest_rules(exposures, guesses, read, beside)
        draft.metrics = suggest_metrics(guesses, read)
        draft.metrics += suggest_actions(actions, read, draft.window)
        if flags and acted is None:
            warnings.append(_hint_at_feedback(draft, flags, exposures, guesses, around.only))
        draft.objectives = suggest_objectives(guesses, beside)
        if read is not None:
            names = {guess.column: role for role, guess in guesses.items()}
            draft.experiments = suggest_experiments(engine, exposures, guesses, names)
    notes = [*_choices(kinds, around, folder), *(f"not sampled: {note}" for note in seen.notes)]
    notes += [f"not used: {left}" for left in around.left_out if not left.named]
    notes += [f"warning: {warning}" for warning in warnings]
    unmet = _missing(exposures, missing, acted)
    unmet += [f"{left}; write the ids alike in both logs" for left in around.left_out if left.named]
    return Written(render(draft), tuple(unmet), tuple(notes))


def _choices(kinds: Sequence[Kind], around: Neighbourhood, folder: Path) -> Iterator[str]:
    """Which files were taken as which log, and why, if there was a choice."""
    if len(kinds) > 1:
        alike = (
            f"its columns sound like {', '.join(kinds[0].roles)}" if kinds[0].roles else "nothing fits better"
        )
        yield f"exposures: took {_shown(kinds[0].patterns, folder)}, since {alike}"
    if len(kinds[0].folders) > 1:
        folders = ", ".join(_from(one, folder) for one in sorted(kinds[0].folders))
        yield (
            f"exposures: the files in {folders} have the same columns and became one log; if they are of "
            "several recommenders, give those of one as LOG"
        )
    used = {file.path for file in kinds[0].files}
    for name, log in around.beside.items():
        if log.by_name:
            used |= {file.path for file in log.profile.files}
            why = "its name says so and its ids join the exposures"
            yield f"{name}: took {_shown(log.paths, folder)}, since {why}"
    left_out = {one.path for one in around.left_out}
    others = [
        _shown(kind.patterns, folder)
        for kind in kinds
        if used.isdisjoint(file.path for file in kind.files) and left_out.isdisjoint(kind.patterns)
    ]
    if others:
        yield f"not used: {', '.join(others)}; if the choice is wrong, give the exposures alone as LOG"


def _shown(paths: Sequence[str], folder: Path) -> str:
    return ", ".join(_from(path, folder) for path in paths)


def _hint_at_feedback(
    draft: Draft,
    flags: Sequence[ActedColumn],
    found: Profile,
    guesses: Mapping[str, Guess],
    only: Only | None,
) -> str:
    """Add a feedback log that reads flags of the exposures, as a comment; a sentence about it."""
    log = draft.logs[c.EXPOSURES]
    lines = as_feedback(flags, found, guesses, flow_paths(log.paths), log.settings, only)
    if lines:
        draft.metrics.append(events(flags))
    warning = sentence(flags, can_be_read=bool(lines))
    draft.feedback_hint = lines or [f"feedback: {{path: ...}}{comment(warning)}"]
    return warning


def _settings(found: Profile, guesses: Mapping[str, Guess], only: Only | None) -> LogSettings:
    """How the monitor will read a log."""
    settings: dict[str, object] = {"path": found.settings.path, "format": found.settings.format}
    settings["columns"] = {role: guess.column for role, guess in guesses.items()}
    for name, value, _ in (*list_settings(found, guesses), *time_settings(found, guesses)):
        settings[name] = value
    if only is not None:
        settings["only"] = {only[0]: only[1]}
    return LogSettings.model_validate(settings)


def _actions(engine: Engine, found: Profile, acted: Neighbour, read: Traits | None) -> Actions | None:
    if acted.missing(c.FEEDBACK):
        return None
    settings = _settings(acted.profile, acted.guesses, acted.only)
    shown = engine.backend.table(READ) if read is not None else None
    complete = found.complete and acted.profile.complete
    return look_at_actions(engine, acted.profile.table, settings, shown, complete)


def _slices(draft: Draft, found: Profile, guesses: Mapping[str, Guess], outcomes: set[str]) -> None:
    """Name the columns to slice by. What users did is no property of what was shown, so it is no slice."""
    slices = [one for one in slice_columns(found, guesses) if one[0] not in outcomes]
    draft.slices = [name for name, _ in slices[:3]]
    few = ", ".join(f"{name}: {column.distinct}" for name, column in slices[:6])
    further = f"; more to choose from: {', '.join(name for name, _ in slices[3:6])}" if slices[3:] else ""
    draft.slices_comment = f"columns of few values ({few}){further}" if slices else ""


def _rate(pace: Pace) -> str:
    if not pace.an_hour:
        return "a guess: the log covers no time span yet; choose a window that holds about 1,000 requests"
    expected = pace.in_window(pace.window)
    requests = plural(round(pace.requests), "request")
    seen = f"{'' if pace.exact else 'about '}{requests} in {about(pace.span)}"
    few = ": few, so rates will vary a lot" if expected < FEW_REQUESTS else ""
    return f"{seen} ({pace.basis}); a window holds about {expected:,.0f}{few}"


def _log_draft(
    log: str, found: Profile, guesses: Mapping[str, Guess], only: Only | None, folder: Path
) -> LogDraft:
    without = _WITHOUT_OF_ACTION if log == c.FEEDBACK else _WITHOUT
    missing = [role for role in c.REQUIRED[log] if role not in guesses]
    paths = found.settings.paths
    draft = LogDraft(tuple(_from(path, folder) for path in paths), _about_paths(paths, found))
    draft.settings = format_settings(found)
    if only is not None:
        values = scalar(only[1][0]) if len(only[1]) == 1 else flow(only[1])
        why = "the log holds other events too; only these rows belong here"
        draft.settings.append(("only", f"{{{key(only[0])}: {values}}}", why))
    draft.settings += [(name, scalar(value), why) for name, value, why in list_settings(found, guesses)]
    draft.settings += time_settings(found, guesses)
    draft.columns = [
        (role, one.column, EMPTY if one.why == EMPTY else f"{one.sureness}: {one.why}")
        for role, one in guesses.items()
    ]
    draft.columns += [(role, TODO, f"TODO: no column says {without[role].split('.')[0]}") for role in missing]
    if missing:
        names = ", ".join(column.name for column in found.columns)
        draft.todo.append(f"name the missing columns below; the log has: {names}")
    if missing and log == c.EXPOSURES:
        draft.todo += [
            f"{one.name!r} is {one.dtype}, and no path can read values from it; write them as separate "
            "columns"
            for one in found.columns
            if not one.readable
        ]
    return draft


def _mark_empty(draft: LogDraft, log: str, empty: Sequence[EmptyJoin]) -> None:
    """Note beside a column that it joins nothing; an optional column becomes a comment."""
    for one in empty:
        why = f"joins nothing: {one}"
        if one.role in c.REQUIRED[log]:
            draft.columns = [
                (role, column, why if role == one.role else said) for role, column, said in draft.columns
            ]
        else:
            draft.unused.append((one.role, one.column, why))


def _set_zones(
    logs: Mapping[str, LogDraft],
    found: Profile,
    pace: Pace | None,
    acted: Neighbour | None,
    actions: Actions | None,
) -> list[str]:
    """Write the time zones that fit the times; a sentence on times that no zone can correct."""
    if pace is None:
        return []
    mine = Clock(_is_naive(logs[c.EXPOSURES]), pace.last, found.written)
    theirs = None
    if acted is not None:
        theirs = Clock(_is_naive(logs[c.FEEDBACK]), None, acted.profile.written)
    fitting = zones(mine, theirs, actions.shift if actions else None)
    for name, zone in ((c.EXPOSURES, fitting.exposures), (c.FEEDBACK, fitting.feedback)):
        if zone is not None:
            logs[name].settings = [
                (key, *zone) if key == "timezone" else (key, value, why)
                for key, value, why in logs[name].settings
            ]
    return [fitting.note] if fitting.note else []


def _set_calendar(draft: Draft, pace: Pace | None) -> None:
    """Propose the zone of the users for the bands."""
    log = draft.logs[c.EXPOSURES]
    zone = next((value for name, value, _ in log.settings if name == "timezone"), None)
    found = guess_zone(pace, zone if _is_naive(log) else None, machine_zone())
    draft.zone, draft.zone_comment, draft.country = found.zone, found.why, found.country


def _is_naive(log: LogDraft) -> bool:
    return any(key == "timezone" and why.startswith(GUESS) for key, _, why in log.settings)


def _warnings(found: Profile, guesses: Mapping[str, Guess]) -> list[str]:
    """Faults of the log that no config can correct."""
    taken = {one.column for one in guesses.values()}
    empty = [
        f"{role} is empty in every sampled row (column {one.column!r}); name another column, or write it to "
        "the log"
        for role, one in guesses.items()
        if one.why == EMPTY
    ]
    days = [
        f"{guess.column!r} holds days without a time of day, so every row counts at midnight; write the "
        "moment of the request in one column"
        for role, guess in guesses.items()
        if role == c.TS and found.column(guess.column).days > 0.95
    ]
    return [*empty, *days] + [
        f"{one.name!r} has numbers with a decimal comma, which is not supported; write them with a point"
        for one in found.columns
        if one.decimal_commas > 0.5 and one.name not in taken
    ]


def _mixed_events(engine: Engine, found: Profile, guesses: Mapping[str, Guess]) -> list[str]:
    """Columns that say what users did, without a value that marks the exposures."""
    taken = {one.column for one in guesses.values()}
    sentences = []
    for one in found.usable:
        if one.name in taken or one.lists or one.distinct > 50 or not likeness(one.name, c.EVENT):
            continue
        values = values_of(engine.backend.table(found.table), one.name)
        if ACTION_WORDS & set(plain(" ".join(values)).split("_")):
            some = ", ".join(quoted(value, NAME_LENGTH) for value in values[:5])
            if len(values) == 1:
                if not _VIEWS & set(plain(values[0]).split("_")):
                    sentences.append(f"{one.name!r} is {some} in every row, {_DONE}")
                continue
            sentences.append(
                f"{one.name!r} has several events ({some}), and every row counts "
                "as shown; if only some were, set `only` for the exposures, and name the rest as feedback"
            )
    return sentences


def _named_for_actions(found: Profile, guesses: Mapping[str, Guess]) -> list[str]:
    """A sentence if the files have the name of a feedback log, and nothing that only exposures have."""
    item = guesses.get(c.ITEM_ID)
    shows_lists = item is not None and found.column(item.column).lists
    name = "/".join(found.files[-1].path.split("/")[-2:])
    if shows_lists or c.POSITION in guesses or c.SCORE in guesses or log_named(name) != c.FEEDBACK:
        return []
    return [f"{name} has the name of a log of actions, {_DONE}"]


def _missing(found: Profile, missing: Sequence[str], acted: Neighbour | None) -> list[str]:
    """A sentence for each required column that was not found, and for what may be the reason."""
    sentences = []
    if c.ITEM_ID in missing:
        sentences += [
            f"{one.name!r} holds an item and a label in one text, which is not supported; write the item ids "
            "in a column of their own, and the labels as a feedback log"
            for one in found.columns
            if holds_labels(one)
        ]
        if wide := numbered_columns(found):
            sentences.append(
                f"{wide[0]!r} to {wide[-1]!r} seem to hold one list in {len(wide)} columns, which is not "
                "read; write one row for each item, or one column with a list of the items"
            )
    if c.TS in missing:
        form = "write them as 2026-01-31T10:00:00Z or as a count since 1970"
        unread = [one for one in found.usable if not one.is_time]
        sentences += [
            f"the name {one.name!r} suggests a time, but its values cannot be read as times; {form}"
            if likeness(one.name, c.TS) > 0
            else f"{one.name!r} holds times in an unknown form; {form}"
            for one in unread
            if one.other_dates > 0.5 or likeness(one.name, c.TS) > 0
        ]
    if missing:
        sentences += [
            f"{one.name!r} holds JSON texts, which are not supported; write them as nested JSON lines or "
            "Parquet, or their values in columns of their own"
            for one in found.usable
            if one.json > 0.5
        ]
    if what := _something_else(found, missing):
        sentences.append(what)
    sentences += [f"no column was found that says {_WITHOUT[role]} ({role})" for role in missing]
    if acted is not None:
        sentences += [
            f"no column of the feedback was found that says {_WITHOUT_OF_ACTION[role]} ({role})"
            for role in acted.missing(c.FEEDBACK)
        ]
    return sentences


def numbered_columns(found: Profile) -> list[str]:
    """The columns of items whose names differ only in a number at the end, such as item_1 and item_2."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for one in found.usable:
        stem = re.fullmatch(r"(.*?)_?(\d{1,4})", one.name, re.DOTALL)
        if stem and looks_like_id(one) and likeness(stem[1], c.ITEM_ID) > 0:
            groups.setdefault(stem[1], []).append((int(stem[2]), one.name))
    widest = max(groups.values(), key=len, default=[])
    return [name for _, name in sorted(widest)] if len(widest) > 1 else []


def _something_else(found: Profile, missing: Sequence[str]) -> str | None:
    """Which other kind of log this seems to be, if it is no log of exposures."""
    names = {plain(one.name) for one in found.columns}
    if missing and "label" in names and ("split" in names or (len(missing) > 1 and c.SCORE in names)):
        return (
            "this looks like scored samples of a model, not like exposures; name it under logs.samples "
            "instead (see docs/models.md)"
        )
    acts = any(likeness(name, role) for name in names for role in (c.EVENT, c.VALUE))
    if c.REQUEST_ID in missing and c.ITEM_ID not in missing and acts:
        return (
            "this looks like a log of what users did, not what they were shown; give the exposures as LOG, "
            "and this log with --feedback"
        )
    if {c.REQUEST_ID, c.TS} & set(missing):
        keys = [role for role in (c.ITEM_ID, c.USER_ID) if any(likeness(name, role) for name in names)]
        log = {c.ITEM_ID: c.CATALOG, c.USER_ID: c.USERS}.get(keys[0]) if len(keys) == 1 else None
        if log and all(one.distinct == one.present for one in found.columns if likeness(one.name, keys[0])):
            one = keys[0].removesuffix("_id")
            return (
                f"this has one row for each {one} and looks like logs.{log}, not like exposures; give the "
                f"exposures as LOG, and name this file under logs.{log}"
            )
    return None


def _about_paths(paths: tuple[str, ...], found: Profile) -> str:
    count = len(found.files)
    if found.settings.is_table:
        return f"a table of {plural(count, 'data file')} when this was written"
    if count == 1 and len(paths) == 1 and re.search(r"\d", Path(paths[0]).name) and "://" not in paths[0]:
        ending = "".join(Path(paths[0]).suffixes[-2:])
        return f"one file; if new ones land beside it, write a glob such as *{ending}"
    return f"{plural(count, f'{_KINDS.get(found.kind, found.kind)} file')} when this was written"


def _from(path: str, folder: Path) -> str:
    if "://" in path:
        return path
    whole = os.path.abspath(path)
    base = os.path.abspath(folder)
    return os.path.relpath(whole, base) if whole.startswith(base + os.sep) else whole


def _name(paths: Sequence[str]) -> str:
    """A name for the recommender, from the path of its log."""
    path = paths[0].split("://")[-1]
    if "://" not in paths[0]:
        path = os.path.abspath(path)
    for part in reversed(path.split("/")):
        stem = re.sub(r"\.[A-Za-z.]+$", "", part)
        word = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
        if word not in _DULL_NAMES and not re.fullmatch(r"[\d-]+", word) and "*" not in stem:
            return word[:63].strip("-")
    return "recommender"
