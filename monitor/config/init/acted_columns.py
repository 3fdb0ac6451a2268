"""Columns of the exposures that say what users did: a flag such as `clicked`, a time such as `click_time`.

Feedback is rows with an event. The files of the exposures can serve as the feedback log if a flag has one
value for an action: it is then the event, and `only` takes the rows with this value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.config.init.guess import Guess, values_of
from monitor.config.init.profile import Column, Only, Profile
from monitor.config.init.synonyms import plain
from monitor.config.init.template import comment, flow_map, key
from monitor.core import columns as c

_WORDS = frozenset(
    ("click", "clicked", "clicks", "tap", "tapped", "purchase", "purchased", "bought", "converted",
     "conversion", "liked", "ordered", "opened", "played", "watched", "viewed")
)  # fmt: skip
_YES = ("1", "true", "yes", "y", "t")
_NO = ("0", "false", "no", "n", "f")
_COPIED = ("format", "timezone", "timestamp_unit")


@dataclass(frozen=True, slots=True)
class ActedColumn:
    """A column that says what users did; `value` is that of a flag for an action."""

    name: str
    value: str | None = None
    is_time: bool = False


def acted_columns(found: Profile, guesses: Mapping[str, Guess], table: ir.Table) -> list[ActedColumn]:
    """The columns without a role that are named after an action, in the order of the log."""
    taken = {one.column for one in guesses.values()}
    return [
        ActedColumn(one.name, _yes(one, table), one.is_time)
        for one in found.usable
        if one.name not in taken and _WORDS & set(plain(one.name).split("_"))
    ]


def _yes(column: Column, table: ir.Table) -> str | None:
    if column.lists or column.is_path or not 1 <= column.distinct <= 2:
        return None
    values = values_of(table, column.name)
    yes = [one for one in values if one.lower() in _YES]
    return yes[0] if len(yes) == 1 and all(one.lower() in (*_YES, *_NO) for one in values) else None


def as_feedback(
    acted: Sequence[ActedColumn],
    found: Profile,
    guesses: Mapping[str, Guess],
    path: str,
    settings: Sequence[tuple[str, str, str]],
    only: Only | None,
) -> list[str]:
    """The lines of a feedback log that reads a flag from the files of the exposures; empty if none can.

    Args:
        acted: the columns that say what users did.
        found: the exposures.
        guesses: their columns.
        path: their path, as YAML.
        settings: their other settings: key, value, comment.
        only: the rows that are exposures, if the log has other rows too.
    """
    flag = next((one for one in acted if one.value is not None), None)
    roles = (c.USER_ID, c.ITEM_ID, c.TS, c.REQUEST_ID)
    if flag is None or flag.value is None or any(role not in guesses for role in roles):
        return []
    columns = {role: guesses[role].column for role in roles}
    if any(found.column(name).lists or found.column(name).is_path for name in columns.values()):
        return []
    columns[c.EVENT] = flag.name
    wanted = {c.EVENT: flag.value} | ({} if only is None or len(only[1]) > 1 else {only[0]: only[1][0]})
    why = "to count these actions, use these lines and `events` of the metrics"
    return [
        f"feedback:{comment(f'{flag.name!r} of the exposures says what users did; {why}')}",
        f"  path: {path}",
        *(f"  {name}: {value}" for name, value, _ in settings if name in _COPIED),
        f"  columns: {flow_map(columns)}",
        f"  only: {flow_map(wanted)}",
    ]


def events(acted: Sequence[ActedColumn]) -> str:
    """The setting of the metrics that goes with `as_feedback`, as a comment."""
    value = next(one.value for one in acted if one.value is not None)
    return f"# events: {{{key(value)}: {{grade: 1}}}} # with the feedback log above"


def sentence(acted: Sequence[ActedColumn], *, can_be_read: bool) -> str:
    """What to do about the columns."""
    names = ", ".join(repr(one.name) for one in acted[:3])
    says = "says" if len(acted) == 1 else "say"
    if can_be_read:
        them = "it" if len(acted) == 1 else "them"
        do = f"the config has a feedback log as a comment that reads {them} from the same files"
    else:
        do = "write one row for each action (user_id, item_id, ts, event, request_id) to a feedback log"
    return f"{names} {says} what users did, and no metric uses it: feedback is rows with an event; {do}"
