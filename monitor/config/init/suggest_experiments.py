"""Suggests experiments for the columns that look like their arms."""

from __future__ import annotations

from collections.abc import Mapping

from scipy import stats

from monitor.config.init.guess import Guess
from monitor.config.init.profile import Column, Profile
from monitor.config.init.synonyms import plain
from monitor.config.init.template import comment, key, scalar
from monitor.core import columns as c
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import canonical, to_text
from monitor.logs.mapping import flat_types

_WORDS = frozenset(
    ("arm", "variant", "experiment", "exp", "ab", "abtest", "treatment", "bucket", "cohort", "policy", "test")
)
_MOST_ARMS = 10
_FEWEST_USERS = 50
_STICKY = 0.01  # the allowed share of users with two arms, among users with several rows
_CHANCE = 0.001


def suggest_experiments(
    engine: Engine, found: Profile, guesses: Mapping[str, Guess], names: Mapping[str, str]
) -> list[str]:
    """A line for each experiment; a comment unless its users are split evenly.

    Args:
        engine: has the sampled rows.
        found: the profile of the exposures.
        guesses: the columns that have a role.
        names: the monitor's names of the file's columns.
    """
    user = guesses.get(c.USER_ID)
    if user is None or not found.column(user.column).present:
        return []
    lines = []
    for column in found.usable:
        if _may_be_arm(column, guesses):
            name = names.get(column.name, column.name)
            if arms := _users(engine, found, {c.USER_ID: user.column, name: column.name}):
                lines.append(_line(name, arms))
    return lines


def _may_be_arm(column: Column, guesses: Mapping[str, Guess]) -> bool:
    if column.lists or column.is_time or not 2 <= column.distinct <= _MOST_ARMS:
        return False
    roles = [role for role, guess in guesses.items() if guess.column == column.name]
    if roles:
        return roles == [c.ARM]
    return not column.is_path and bool(_WORDS & set(plain(column.name).split("_")))


def _users(engine: Engine, found: Profile, columns: dict[str, str]) -> dict[str, int]:
    """The users of each arm; empty if users change their arms, or are too few.

    The rows are read as the monitor reads them, so that the split names the arms as it does.

    Args:
        columns: the monitor's name -> the file's column, of the user and of the arm.
    """
    user, arm = columns
    rows = engine.backend.table(found.table).select(*columns.values())
    settings = found.settings.model_copy(update={"columns": columns})
    further = None if found.shape.is_typed else flat_types(found.shape.types)
    rows = canonical(rows, c.REQUESTS, settings, {}, further=further)  # exposures without their items
    rows = rows.select(who=rows[user], arm=to_text(rows[arm]).nullif(""))
    rows = rows.filter(rows.who.notnull(), rows.arm.notnull())
    people = rows.group_by("who").aggregate(arms=rows.arm.nunique(), arm=rows.arm.min(), n=rows.count())
    several = people.filter(people.n > 1)
    mixed = several.aggregate(n=several.count(), mixed=(several.arms > 1).sum()).execute().iloc[0]
    if mixed["n"] and mixed["mixed"] > _STICKY * mixed["n"]:
        return {}
    counts = people.group_by("arm").aggregate(n=people.count()).order_by("arm").execute()
    arms = {str(row["arm"]): int(row["n"]) for row in counts.to_dict("records")}
    return arms if sum(arms.values()) >= _FEWEST_USERS and len(arms) > 1 else {}


def _line(name: str, arms: Mapping[str, int]) -> str:
    users = ", ".join(f"{arm}: {count:,}" for arm, count in arms.items())
    even = stats.chisquare(list(arms.values())).pvalue >= _CHANCE
    shares = ", ".join(f"{key(arm)}: {1 if even else count}" for arm, count in arms.items())
    slug = "-".join(plain(name).split("_")) or "experiment"
    settings = f"- {{name: {scalar(slug[:40])}, column: {scalar(name)}, split: {{{shares}}}}}"
    if even:
        why = f"a guess: one arm for each user, and about as many users in each ({users})"
        return f"{settings}{comment(why)}"
    why = f"the users are not split evenly ({users}); write the intended split"
    return f"# {settings}{comment(why)}"
