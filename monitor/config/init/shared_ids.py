"""Finds the columns of two logs that hold the same ids, by the values that they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ibis.expr.types as ir

from monitor.config.init.guess import GUESS, LIKELY, Guess, looks_like_id
from monitor.config.init.profile import Column, Profile
from monitor.core import columns as c
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import identifier

_FEWEST = 10  # values in common: positions and small numbers agree by chance
_JOINS = 0.5
_SOME = 0.01
_SAME_GROUPS = 1.01
_MOST_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Side:
    """One of two logs: what it holds, and what its columns were taken for."""

    profile: Profile
    guesses: Mapping[str, Guess]

    def free(self) -> list[str]:
        """Columns of ids that have no role yet."""
        taken = {one.column for one in self.guesses.values()}
        return [one.name for one in self.profile.usable if one.name not in taken and _could_join(one)]

    def column(self, role: str) -> str | None:
        """The column of a role, where it holds values."""
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
        """The share of the values in common, of the column that has fewer."""
        fewer = min(self.left, self.right)
        return self.common / fewer if fewer else 0.0

    @property
    def likeness(self) -> float:
        """The share of the values in common, of all values of both."""
        return self.common / max(self.left + self.right - self.common, 1)


class Joins:
    """Counts values in common, and keeps the values of a column for the next pair."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tables: dict[tuple[str, str], ir.Table] = {}

    def shared(self, left: Profile, one: str, right: Profile, other: str) -> SharedIds:
        """The values in common of a column of each log, compared as texts."""
        values, others = self.values(left, one), self.values(right, other)
        common = values.semi_join(others, "v").count()
        found = [int(count.execute()) for count in (values.count(), others.count(), common)]
        return SharedIds(*found)

    def match(self, role: str, left: Side, right: Side) -> tuple[Guess | None, Guess | None]:
        """The columns of a role in two logs, by their names where these join, else by their values.

        A name that says what a column of the exposures is wins, unless the other column groups the same rows:
        requests must not become sessions because the actions name only their session.

        Returns a guess for each side whose column has to change; None where nothing better was found.
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
                return (
                    None if mine == one else Guess(role, mine, LIKELY, f"{why} {theirs} of the other log"),
                    None
                    if theirs == other
                    else Guess(role, theirs, LIKELY, f"{why} {mine} of the exposures"),
                )
        return None, None

    def _may_be(self, side: Side, role: str, name: str) -> bool:
        """Whether a column may have the role of the one that was taken for it."""
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
        """The distinct values of a column, as the texts that its ids are read as."""
        place = (profile.table, column)
        if place not in self._tables:
            value = self._engine.backend.table(profile.table)[column]
            value = value.unnest() if value.type().is_array() else value
            ids = value.name("v").as_table()
            text = ids.select(v=identifier(ids.v, "string"))
            rows = text.filter(text.v.notnull()).distinct()
            self._tables[place] = self._engine.create(f"values_{len(self._tables)}_{profile.table}", rows)
        return self._tables[place]


def _could_join(column: Column) -> bool:
    return looks_like_id(column) and column.distinct >= _FEWEST


def match_columns(joins: Joins, roles: Sequence[str], left: Side, right: Side) -> tuple[Side, Side]:
    """Both logs with the columns of the roles that their values speak for."""
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
