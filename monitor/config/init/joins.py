"""Finds the columns by which two logs join, and the joins that find nothing, by the values in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.config.init.guess import GUESS, LIKELY, Guess, looks_like_id
from monitor.config.init.profile import Profile
from monitor.core import columns as c
from monitor.core.text import visible
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import identifier

_FEWEST = 10  # values in common: fewer positions or small numbers agree by chance
_JOINS = 0.5
_SOME = 0.01
_SAME_GROUPS = 1.01
_MOST_COLUMNS = 12
_ALIKE = 0.5  # of the smaller column's values, once both are written alike
_SHOWN = 30
_WRITINGS: Mapping[str, Callable[[ir.StringValue], ir.Value]] = {
    "leading zeros": lambda text: text.re_replace(r"^0+([0-9])", r"\1"),
    "case or blanks": lambda text: text.strip().lower(),
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of two logs: its columns and their guessed roles."""

    profile: Profile
    guesses: Mapping[str, Guess]

    def free(self) -> list[str]:
        """Columns of ids that have no role yet."""
        taken = {guess.column for guess in self.guesses.values()}
        return [
            one.name
            for one in self.profile.usable
            if one.name not in taken and looks_like_id(one) and one.distinct >= _FEWEST
        ]

    def column(self, role: str) -> str | None:
        """The column of a role, if it holds values."""
        guess = self.guesses.get(role)
        return guess.column if guess and self.profile.column(guess.column).present else None


@dataclass(frozen=True, slots=True)
class SharedIds:
    """How many distinct values two columns have, and how many both have."""

    left: int
    right: int
    common: int

    @property
    def of_fewer(self) -> float:
        """The values in common, as a share of the column with fewer values."""
        fewer = min(self.left, self.right)
        return self.common / fewer if fewer else 0.0

    @property
    def likeness(self) -> float:
        """The values in common, as a share of all values (Jaccard)."""
        return self.common / max(self.left + self.right - self.common, 1)


class Joins:
    """Counts the values that two columns have in common; caches the values of each column."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tables: dict[tuple[str, str], ir.Table] = {}

    def shared(self, left: Profile, one: str, right: Profile, other: str) -> SharedIds:
        """How many values two columns share, compared as texts."""
        values, others = self.values(left, one), self.values(right, other)
        common = values.semi_join(others, "v").count()
        counts = [int(count.execute()) for count in (values.count(), others.count(), common)]
        return SharedIds(*counts)

    def match(self, role: str, left: Side, right: Side) -> tuple[Guess | None, Guess | None]:
        """A better column of a role for each log, None to keep the guess by name.

        Columns guessed by name stay if they join. Else columns are compared by their values. A clear name of
        the exposures wins, unless the other column groups the same rows: requests must not become sessions
        because the actions name only their session.
        """
        one, other = left.column(role), right.column(role)
        if one and other and self.shared(left.profile, one, right.profile, other).of_fewer >= _SOME:
            return None, None
        instead = [name for name in left.free() if self._may_be(left, role, name)]
        for lefts, rights in (
            ([one] if one else instead, [other] if other else right.free()),
            ([one] if one else [], right.free()),
            (instead, [other] if other else []),
        ):
            if best := self._best(left.profile, lefts, right.profile, rights):
                mine, theirs, seen = best
                why = f"{seen.of_fewer:.0%} of its values are also in"
                better = Guess(role, mine, LIKELY, f"{why} {theirs} of the other log")
                others = Guess(role, theirs, LIKELY, f"{why} {mine} of the exposures")
                return (None if mine == one else better, None if theirs == other else others)
        return None, None

    def _may_be(self, side: Side, role: str, name: str) -> bool:
        """Whether a column may take over a role from the column guessed for it."""
        known = side.guesses.get(role)
        if known is None or known.sureness == GUESS or side.column(role) is None:
            return True
        rows = self._engine.backend.table(side.profile.table)
        if rows[known.column].type().is_array() or rows[name].type().is_array():
            return True
        pairs = rows.select(one=rows[known.column], other=rows[name]).drop_null().distinct()
        found = pairs.aggregate(n=pairs.count(), one=pairs.one.nunique(), other=pairs.other.nunique())
        row = found.execute().iloc[0]
        return bool(row["n"] <= _SAME_GROUPS * min(row["one"], row["other"]))

    def _best(
        self, left: Profile, lefts: Sequence[str], right: Profile, rights: Sequence[str]
    ) -> tuple[str, str, SharedIds] | None:
        pairs = [
            (one, other, self.shared(left, one, right, other))
            for one in lefts[:_MOST_COLUMNS]
            for other in rights[:_MOST_COLUMNS]
        ]
        joining = [
            pair for pair in pairs if pair[2].common >= _FEWEST and pair[2].of_fewer >= _JOINS
        ]  # fmt: skip
        return max(joining, key=lambda pair: (pair[2].likeness, pair[2].common), default=None)

    def values(self, profile: Profile, column: str) -> ir.Table:
        """The distinct values of a column, as texts."""
        place = (profile.table, column)
        if place not in self._tables:
            value = self._engine.backend.table(profile.table)[column]
            value = value.unnest() if value.type().is_array() else value
            ids = value.name("v").as_table()
            text = ids.select(v=identifier(ids.v, "string"))
            rows = text.filter(text.v.notnull()).distinct()
            self._tables[place] = self._engine.create(f"values_{len(self._tables)}_{profile.table}", rows)
        return self._tables[place]


def match_columns(joins: Joins, roles: Sequence[str], left: Side, right: Side) -> tuple[Side, Side]:
    """Both logs, with the columns of these roles corrected by their values."""
    for role in roles:
        mine, theirs = joins.match(role, left, right)
        if mine:
            left = Side(left.profile, _with(left.guesses, mine, c.EXPOSURES))
        if theirs:
            right = Side(right.profile, {**right.guesses, role: theirs})
    return left, right


def _with(guesses: Mapping[str, Guess], guess: Guess, log: str) -> dict[str, Guess]:
    found = {**guesses, guess.role: guess}
    return {role: found[role] for role in c.TYPES[log] if role in found}


@dataclass(frozen=True, slots=True)
class EmptyJoin:
    """A column of a log that has no value in common with the exposures' column of the same role."""

    role: str
    column: str
    theirs: str
    why: str

    def __str__(self) -> str:
        names = [repr(visible(name, _SHOWN)) for name in (self.column, self.theirs)]
        return f"no id of its {names[0]} is in {names[1]} of the exposures: {self.why}"


def empty_joins(joins: Joins, roles: Sequence[str], mine: Side, theirs: Side) -> tuple[EmptyJoin, ...]:
    """The joins of the exposures (`mine`) with another log, by these roles, that are certainly empty.

    Samples of two logs that join may have no value in common. So incomplete samples count only if the ids
    differ in how they are written.
    """
    found = []
    complete = mine.profile.complete and theirs.profile.complete
    for role in roles:
        one, other = mine.column(role), theirs.column(role)
        if one is None or other is None:
            continue
        seen = joins.shared(mine.profile, one, theirs.profile, other)
        if seen.common or not seen.left or not seen.right:
            continue
        shown, there = joins.values(mine.profile, one), joins.values(theirs.profile, other)
        difference = _difference(shown, there)
        if not complete and difference is None:
            continue
        examples = f"{_example(there, shown, difference)} here, {_example(shown, there, difference)} there"
        why = examples if difference is None else f"they differ in {difference} ({examples})"
        found.append(EmptyJoin(role, other, one, why))
    return tuple(found)


def joins_nothing(log: str, mine: Side, theirs: Side, empty: Sequence[EmptyJoin]) -> EmptyJoin | None:
    """The empty join that keeps every row of a log from joining the exposures; None if rows can join."""
    lost = {one.role: one for one in empty}
    if log != c.FEEDBACK:
        return next(iter(lost.values()), None)
    if c.ITEM_ID in lost or c.USER_ID not in lost:
        return lost.get(c.ITEM_ID)
    request = mine.column(c.REQUEST_ID) and theirs.column(c.REQUEST_ID)
    return None if request and c.REQUEST_ID not in lost else lost[c.USER_ID]


def _difference(one: ir.Table, other: ir.Table) -> str | None:
    """The way of writing that makes most values of two columns differ; None if there is none."""
    for what, key in _WRITINGS.items():
        left, right = (table.select(v=key(table.v)).distinct() for table in (one, other))
        common = int(left.semi_join(right, "v").count().execute())
        fewer = min(int(left.count().execute()), int(right.count().execute()))
        if common >= _ALIKE * fewer:
            return what
    return None


def _example(values: ir.Table, others: ir.Table, difference: str | None) -> str:
    """An example value; if the writing differs, one that the other column has in its own writing."""
    if difference is not None:
        key = _WRITINGS[difference]
        values = values.mutate(k=key(values.v)).semi_join(others.select(k=key(others.v)), "k")
        values = values.order_by("k", "v")
    else:
        values = values.order_by("v")
    return repr(visible(str(values.limit(1).execute()["v"].iloc[0]), _SHOWN))
