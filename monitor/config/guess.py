"""Which column of a log is what: by its name, and by whether its values can be that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.checks.settings import sliced_column
from monitor.config.profile import Column, Profile
from monitor.config.synonyms import likeness
from monitor.logs import columns as c

SURE, LIKELY, GUESS = "sure", "likely", "a guess"
_FEW = 50  # values that a scene, a model or an arm may have


@dataclass(frozen=True, slots=True)
class Guess:
    """One column of ours, the file's column for it, how sure that is, and why."""

    role: str
    column: str
    sureness: str
    why: str


def guess_columns(log: str, profile: Profile, table: ir.Table) -> dict[str, Guess]:
    """The file's column for each of ours that one was found for, the surest first.

    Args:
        log: exposures, feedback, catalog or users.
        profile: what the columns hold.
        table: the sampled rows.
    """
    usable = [one for one in profile.columns if one.readable and one.present]
    scored = sorted(
        (
            (likeness(one.name, role), role, one)
            for role in c.TYPES[log]
            for one in usable
            if likeness(one.name, role) > 0 and _can_be(role, one, profile)
        ),
        key=lambda found: -found[0],
    )
    guesses: dict[str, Guess] = {}
    taken: set[str] = set()
    for likely, role, column in scored:
        if role not in guesses and column.name not in taken:
            sureness = SURE if likely >= 0.9 else LIKELY if likely >= 0.6 else GUESS
            guesses[role] = Guess(role, column.name, sureness, _fits(role, column))
            taken.add(column.name)
    if log == c.EXPOSURES:
        for role, find in _BY_CONTENT:
            if role not in guesses:
                rest = [one for one in usable if one.name not in taken]
                found = find(rest, guesses, profile, table)
                if found is not None:
                    guesses[role] = found
                    taken.add(found.column)
    return {role: guesses[role] for role in c.TYPES[log] if role in guesses}


def _can_be(role: str, column: Column, profile: Profile) -> bool:
    """Whether the values do not contradict the role."""
    kind = next((kinds[role] for kinds in c.TYPES.values() if role in kinds), "text")
    if column.lists and role not in (
        c.ITEM_ID,
        c.POSITION,
        c.SCORE,
        c.PROPENSITY,
        c.CATEGORY,
        c.TAGS,
        c.VECTOR,
    ):
        return False
    match role:
        case c.TS | c.CREATED_AT:
            return column.is_time
        case c.POSITION:
            return column.whole >= 0.99 and _between(column, 0, 100_000) and column.epoch_unit is None
        case c.PROPENSITY:
            return column.in_unit_interval
        case c.SCENE | c.MODEL | c.ARM | c.EVENT:
            return column.distinct <= _FEW and column.distinct < max(2, profile.rows)
        case c.VECTOR:
            return column.lists and column.numbers >= 0.99
    if role == c.ITEM_ID and column.packed > 0.5:
        return False
    if kind == "id":
        fraction = column.dtype.startswith(("float", "decimal")) and column.whole < 1
        return not column.is_time and not fraction and column.dtype not in ("boolean", "date")
    return column.numbers >= 0.95 if kind == "number" else True


def _between(column: Column, low: float, high: float) -> bool:
    return (
        column.lowest is not None
        and column.highest is not None
        and low <= column.lowest
        and column.highest <= high
    )


def _fits(role: str, column: Column) -> str:
    """What speaks for the column beside its name."""
    if role in (c.TS, c.CREATED_AT):
        unit = column.epoch_unit
        return f"counts {unit} since 1970" if unit else "its values are times"
    if role in (c.POSITION, c.SCORE, c.PROPENSITY, c.VALUE) and column.lowest is not None:
        return f"numbers from {column.lowest:g} to {column.highest:g}"
    return f"{column.distinct:,} different value{'' if column.distinct == 1 else 's'}"


Finder = Callable[[list[Column], Mapping[str, Guess], Profile, ir.Table], Guess | None]


def _time(rest: list[Column], _: Mapping[str, Guess], __: Profile, ___: ir.Table) -> Guess | None:
    times = [one for one in rest if one.times >= 0.99 and not one.lists]
    times = times or [
        one for one in rest if one.epoch_unit is not None and one.distinct > 1 and not one.lists
    ]
    if not times:
        return None
    best = max(times, key=lambda one: one.distinct)
    alone = "the only column of times" if len(times) == 1 else "of several columns of times the finest"
    return Guess(c.TS, best.name, LIKELY if len(times) == 1 else GUESS, alone)


def _item(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    lists = [one for one in rest if one.lists and _looks_like_id(one)]
    if lists:
        best = max(lists, key=lambda one: one.distinct)
        return Guess(c.ITEM_ID, best.name, LIKELY if len(lists) == 1 else GUESS, "a list of ids in every row")
    if c.REQUEST_ID not in known:
        return None
    request = known[c.REQUEST_ID].column
    ids = [one for one in rest if _looks_like_id(one) and not one.lists and _varies(table, request, one.name)]
    if not ids:
        return None
    best = max(ids, key=lambda one: one.distinct)
    return Guess(c.ITEM_ID, best.name, GUESS, "ids that differ from row to row of a request")


def _request(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    """A column of which each value has one time, and several rows."""
    if c.TS not in known:
        return None
    for one in sorted(rest, key=lambda one: -one.distinct):
        if one.lists or not _looks_like_id(one):
            continue
        rows = int(table[one.name].count().execute())
        if one.distinct < rows and one.distinct > 1 and not _varies(table, one.name, known[c.TS].column):
            return Guess(c.REQUEST_ID, one.name, GUESS, "the rows of each of its values have one time")
    return None


def _user(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    if c.REQUEST_ID not in known:
        return None
    request = known[c.REQUEST_ID].column
    requests = int(table[request].nunique().execute())
    for one in sorted(rest, key=lambda one: -one.distinct):
        if one.lists or not _looks_like_id(one) or not _FEW < one.distinct <= requests:
            continue
        if not _varies(table, request, one.name):
            return Guess(c.USER_ID, one.name, GUESS, "ids that stay the same within a request")
    return None


def _position(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    if c.REQUEST_ID not in known:
        return None
    request = known[c.REQUEST_ID].column
    for one in rest:
        if one.lists or one.whole < 1 or not _between(one, 0, 10_000):
            continue
        place = table[one.name].try_cast("int64")
        lists = table.mutate(place=place).group_by(request).aggregate(
            n=lambda t: t.count(), low=lambda t: t.place.min(), high=lambda t: t.place.max(),
            different=lambda t: t.place.nunique(),
        )  # fmt: skip
        several = lists.filter(lists.n > 1)
        good = (several.different == several.n) & (several.high - several.low + 1 == several.n)
        found = several.aggregate(n=several.count(), good=good.sum()).execute().iloc[0]
        if found["n"] and found["good"] >= 0.95 * found["n"]:
            return Guess(c.POSITION, one.name, LIKELY, "counts the rows of a request without a gap")
    return None


def _score(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    if c.REQUEST_ID not in known:
        return None
    request = known[c.REQUEST_ID].column
    broken = [one for one in rest if one.numbers >= 0.95 and one.whole < 0.5 and not one.is_time]
    broken = [one for one in broken if one.lists or _varies(table, request, one.name)]
    if len(broken) != 1:
        return None
    return Guess(
        c.SCORE, broken[0].name, GUESS, "the only numbers with fractions that differ within a request"
    )


_BY_CONTENT: tuple[tuple[str, Finder], ...] = (
    (c.TS, _time),
    (c.REQUEST_ID, _request),
    (c.ITEM_ID, _item),
    (c.USER_ID, _user),
    (c.POSITION, _position),
    (c.SCORE, _score),
)


def _looks_like_id(column: Column) -> bool:
    if column.is_time or column.packed > 0.5 or column.distinct < 2 or column.dtype in ("boolean", "date"):
        return False
    return column.numbers < 0.5 or column.whole == 1


def _varies(table: ir.Table, key: str, column: str) -> bool:
    """Whether a column has several values within more than a hundredth of the groups of the key."""
    rows = table.filter(table[key].notnull()).select(key=table[key], value=table[column])
    counted = rows.group_by("key").aggregate(kinds=rows.value.nunique(), n=rows.count())
    several = counted.filter(counted.n > 1)
    found = several.aggregate(n=several.count(), varied=(several.kinds > 1).sum()).execute().iloc[0]
    return bool(found["n"]) and found["varied"] > 0.01 * found["n"]


def slice_columns(profile: Profile, guesses: Mapping[str, Guess]) -> list[tuple[str, Column]]:
    """Columns of few values that the metrics could be sliced by: ours first, by the name to use."""
    ours = {one.column: role for role, one in guesses.items()}
    found = []
    for column in profile.columns:
        role = ours.get(column.name, column.name)
        if column.name in ours and role not in (c.SCENE, c.MODEL, c.ARM):
            continue
        if not column.readable or column.lists or column.is_time or not 2 <= column.distinct <= 20:
            continue
        if column.distinct * 20 > profile.rows or (column.numbers > 0.5 and column.whole < 1):
            continue
        if role.lower() in _reserved() and column.name not in ours:
            continue
        if sliced_column(role) != (c.EXPOSURES, role):  # a name that says something else in slices.by
            continue
        found.append((role, column))
    order = (c.SCENE, c.MODEL, c.ARM)
    return sorted(found, key=lambda one: order.index(one[0]) if one[0] in order else len(order))


def time_settings(found: Profile, guesses: Mapping[str, Guess]) -> list[tuple[str, str, str]]:
    """How the times are to be read: the key, its value, and why."""
    role = c.TS if c.TS in guesses else c.CREATED_AT
    if role not in guesses:
        return []
    column = found.column(guesses[role].column)
    if column.epoch_unit is not None:
        size = f"{column.lowest:.0f} to {column.highest:.0f}"
        return [("timestamp_unit", column.epoch_unit, f"sure: {size} counted so lies in this century")]
    if column.offsets >= 0.95:
        return [("timezone", "UTC", "the times carry their offset, so this does not matter")]
    return [("timezone", "UTC", f"{GUESS}: the times carry no offset; if they are local, as Europe/Berlin")]


def _reserved() -> Iterable[str]:
    return {name for names in c.TYPES.values() for name in names}
