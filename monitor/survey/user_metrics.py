"""The metrics of single users, by the families that measure the whole: each user is a slice of one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

import ibis.expr.types as ir

from monitor.core.columns import REQUEST_ID, USER_ID
from monitor.core.results import Result
from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.metrics.measure import measure_slices
from monitor.metrics.shared import Shared
from monitor.settings.metrics import MetricSettings

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]
"""A metric and its labels."""

MOST_USERS: Final = 3_000
"""So many users of a kind are measured one by one; of more, these are drawn at random. See decision 0043."""

OF_ONE_USER: Final[Mapping[str, tuple[str, ...]]] = {
    "volume": ("requests",),
    "list_length": (),
    "failure": ("pv",),
    "update_rate": ("refresh",),
    "category_entropy": ("pv", "uv"),
    "intra_list_diversity": (),
    "novelty": (),
    "self_information": (),
    "average_popularity": (),
    "serendipity": (),
    "action_rate": ("pv", "exposure"),
    "precision": ("macro",),
    "recall": ("macro",),
    "ndcg": (),
    "average_precision": (),
    "user_auc": ("equal",),
    "completion": (),
}
"""The metrics that say something of one user, and the values of `by` that do; none: all but `user`."""

OF_NOVELTY: Final = ("novelty", "self_information", "average_popularity")
OF_SERENDIPITY: Final = ("serendipity",)
HELD_METRICS: Final = ("volume", "list_length")
"""How many lists a user has and how long they are: many other metrics depend on it."""

_OF_USERS: Final = ("user",)
"""Values of `by` that count users; of one user they are 0 or 1."""
_KEY, _DIMENSION = "__monitor_survey_user", "survey_user"
_Create = Callable[[str, ir.Table], ir.Table]


@dataclass(frozen=True, slots=True)
class UserValues:
    """The values of some users, and why a metric has none.

    Attributes:
        values: a series -> user id as text -> value.
        without: a series -> why it could not be measured.
    """

    values: dict[SeriesKey, dict[str, float]] = field(default_factory=dict)
    without: dict[SeriesKey, str] = field(default_factory=dict)


def measure_users(
    whole: Shared,
    settings: MetricSettings,
    users: ir.Table,
    names: Collection[str],
    create: _Create,
    lists: ir.Table | None = None,
) -> UserValues:
    """Measure metrics for each of some users.

    The past (`history`) stays that of all users: how popular an item is depends on everybody.

    Args:
        whole: the tables of the span.
        settings: of the metrics.
        users: user_id of those who are measured.
        names: the metrics.
        create: stores a table under a name.
        lists: request_id of the lists that count; None: all lists of these users.
    """
    theirs = whole.attempts.semi_join(users, USER_ID)  # `Shared` leaves out failed requests where it must
    mine = theirs if lists is None else theirs.semi_join(lists, REQUEST_ID)

    def of_theirs(name: str, table: ir.Table | None) -> ir.Table | None:
        return None if table is None else create(f"survey_{name}", table.semi_join(users, USER_ID))

    shared = Shared(
        create("survey_exposures", mine),
        catalog=whole.catalog,
        feedback=of_theirs("feedback", whole.feedback),
        responses=None if whole.feedback is None else of_theirs("responses", whole.responses),
        around=of_theirs("around", whole.around),
        history_user_items=whole.history_user_items,
        lasting_user_items=whole.lasting_user_items,
        history_counts=whole.history_counts,
        history_actions=whole.history_actions,
        materialise=lambda name, table: create(f"survey_of_users_{name}", table),
    )
    shared.add_key(_KEY, lambda rows: rows.mutate(**{_KEY: rows[USER_ID].cast("string")}))
    families = [
        family
        for family in FAMILIES
        if family.sliced and any(spec.name in names and spec.sliced for spec, _ in family.outputs)
    ]
    switched = settings.model_copy(
        update={"disable": (*settings.disable, *(name for name in SPECS if name not in names))}
    )
    found = UserValues()
    for family in families:
        if (why := family.reason_not(shared, settings)) is not None:
            own = {spec.name for spec, _ in family.outputs if spec.name in names}
            found.without.update({(name, ()): why for name in own if name not in settings.disable})
    for one in measure_slices(shared, switched, _DIMENSION, _KEY, families):
        if one.value is not None:
            found.values.setdefault(series_of(one), {})[one.labels["value"]] = one.value
        else:
            found.without.setdefault(series_of(one), one.detail)
    return UserValues(
        found.values, {series: why for series, why in found.without.items() if series not in found.values}
    )


def largest_k(settings: MetricSettings) -> MetricSettings:
    """The settings with the largest cut-off k alone: single users have few hits at a small one."""
    return settings.model_copy(update={"k": (max(settings.k),)})


def chosen(values: UserValues) -> UserValues:
    """The series of OF_ONE_USER."""

    def is_used(series: SeriesKey) -> bool:
        metric, by = series[0], dict(series[1]).get("by", "")
        if not series[1] and series in values.without:  # nothing is known of it but its name
            return True
        allowed = OF_ONE_USER[metric]
        return by in allowed if allowed else by not in _OF_USERS

    return UserValues(
        {series: one for series, one in values.values.items() if is_used(series)},
        {series: why for series, why in values.without.items() if is_used(series)},
    )


def series_of(result: Result) -> SeriesKey:
    """The metric and the labels of a result, without those of a slice."""
    own = {name: value for name, value in result.labels.items() if name not in ("dimension", "value")}
    return result.metric, tuple(sorted(own.items()))
