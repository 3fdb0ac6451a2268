"""The check of what the arms of experiments did: each metric by arm, and its difference to the control's.

It rests on feedback, and comes once the actions have had time to. Where the split is broken none of it is
given a value: the arms then differ by more than what is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from monitor.core.columns import ARM, FEEDBACK
from monitor.core.results import Result
from monitor.experiments import specs
from monitor.experiments.assignments import Assignments, with_columns
from monitor.experiments.queries import SHOWN, USERS, arm_sums, by_user, mixed
from monitor.experiments.split_check import NOBODY, columns_of, not_judged, split_of
from monitor.logs.source import Source
from monitor.metrics.family import ResultBuilder
from monitor.metrics.feedback.business import rate_interval
from monitor.settings.experiments import ArmMetric, ExperimentSettings
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.effects import (
    Difference,
    Moments,
    RatioSums,
    ratio_difference,
    welch,
)
from monitor.window.check import Check, Recommender, WindowJob

NAME = "experiment_arms"
AggregateRow = Mapping[str, Any]
_ABSENT: Final = "no user of the arm was seen in the window"


class ArmsCheck(Check[WindowJob]):
    """The metrics by arm and the differences of every experiment."""

    name = NAME
    part = FEEDBACK

    def __init__(self, settings: RecommenderSettings, source: Source, kept: Assignments) -> None:
        self._settings = settings
        self._source = source
        self._kept = kept

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        settings, source = recommender.settings, recommender.source
        if settings.experiments:
            yield cls(settings, source, Assignments(settings, recommender.kept.folder))

    def run(self, job: WindowJob) -> list[Result]:
        """Raises StoreError where the users of earlier windows cannot be kept."""
        settings, source, kept = self._settings, self._source, self._kept
        engine, window, shared = job.engine, job.window, job.tables().shared
        kept.keep_missing(engine, source, window.end)
        columns = columns_of(settings)
        exposures = with_columns(shared.exposures, columns)
        found: list[Result] = []
        for one in settings.experiments:
            why = not_judged(one, source, window, job.due.rows)
            pairs = None if why else kept.pairs(engine, one, window, "arms_of_users")
            if pairs is None:
                found += arm_results(one, {}, settings.metrics, nothing=why or NOBODY)
                continue
            try:
                users = engine.create("users_of_arms", by_user(pairs, one.arms))
                split = split_of(pairs, users, one)
                sums: dict[str, AggregateRow] = {}
                if split.users and split.broken is None:
                    left_out = engine.create("users_in_two_arms", mixed(users))
                    table = arm_sums(shared, exposures, settings.metrics, one, columns, left_out)
                    sums = {row[ARM]: row for row in table.to_pyarrow().to_pylist()}
                nothing = _ABSENT if split.users else NOBODY
                found += arm_results(one, sums, settings.metrics, broken=split.broken, nothing=nothing)
            finally:
                engine.drop("arms_of_users", "arms_of_users_files", "users_of_arms", "users_in_two_arms")
        return found


def arm_results(
    experiment: ExperimentSettings,
    sums: Mapping[str, AggregateRow],
    settings: MetricSettings,
    *,
    broken: str | None = None,
    nothing: str = _ABSENT,
) -> Iterator[Result]:
    """The results of one experiment from the sums of its arms, as `arm_sums` gives them by arm.

    With `broken` none has a value: each is `undefined` and says why.
    """
    control = experiment.baseline
    for number, event in enumerate(settings.events):
        for name in experiment.metrics:
            has_values = name != "value_per_user" or any(one[f"values_{number}"] for one in sums.values())
            lacking = "" if has_values else f"no action {event!r} of the window has a value"
            for arm in experiment.arms:
                own = specs.builder(specs.ARM_SPECS[name], experiment, settings, arm=arm, event=event)
                why = lacking if arm in sums else nothing
                yield from _without([own], broken, why) or [_of_arm(name, own, sums[arm], number)]
            for arm in experiment.arms:
                labels = {"by": name, "arm": arm, "event": event}
                value = specs.builder(specs.DIFFERENCE, experiment, settings, **labels)
                p = specs.builder(specs.DIFFERENCE_P, experiment, settings, **labels)
                why = lacking if arm in sums and control in sums else nothing
                if arm != control:
                    found = _without([value, p], broken, why)
                    yield from found or _compared(name, value, p, sums[control], sums[arm], number)


def _without(builders: Sequence[ResultBuilder], broken: str | None, why: str) -> list[Result]:
    """Results without a value, where the split is broken or there is a reason why not."""
    if broken is not None:
        return [one.undefined(broken, 0) for one in builders]
    return [one.no_data(why) for one in builders] if why else []


def _of_arm(name: ArmMetric, builder: ResultBuilder, row: AggregateRow, number: int) -> Result:
    users = int(row[USERS])
    if name == "conversion":
        return builder.share(row[f"who_{number}"], users, _ABSENT)
    if name == "actions_per_user":
        return builder.mean(users, row[f"n_{number}"], row[f"nn_{number}"], _ABSENT)
    if name == "value_per_user":
        return builder.mean(users, row[f"value_{number}"], row[f"vv_{number}"], _ABSENT)
    shown = row[SHOWN]
    if not shown:
        return builder.undefined("no item was shown to the users of the arm", users)
    return builder.value(row[f"n_{number}"] / shown, users, rate_interval(_ratio(row, number)))


def _compared(
    name: ArmMetric,
    value: ResultBuilder,
    p: ResultBuilder,
    control: AggregateRow,
    arm: AggregateRow,
    number: int,
) -> Iterator[Result]:
    n = int(control[USERS]) + int(arm[USERS])
    found: Difference | None = None
    if name == "action_rate":
        found = ratio_difference(_ratio(control, number), _ratio(arm, number))
    else:
        sides = [_moments(name, row, number) for row in (control, arm)]
        if sides[0] is not None and sides[1] is not None:
            found = welch(sides[0], sides[1])
    if found is None:
        why = "fewer than two users in an arm, or no variance in either: chance cannot be estimated"
        yield from (value.undefined(why, n), p.undefined(why, n))
        return
    yield value.value(found.difference, n, found.interval, detail=f"p = {found.p:.4g}")
    yield p.value(found.p, n)


def _ratio(row: AggregateRow, number: int) -> RatioSums:
    return RatioSums(
        int(row[USERS]), row[f"n_{number}"], row[SHOWN],
        row[f"nn_{number}"], row["shown_shown"], row[f"ny_{number}"],
    )  # fmt: skip


def _moments(name: ArmMetric, row: AggregateRow, number: int) -> Moments | None:
    if name == "conversion":
        who = float(row[f"who_{number}"])
        return Moments.of_sums(int(row[USERS]), who, who)  # ones and zeros are their own squares
    total, squares = ("n", "nn") if name == "actions_per_user" else ("value", "vv")
    return Moments.of_sums(int(row[USERS]), row[f"{total}_{number}"], row[f"{squares}_{number}"])
