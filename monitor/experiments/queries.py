"""Queries of experiments: users of a window, users since the experiment began, actions by arm.

Ids and arms are text, so that stored windows fit together even if the types in the log changed. A whole float
becomes the text of an integer. A row without a user, or with a null or NaN in the experiment's column, is not
in the experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import ARM, ITEM_ID, REQUEST_ID, TS, USER_ID, VALUE
from monitor.logs.canonical import to_text
from monitor.metrics.attribution import COUNT, VALUES, of_event, relevant
from monitor.metrics.shared import Shared
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.metrics import MetricSettings

FIRST: Final = "first"
USERS: Final = "users"
CHANGE: Final = "change"
SHOWN: Final = "shown"
AT: Final = "at"


def assigned(exposures: ir.Table, columns: Sequence[str], length: timedelta | None = None) -> ir.Table:
    """The distinct combinations of a user and the values of these columns, as text.

    Columns: user_id, `of_0`, `of_1`, ... in the order given; with a length of windows also `first`, the start
    of the row's window in seconds since 1970.
    """
    rows = _of_users(exposures)
    kept: dict[str, Any] = {USER_ID: rows[USER_ID]}
    kept |= {of_column(i): rows[name] for i, name in enumerate(columns)}
    if length is not None:
        seconds = int(length.total_seconds())
        at = rows[TS].epoch_seconds().cast("int64")
        kept[FIRST] = at - (at % seconds + seconds) % seconds
    few = rows.select(**kept).distinct()  # far fewer rows to turn into text
    return few.mutate(**{name: to_text(few[name]) for name in kept if name != FIRST}).distinct()


def _of_users(exposures: ir.Table) -> ir.Table:
    """The rows that have a user. A NaN is no id: pandas writes it for a missing number."""
    user = exposures[USER_ID]
    known = user.notnull() & ~user.isnan() if user.type().is_floating() else user.notnull()
    return exposures.filter(known)


def of_column(number: int) -> str:
    """The name of a column in `assigned`, by its number.

    >>> of_column(0)
    'of_0'
    """
    return f"of_{number}"


def in_arms(users: ir.Table, number: int, first: Any = None) -> ir.Table:
    """user_id, arm, first: the rows of `assigned` in the experiment of this column.

    `first` defaults to that of each row.
    """
    arm = users[of_column(number)]
    at = users[FIRST] if first is None else ibis.literal(first, "int64")
    return users.filter(arm.notnull()).select(USER_ID, **{ARM: arm, FIRST: at})


def once_each(kept: ir.Table) -> ir.Table:
    """Each stored user and arm once, with the first window."""
    return kept.aggregate(by=[USER_ID, ARM], **{FIRST: kept[FIRST].min()})


def by_user(pairs: ir.Table, arms: Sequence[str]) -> ir.Table:
    """One row for each user of `once_each`.

    `arms` is the number of arms, `arm` and `first` are the smallest, `unknown` is 1 if the split (`arms`)
    does not name one of them, else 0.
    """
    is_unknown = pairs[ARM].notin(list(arms)).cast("int64")
    return pairs.aggregate(
        by=USER_ID,
        arms=pairs.count(),
        unknown=is_unknown.max(),
        **{ARM: pairs[ARM].min(), FIRST: pairs[FIRST].min()},
    )


def mixed(users: ir.Table) -> ir.Table:
    """The users of `by_user` who were in more than one arm."""
    return users.filter(users.arms > 1).select(USER_ID)


def changes(pairs: ir.Table, users: ir.Table, arms: Sequence[str]) -> ir.Table:
    """The changes of the number of users in each arm: `arm`, `at`, `change`.

    A user joins an arm in the first window they are seen in it, and leaves it in the first window they are
    seen in a second arm. A user who is in two arms from the start never joins. Arms that the split does not
    name are null, because there may be very many.

    Args:
        pairs: each user and arm once, with `first`.
        users: the same by user.
        arms: the arms that the split names.
    """
    steady = users.filter(users.arms == 1)
    came = steady.aggregate(by=[ARM, FIRST], **{CHANGE: steady.count()})
    several = pairs.semi_join(mixed(users), USER_ID)
    in_turn = ibis.window(group_by=USER_ID, order_by=[several[FIRST], several[ARM]])
    several = several.mutate(place=ibis.row_number().over(in_turn), left=several[FIRST].lead().over(in_turn))
    for_a_while = several.filter(several.place == 0, several.left > several[FIRST])
    arrived = for_a_while.aggregate(by=[ARM, FIRST], **{CHANGE: for_a_while.count()})
    left = for_a_while.drop(FIRST).rename({FIRST: "left"})
    left = left.aggregate(by=[ARM, FIRST], **{CHANGE: -left.count()})
    columns = [ARM, FIRST, CHANGE]
    every = came.select(columns).union(arrived.select(columns), left.select(columns))
    named = ibis.ifelse(every[ARM].isin(list(arms)), every[ARM], ibis.null("string"))
    every = every.select(**{ARM: named, AT: every[FIRST], CHANGE: every[CHANGE]})
    return every.aggregate(by=[ARM, AT], **{CHANGE: every[CHANGE].sum()})


def totals(users: ir.Table) -> ir.Table:
    """One row: all `users`, those in several arms (`mixed`), those in an arm without a name (`unknown`)."""
    return users.aggregate(
        users=users.count(), mixed=(users.arms > 1).cast("int64").sum(), unknown=users.unknown.sum()
    )


def unknown_arms(pairs: ir.Table, arms: Sequence[str], limit: int) -> ir.Table:
    """The largest arms that the split does not name: `arm`, `users`."""
    rows = pairs.filter(pairs[ARM].notin(list(arms)))
    counts = rows.aggregate(by=ARM, **{USERS: rows.count()})
    return counts.order_by(ibis.desc(USERS), ARM).limit(limit)


def per_bucket(users: ir.Table, number: int, limit: int) -> ir.Table:
    """The users of a window by bucket, for at most `limit` buckets. Users in several are left out."""
    found = _only_one(users, [number])
    counts = found.aggregate(by=of_column(number), **{USERS: found.count()})
    return counts.order_by(of_column(number)).limit(limit)


def in_both(users: ir.Table, one: int, other: int, arms: Sequence[str], others: Sequence[str]) -> ir.Table:
    """The users of a window by the arms of two experiments (`of_*`), if they are in one arm of each."""
    found = _only_one(users, [one, other])
    here, there = of_column(one), of_column(other)
    found = found.filter(found[here].isin(list(arms)), found[there].isin(list(others)))
    return found.aggregate(by=[here, there], **{USERS: found.count()})


def _only_one(users: ir.Table, numbers: Sequence[int]) -> ir.Table:
    """The users with one value in each of these columns, nulls aside: user_id and the columns."""
    names = [of_column(number) for number in numbers]
    ends: dict[str, Any] = {}
    for name in names:
        ends |= {name: users[name].min(), f"last_{name}": users[name].max()}
    found = users.aggregate(by=USER_ID, **ends)
    # A null is not equal to itself, so this leaves out users without a value too.
    return found.filter([found[name] == found[f"last_{name}"] for name in names]).select(USER_ID, *names)


def arm_sums(
    shared: Shared,
    exposures: ir.Table,
    settings: MetricSettings,
    experiment: ExperimentSettings,
    columns: Sequence[str],
    left_out: ir.Table,
) -> ir.Table:
    """Sums over the users of each arm in the window; one row for each arm with users.

    Columns: `users`; `shown`, `shown_shown`: items shown, and the sum of their squares by user. For event i:
    `n_i`, `nn_i`: actions, and the sum of their squares by user; `ny_i`: sum of actions times items shown;
    `who_i`: users with an action; `value_i`, `vv_i`: the values of the actions, and their squares by user;
    `values_i`: the number of values.

    Args:
        exposures: those of `shared`, with all these columns.
        columns: of all experiments, so that the lists with actions are looked up once.
        left_out: the users that count in no arm.
    """
    users = _users(exposures, experiment).anti_join(left_out, USER_ID)
    users = users.filter(users[ARM].isin(list(experiment.arms)))
    acted = shared.once("acted_in_arms", None, lambda: _acted(shared, exposures, settings, columns))
    did = _did(acted, settings, columns.index(experiment.column))
    both = users.left_join(did, [USER_ID, ARM])
    numbers = range(len(settings.events))
    wanted = [of_event(column, i) for i in numbers for column in (COUNT, VALUE, VALUES)]
    both = both.select(
        **{ARM: both[ARM], SHOWN: both[SHOWN].cast("float64")},
        **{name: both[name].fill_null(0).cast("float64") for name in wanted},
    )
    shown = both[SHOWN]
    sums: dict[str, Any] = {USERS: both.count(), SHOWN: shown.sum(), "shown_shown": (shown * shown).sum()}
    for i in numbers:
        n, value = both[of_event(COUNT, i)], both[of_event(VALUE, i)]
        sums |= {
            f"n_{i}": n.sum(),
            f"nn_{i}": (n * n).sum(),
            f"ny_{i}": (n * shown).sum(),
            f"who_{i}": (n > 0).cast("int64").sum(),
            f"value_{i}": value.sum(),
            f"vv_{i}": (value * value).sum(),
            f"values_{i}": both[of_event(VALUES, i)].sum(),
        }
    return both.aggregate(by=ARM, **sums)


def _users(rows: ir.Table, experiment: ExperimentSettings) -> ir.Table:
    """Users and arms of the window, with the number of items `shown` to the user in the arm."""
    rows = _of_users(rows)
    rows = rows.filter(rows[experiment.column].notnull())
    rows = rows.select(**{USER_ID: rows[USER_ID], ARM: rows[experiment.column]}, item=rows[ITEM_ID])
    counts = rows.aggregate(by=[USER_ID, ARM], **{SHOWN: rows["item"].count()})
    return counts.mutate(**{name: to_text(counts[name]) for name in (USER_ID, ARM)})


def _did(acted: ir.Table, settings: MetricSettings, number: int) -> ir.Table:
    """user_id, arm, and the sums of the user's actions on items that lists of the experiment showed."""
    arm = acted[of_column(number)]
    rows = acted.filter(arm.notnull(), acted[USER_ID].notnull())
    rows = rows.rename({ARM: of_column(number)})
    wanted = [of_event(column, i) for i in range(len(settings.events)) for column in (COUNT, VALUE, VALUES)]
    return rows.aggregate(by=[USER_ID, ARM], **{name: rows[name].sum() for name in wanted})


def _acted(shared: Shared, exposures: ir.Table, settings: MetricSettings, columns: Sequence[str]) -> ir.Table:
    """The shown items with actions, with the user and the arms of the list."""
    found = relevant(shared, settings)
    found = found.filter(found[SHOWN] == 1)
    rows = exposures.semi_join(found, [REQUEST_ID, ITEM_ID])
    own: dict[str, Any] = {USER_ID: to_text(rows[USER_ID].min())}
    own |= {of_column(i): to_text(rows[name]).min() for i, name in enumerate(columns)}
    return rows.aggregate(by=[REQUEST_ID, ITEM_ID], **own).join(found, [REQUEST_ID, ITEM_ID])
