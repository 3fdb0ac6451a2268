"""The findings of `validate` on joins: feedback with exposures, and exposures with catalog and users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.config.look import LogSeen
from monitor.config.validate.answers import of_answers
from monitor.config.validate.findings import ConfigFinding, Reporter, percent
from monitor.core import columns as c
from monitor.core.settings import show_duration
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.engines.duckdb import Engine
from monitor.logs.source import Source
from monitor.metrics.feedback.time_shift import joining_shift, shift_text
from monitor.settings.recommender import RecommenderSettings

KEY_ROWS: Final = 2_000_000  # the most rows of one log that are compared
_FEW: Final = 20  # fewer actions or items are no evidence
_SHOWN_EVENTS: Final = 8
_LEAST_JOINED: Final = 0.5
_LEAST_KNOWN: Final = 0.9
_KEYS: Final = {
    c.EXPOSURES: (c.REQUEST_ID, c.USER_ID, c.ITEM_ID, c.TS),
    c.FEEDBACK: (c.REQUEST_ID, c.USER_ID, c.ITEM_ID, c.TS, c.EVENT),
    c.CATALOG: (c.ITEM_ID,),
    c.USERS: (c.USER_ID,),
    c.SURVEY: (c.REQUEST_ID, c.USER_ID, c.TS, c.QUESTION, c.ANSWER),
}


class Keys:
    """The keys of the looked-at files of each log, as tables.

    `cut` names the logs with further rows, and `spans` hold the first and last time of each of their files.
    """

    def __init__(self, engine: Engine, source: Source, logs: Mapping[str, LogSeen]) -> None:
        self.tables: dict[str, ir.Table] = {}
        self.cut: set[str] = set()
        self.spans = {
            name: [(one.first, one.last) for one in seen.measured if one.first and one.last]
            for name, seen in logs.items()
        }
        for name, seen in logs.items():
            sound = [one.entry() for one in seen.sound]
            if name in _KEYS and sound:
                rows = source.rows_of_files(engine, name, sound)
                keys = rows.select(*(column for column in _KEYS[name] if column in rows.columns))
                self.tables[name] = engine.create(f"keys_{name}", keys.limit(KEY_ROWS))
                count = int(self.tables[name].count().execute())
                if count >= KEY_ROWS or len(sound) < len(seen.files):
                    self.cut.add(name)


def of_joins(
    recommender: str, where: str, settings: RecommenderSettings, keys: Keys
) -> Iterator[ConfigFinding]:
    """Every finding that needs two logs, and those on the events of the feedback."""
    if c.FEEDBACK in keys.tables:
        say = Reporter(recommender, c.FEEDBACK, where)
        yield from _events(say, settings, keys.tables[c.FEEDBACK])
        if c.EXPOSURES in keys.tables:
            yield from _feedback(say, settings, keys)
    for log, column, thing in ((c.CATALOG, c.ITEM_ID, "item"), (c.USERS, c.USER_ID, "user")):
        if log in keys.tables and c.EXPOSURES in keys.tables:
            yield from _known(Reporter(recommender, log, f"{where}.logs.{log}"), keys, log, column, thing)
    if c.SURVEY in keys.tables and c.EXPOSURES in keys.tables:
        say = Reporter(recommender, c.SURVEY, where)
        yield from of_answers(say, settings, keys.tables, has_all=not keys.cut)


def _events(say: Reporter, settings: RecommenderSettings, feedback: ir.Table) -> Iterator[ConfigFinding]:
    """The events of the log, and the configured events that it lacks."""
    counted = feedback.filter(feedback[c.EVENT].notnull()).group_by(c.EVENT).aggregate(n=lambda t: t.count())
    top = counted.order_by(counted.n.desc(), counted[c.EVENT]).limit(200).to_pyarrow().to_pylist()
    if not top:
        return
    found = {str(row[c.EVENT]): int(row["n"]) for row in top}
    shown = ", ".join(
        f"{visible(name, NAME_LENGTH)} ({n:,})" for name, n in list(found.items())[:_SHOWN_EVENTS]
    )
    asked = settings.metrics.events
    if lacking := [name for name in asked if name not in found]:
        make = say.problem if len(lacking) == len(asked) else say.warning
        text = f"the files looked at have no action with the event {' or '.join(lacking)}; they have {shown}"
        yield make("events", text, "metrics.events")
    else:
        yield say.ok("events", shown)


def _feedback(say: Reporter, settings: RecommenderSettings, keys: Keys) -> Iterator[ConfigFinding]:
    shown, acted = keys.tables[c.EXPOSURES], keys.tables[c.FEEDBACK]
    shown = shown.filter(shown[c.REQUEST_ID].notnull())
    place, reach = "logs.feedback", settings.metrics.attribution
    acted = acted.filter(acted[c.EVENT].isin(list(settings.metrics.events)), acted[c.ITEM_ID].notnull())
    edges = shown.aggregate(first=shown[c.TS].min(), last=shown[c.TS].max()).to_pyarrow().to_pylist()[0]
    if edges["first"] is None:  # no exposure can be used, which another problem reports
        return
    cut = c.EXPOSURES in keys.cut
    inside = acted
    if cut:  # the exposures of other actions may be in another file
        spans = keys.spans[c.EXPOSURES]
        inside = acted.filter(ibis.or_(*(acted[c.TS].between(_time(a), _time(b)) for a, b in spans)))
    every = int(acted.count().execute())
    found = joining_shift(shown, inside, reach)
    if cut and (found is None or found.actions < _FEW):  # it may also be that the times are hours off
        moved = joining_shift(shown, acted, reach)
        found = moved if moved is not None and moved.helps else found
    if found is None or found.actions < _FEW:
        if every >= _FEW:
            span = f"{edges['first']:%Y-%m-%d %H:%M} to {edges['last']:%Y-%m-%d %H:%M} UTC"
            text = (
                f"the share of actions that join is unknown: under {_FEW} of the {every:,} actions looked at "
                f"are from the time of the exposures looked at ({span})"
            )
            yield say.warning("join", text, place)
        return
    least = "at least " if cut else ""
    joined = found.joined * found.actions
    text = (
        f"{least}{percent(joined, found.actions)} of {found.actions:,} sampled actions join an exposure "
        f"within {show_duration(reach)}"
    )
    if found.joined >= _LEAST_JOINED:
        yield say.ok("join", text)
        return
    if found.helps:
        shifted = percent(found.shifted * found.actions, found.actions)
        shift = shift_text(found.shift)
        why = f"; {shifted} would join with the feedback's times moved by {shift}: set `timezone`"
        place = f"{place}.timezone"
    else:
        why = ""
        for column, things in ((c.USER_ID, "users"), (c.ITEM_ID, "items")):
            n, known = _met(inside, shown, column)
            why += f"; {percent(known, n)} of the feedback's {things} are in the exposures"
    none = joined == 0 and not keys.cut
    yield (say.problem if none else say.warning)("join", text + why, place)


def _time(moment: datetime) -> ir.Value:
    return ibis.literal(moment.replace(tzinfo=None)).cast("timestamp(6)")


def _met(some: ir.Table, others: ir.Table, column: str) -> tuple[int, int]:
    """The number of distinct values of a column, and how many of them the other table has."""
    values, there = (
        rows.filter(rows[column].notnull()).select(v=rows[column].cast("string")).distinct()
        for rows in (some, others)
    )
    known = values.semi_join(there, "v")
    return int(values.count().execute()), int(known.count().execute())


def _known(say: Reporter, keys: Keys, log: str, column: str, thing: str) -> Iterator[ConfigFinding]:
    n, known = _met(keys.tables[c.EXPOSURES], keys.tables[log], column)
    if n == 0:
        return
    least = "at least " if log in keys.cut else ""
    text = f"has {least}{percent(known, n)} of the {plural(n, thing)} in the exposures looked at"
    if known >= _LEAST_KNOWN * n:
        yield say.ok("known", text)
    elif known == 0 and n >= _FEW and log not in keys.cut:
        yield say.problem("known", f"{text}; check that both logs write the same id", f"columns.{column}")
    else:
        yield say.warning("known", text, f"columns.{column}")
