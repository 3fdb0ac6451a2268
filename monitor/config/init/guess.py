"""Guesses which column of a log has which role: by its name, and by its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.config.init.profile import Column, Profile
from monitor.config.init.synonyms import ACTION_WORDS, likeness, plain
from monitor.core import columns as c
from monitor.core.record_path import parse
from monitor.core.text import plural
from monitor.logs.canonical import to_text
from monitor.settings.recommender import sliced_column

SURE, LIKELY, GUESS = "sure", "likely", "a guess"
_OF_AN_ITEM = (c.POSITION, c.SCORE, c.PROPENSITY)
EMPTY = "TODO: this column is empty in every sampled row"
_FEW = 50  # values that a scene, a model or an arm may have


@dataclass(frozen=True, slots=True)
class Guess:
    """The file's column for one of ours, how sure that is, and why."""

    role: str
    column: str
    sureness: str
    why: str


def guess_columns(log: str, profile: Profile, table: ir.Table) -> dict[str, Guess]:
    """The guessed columns by role, in the order of `c.TYPES`.

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
            if (guess := find(_Finder(rest, guesses, profile, table))) is not None:
                take(guess)
    _of_one_list(guesses, profile)
    return {role: guesses[role] for role in c.TYPES[log] if role in guesses}


def _of_one_list(guesses: dict[str, Guess], profile: Profile) -> None:
    """Leave out lists other than the items' one: their values belong to no item."""
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
            return column.whole >= 0.99 and column.between(0, 100_000) and column.epoch_unit is None
        case c.PROPENSITY:
            return column.in_unit_interval
        case c.SCENE | c.MODEL | c.ARM | c.EVENT:
            return column.distinct <= _FEW and column.distinct < max(2, profile.rows)
        case c.VECTOR:
            return column.lists and column.numbers >= 0.99
    if kind == "id":
        fraction = column.dtype.startswith(("float", "decimal")) and column.whole < 1
        labelled = role == c.ITEM_ID and holds_labels(column)
        odd = fraction or labelled or column.is_time or column.json > 0.5
        return not odd and column.dtype not in ("boolean", "date")
    return column.numbers >= 0.95 if kind == "number" else True


def _fits(role: str, column: Column, profile: Profile) -> str:
    """What its values are, and how many rows have none."""
    empty = profile.empty(column)
    lacking = f"; empty in {empty:.1%} of the rows" if empty >= 0.0005 else ""
    return _values(role, column) + lacking


def _values(role: str, column: Column) -> str:
    if role in (c.TS, c.CREATED_AT):
        unit = column.epoch_unit
        return f"counts {unit} since 1970" if unit else "its values are times"
    if role in (c.POSITION, c.SCORE, c.PROPENSITY, c.VALUE) and column.lowest is not None:
        return f"numbers from {column.lowest:g} to {column.highest:g}"
    return plural(column.distinct, "different value")


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds the column of a role by its values, among the columns that have no role yet."""

    rest: list[Column]
    known: Mapping[str, Guess]
    profile: Profile
    table: ir.Table

    @property
    def request(self) -> str:
        return self.known[c.REQUEST_ID].column

    def ids(self) -> list[Column]:
        """The columns with one id a row, those with the most different ids first."""
        found = [one for one in self.rest if looks_like_id(one) and not one.lists]
        return sorted(found, key=lambda one: -one.distinct)

    def time(self) -> Guess | None:
        single = [one for one in self.rest if not one.lists]
        times = [one for one in single if one.times >= 0.99]
        times = times or [one for one in single if one.epoch_unit is not None and one.distinct > 1]
        if not times:
            return None
        finest = max(times, key=lambda one: one.distinct)
        if len(times) == 1:
            return Guess(c.TS, finest.name, LIKELY, "the only time column")
        return Guess(c.TS, finest.name, GUESS, "the finest of several time columns")

    def request_id(self) -> Guess | None:
        """A column whose values each have one time and several rows; of lists, one with a value a row."""
        if c.TS not in self.known:
            return None
        listed = c.ITEM_ID in self.known and self.profile.column(self.known[c.ITEM_ID].column).lists
        for one in self.ids():
            rows = int(self.table[one.name].count().execute())
            if listed and one.distinct == rows == self.profile.rows:
                why = "differs in every row, and each row holds a list of items"
                return Guess(c.REQUEST_ID, one.name, LIKELY, why)
            if 1 < one.distinct < rows and not _varies(self.table, one.name, self.known[c.TS].column):
                return Guess(c.REQUEST_ID, one.name, GUESS, "all rows with the same value have the same time")
        return None

    def item(self) -> Guess | None:
        lists = [one for one in self.rest if one.lists and looks_like_id(one)]
        if lists:
            best = max(lists, key=lambda one: one.distinct)
            sureness = LIKELY if len(lists) == 1 else GUESS
            return Guess(c.ITEM_ID, best.name, sureness, "a list of ids in every row")
        if c.REQUEST_ID not in self.known:
            return None
        for one in self.ids():
            if _varies(self.table, self.request, one.name):
                return Guess(c.ITEM_ID, one.name, GUESS, "ids that differ from row to row of a request")
        return None

    def user(self) -> Guess | None:
        if c.REQUEST_ID not in self.known:
            return None
        requests = int(self.table[self.request].nunique().execute())
        for one in self.ids():
            if _FEW < one.distinct <= requests and not _varies(self.table, self.request, one.name):
                return Guess(c.USER_ID, one.name, GUESS, "ids that stay the same within a request")
        return None

    def position(self) -> Guess | None:
        if c.REQUEST_ID not in self.known:
            return None
        for one in self.rest:
            if one.lists or one.whole < 1 or not one.between(0, 10_000):
                continue
            rows = self.table.mutate(place=self.table[one.name].try_cast("int64"))
            lists = rows.group_by(self.request).aggregate(
                n=rows.count(), low=rows.place.min(), high=rows.place.max(), different=rows.place.nunique()
            )
            several = lists.filter(lists.n > 1)
            good = (several.different == several.n) & (several.high - several.low + 1 == several.n)
            found = several.aggregate(n=several.count(), good=good.sum()).execute().iloc[0]
            if found["n"] and found["good"] >= 0.95 * found["n"]:
                return Guess(c.POSITION, one.name, LIKELY, "counts the rows of a request without a gap")
        return None

    def score(self) -> Guess | None:
        if c.REQUEST_ID not in self.known:
            return None
        fractions = [one for one in self.rest if one.numbers >= 0.95 and one.whole < 0.5 and not one.is_time]
        fractions = [one for one in fractions if one.lists or _varies(self.table, self.request, one.name)]
        if len(fractions) != 1:
            return None
        why = "the only numbers with fractions that differ within a request"
        return Guess(c.SCORE, fractions[0].name, GUESS, why)

    def event(self) -> Guess | None:
        """A column with few texts, one of which means an action."""
        for one in self.rest:
            if one.lists or one.numbers > 0.5 or one.is_time or not 1 <= one.distinct <= _FEW:
                continue
            words = set(plain(" ".join(values_of(self.table, one.name))).split("_"))
            if words & ACTION_WORDS:
                return Guess(c.EVENT, one.name, LIKELY, "its values name actions")
        return None


_BY_CONTENT: dict[str, tuple[tuple[str, Callable[[_Finder], Guess | None]], ...]] = {
    c.EXPOSURES: (
        (c.TS, _Finder.time),
        (c.REQUEST_ID, _Finder.request_id),
        (c.ITEM_ID, _Finder.item),
        (c.USER_ID, _Finder.user),
        (c.POSITION, _Finder.position),
        (c.SCORE, _Finder.score),
    ),
    c.FEEDBACK: ((c.TS, _Finder.time), (c.EVENT, _Finder.event)),
}


def values_of(table: ir.Table, column: str) -> list[str]:
    """The most frequent values of a column, as texts."""
    text = to_text(table[column])
    counts = table.filter(text.notnull()).group_by(value=text).aggregate(n=lambda t: t.count())
    found = counts.order_by(counts.n.desc(), counts.value).limit(_FEW).execute()
    return [str(value) for value in found["value"]]


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
    """Columns of few values that the metrics could be sliced by, each with the name to use; ours first."""
    order = (c.SCENE, c.MODEL, c.ARM)
    reserved = {name for names in c.TYPES.values() for name in names}
    roles = {one.column: role for role, one in guesses.items()}
    found = []
    for column in profile.columns:
        name = roles.get(column.name, column.name)
        if column.name in roles:
            suitable = name in order
        else:
            suitable = not column.is_path and name.lower() not in reserved
        has_few = 2 <= column.distinct <= min(20, profile.rows / 20)
        single = column.readable and not column.lists and not column.is_time
        fractions = column.numbers > 0.5 and column.whole < 1
        # In slices.by, some names mean something else, such as `hour` or `users.plan`.
        is_plain = sliced_column(name) == (c.EXPOSURES, name)
        if suitable and has_few and single and not fractions and is_plain:
            found.append((name, column))
    return sorted(found, key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))


def list_settings(found: Profile, guesses: Mapping[str, Guess]) -> list[tuple[str, str, str]]:
    """The setting that splits lists written as texts: key, value, and why."""
    for guess in guesses.values():
        separator = found.column(guess.column).separator
        if separator is not None:
            return [("list_separator", separator, f"{guess.column} holds several values in one text")]
    return []


def format_settings(found: Profile) -> list[tuple[str, str, str]]:
    """The format, if the names of the files do not show it: key, value, and why."""
    if found.settings.format == "auto":
        return []
    if found.settings.is_table:
        return [("format", found.settings.format, "the table says which files in its folder count")]
    why = "detected from the content of the files, as their names do not show it"
    return [("format", found.settings.format, why)]


def time_settings(found: Profile, guesses: Mapping[str, Guess]) -> list[tuple[str, str, str]]:
    """The setting that times are read with: key, value, and why."""
    role = c.TS if c.TS in guesses else c.CREATED_AT
    if role not in guesses or guesses[role].why == EMPTY:
        return []
    column = found.column(guesses[role].column)
    if column.epoch_unit is not None:
        size = f"{column.lowest:.0f} to {column.highest:.0f}"
        why = f"certain: only in this unit {size} lies in this century"
        return [("timestamp_unit", column.epoch_unit, why)]
    if column.offsets >= 0.95:
        return [("timezone", "UTC", "the times carry their offset, so this does not matter")]
    return [("timezone", "UTC", f"{GUESS}: the times carry no offset; if they are local, as Europe/Berlin")]
