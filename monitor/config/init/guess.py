"""Which column of a log is what: by its name, and by whether its values can be that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.config.init.profile import Column, Profile
from monitor.config.init.synonyms import ACTION_WORDS, likeness, plain
from monitor.core import columns as c
from monitor.core.record_path import parse
from monitor.settings.recommender import sliced_column

SURE, LIKELY, GUESS = "sure", "likely", "a guess"
_OF_AN_ITEM = (c.POSITION, c.SCORE, c.PROPENSITY)
EMPTY = "TODO: this column is empty in every sampled row"
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
    usable = profile.usable
    guesses: dict[str, Guess] = {}
    taken: set[str] = set()

    def take(guess: Guess) -> None:
        guesses[guess.role] = guess
        taken.add(guess.column)

    for likely, role, column in _by_name(log, usable, profile):
        if role not in guesses and column.name not in taken:
            sureness = SURE if likely >= 0.9 else LIKELY if likely >= 0.6 else GUESS
            take(Guess(role, column.name, sureness, _fits(role, column, profile)))
    empty = [one for one in profile.columns if one.readable and not one.present and not one.lists]
    for role in c.REQUIRED[log]:
        named = [one for one in empty if _sounds_like(one, role) > 0 and one.name not in taken]
        if role not in guesses and named:
            best = max(named, key=lambda one: _sounds_like(one, role))
            take(Guess(role, best.name, GUESS, EMPTY))
    for role, find in _BY_CONTENT.get(log, ()):
        if role not in guesses:
            rest = [one for one in usable if one.name not in taken]
            if (found := find(rest, guesses, profile, table)) is not None:
                take(found)
    _of_one_list(guesses, profile)
    return {role: guesses[role] for role in c.TYPES[log] if role in guesses}


def _of_one_list(guesses: dict[str, Guess], profile: Profile) -> None:
    """Leave out lists that are not those of the items: their values belong to no item."""
    listings = {role: profile.column(guess.column).listing for role, guess in guesses.items()}
    lead = listings[c.ITEM_ID] if c.ITEM_ID in listings else next(filter(None, listings.values()), None)
    for role, listing in listings.items():
        if listing is not None and listing != lead and role in (c.ITEM_ID, *_OF_AN_ITEM):
            del guesses[role]


def _by_name(log: str, usable: Sequence[Column], profile: Profile) -> list[tuple[float, str, Column]]:
    """Columns whose names sound like a role that their values can have, the likeliest first."""
    scored = [
        (likely, role, one)
        for role in c.TYPES[log]
        for one in usable
        if (likely := _sounds_like(one, role)) > 0 and _can_be(log, role, one, profile)
    ]
    scored.sort(key=lambda found: -found[0])
    item = next((one for _, role, one in scored if role == c.ITEM_ID), None)
    if log != c.EXPOSURES or item is None:
        return scored
    return [found for found in scored if found[2].listing in (None, item.listing)]


def _sounds_like(column: Column, role: str) -> float:
    """The likeness of a name; of a path, `recs[].iid` or `user.id`, of its last field or of the whole."""
    if not column.is_path:
        return likeness(column.name, role)
    fields = parse(column.name).fields
    whole = "_".join(plain(one).removesuffix("s") for one in fields)
    return max(0.97 * likeness(fields[-1], role), 0.97 * likeness(whole, role))


def _can_be(log: str, role: str, column: Column, profile: Profile) -> bool:
    """Whether the values do not contradict the role."""
    kind = next((kinds[role] for kinds in c.TYPES.values() if role in kinds), "text")
    listed = (c.ITEM_ID, *_OF_AN_ITEM) if log == c.EXPOSURES else (c.CATEGORY, c.TAGS, c.VECTOR)
    if column.lists and role not in listed:
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
    if role == c.ITEM_ID and holds_labels(column):
        return False
    if kind == "id":
        if column.json > 0.5:
            return False
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


def _fits(role: str, column: Column, profile: Profile) -> str:
    """What speaks for the column beside its name, and how many rows have no value in it."""
    empty = profile.empty(column)
    lacking = f"; empty in {empty:.1%} of the rows" if empty >= 0.0005 else ""
    return _values(role, column) + lacking


def _values(role: str, column: Column) -> str:
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
    alone = "the only time column" if len(times) == 1 else "the finest of several time columns"
    return Guess(c.TS, best.name, LIKELY if len(times) == 1 else GUESS, alone)


def _item(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    lists = [one for one in rest if one.lists and looks_like_id(one)]
    if lists:
        best = max(lists, key=lambda one: one.distinct)
        return Guess(c.ITEM_ID, best.name, LIKELY if len(lists) == 1 else GUESS, "a list of ids in every row")
    if c.REQUEST_ID not in known:
        return None
    request = known[c.REQUEST_ID].column
    ids = [one for one in rest if looks_like_id(one) and not one.lists and _varies(table, request, one.name)]
    if not ids:
        return None
    best = max(ids, key=lambda one: one.distinct)
    return Guess(c.ITEM_ID, best.name, GUESS, "ids that differ from row to row of a request")


def _request(
    rest: list[Column], known: Mapping[str, Guess], profile: Profile, table: ir.Table
) -> Guess | None:
    """A column of which each value has one time, and several rows."""
    if c.TS not in known:
        return None
    for one in sorted(rest, key=lambda one: -one.distinct):
        if one.lists or not looks_like_id(one):
            continue
        rows = int(table[one.name].count().execute())
        listed = c.ITEM_ID in known and profile.column(known[c.ITEM_ID].column).lists
        if listed and one.distinct == rows == profile.rows:
            return Guess(
                c.REQUEST_ID, one.name, LIKELY, "differs in every row, and each row holds a list of items"
            )
        if one.distinct < rows and one.distinct > 1 and not _varies(table, one.name, known[c.TS].column):
            return Guess(c.REQUEST_ID, one.name, GUESS, "all rows with the same value have the same time")
    return None


def _user(rest: list[Column], known: Mapping[str, Guess], _: Profile, table: ir.Table) -> Guess | None:
    if c.REQUEST_ID not in known:
        return None
    request = known[c.REQUEST_ID].column
    requests = int(table[request].nunique().execute())
    for one in sorted(rest, key=lambda one: -one.distinct):
        if one.lists or not looks_like_id(one) or not _FEW < one.distinct <= requests:
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


def _event(rest: list[Column], _: Mapping[str, Guess], __: Profile, table: ir.Table) -> Guess | None:
    """A column of few texts, one of which means an action."""
    for one in rest:
        if one.lists or one.numbers > 0.5 or one.is_time or not 1 <= one.distinct <= _FEW:
            continue
        words = set(plain(" ".join(values_of(table, one.name))).split("_"))
        if words & ACTION_WORDS:
            return Guess(c.EVENT, one.name, LIKELY, "its values name actions")
    return None


def values_of(table: ir.Table, column: str) -> list[str]:
    """The most frequent values of a column, as texts."""
    text = table[column].cast("string")
    counts = table.filter(text.notnull()).group_by(value=text).aggregate(n=lambda t: t.count())
    found = counts.order_by(counts.n.desc(), counts.value).limit(_FEW).execute()
    return [str(value) for value in found["value"]]


_BY_CONTENT: dict[str, tuple[tuple[str, Finder], ...]] = {
    c.EXPOSURES: (
        (c.TS, _time),
        (c.REQUEST_ID, _request),
        (c.ITEM_ID, _item),
        (c.USER_ID, _user),
        (c.POSITION, _position),
        (c.SCORE, _score),
    ),
    c.FEEDBACK: ((c.TS, _time), (c.EVENT, _event)),
}


def holds_labels(column: Column) -> bool:
    """Whether the values are an item and a label in one text, such as N123-0.

    >>> holds_labels(Column("impressions", "string", labelled=1.0, distinct=90))
    True
    """
    return column.labelled > 0.95 and column.distinct > 2


def looks_like_id(column: Column) -> bool:
    """Whether the values can be ids."""
    if column.is_time or max(column.other_dates, column.json) > 0.5 or column.dtype in ("boolean", "date"):
        return False
    if column.distinct < 2 or holds_labels(column):
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
        if column.is_path and column.name not in ours:
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


def list_settings(found: Profile, guesses: Mapping[str, Guess]) -> list[tuple[str, str, str]]:
    """How lists that are written as texts are to be split: the key, its value, and why."""
    for guess in guesses.values():
        separator = found.column(guess.column).separator
        if separator is not None:
            return [("list_separator", separator, f"{guess.column} holds several values in one text")]
    return []


def format_settings(found: Profile) -> list[tuple[str, str, str]]:
    """The format, where the names of the files do not say it: the key, its value, and why."""
    if found.settings.format == "auto":
        return []
    return [
        (
            "format",
            found.settings.format,
            "detected from the content of the files, as their names do not show it",
        )
    ]


def time_settings(found: Profile, guesses: Mapping[str, Guess]) -> list[tuple[str, str, str]]:
    """How the times are to be read: the key, its value, and why."""
    role = c.TS if c.TS in guesses else c.CREATED_AT
    if role not in guesses or guesses[role].why == EMPTY:
        return []
    column = found.column(guesses[role].column)
    if column.epoch_unit is not None:
        size = f"{column.lowest:.0f} to {column.highest:.0f}"
        return [
            ("timestamp_unit", column.epoch_unit, f"certain: only in this unit {size} lies in this century")
        ]
    if column.offsets >= 0.95:
        return [("timezone", "UTC", "the times carry their offset, so this does not matter")]
    return [("timezone", "UTC", f"{GUESS}: the times carry no offset; if they are local, as Europe/Berlin")]


def _reserved() -> Iterable[str]:
    return {name for names in c.TYPES.values() for name in names}
