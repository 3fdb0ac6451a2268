"""The check `experiment_arms`: each metric by arm, and its difference to the control.

It needs feedback, so it runs once the actions have had time to arrive. If the split is broken, no result has
a value: the arms then differ by more than the tested change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from monitor.core.columns import ARM, FEEDBACK
from monitor.core.results import Result
from monitor.experiments import specs
from monitor.experiments.assignments import with_columns
from monitor.experiments.queries import SHOWN, USERS, arm_sums, mixed
from monitor.experiments.split_check import (
    NOBODY,
    ExperimentCheck,
    columns_of,
    current_split,
    not_judged,
)
from monitor.metrics.family import ResultBuilder
from monitor.metrics.feedback.business import rate_interval
from monitor.settings.experiments import ArmMetric, ExperimentSettings
from monitor.settings.metrics import MetricSettings
from monitor.statistics.effects import (
    Difference,
    Moments,
    RatioSums,
    ratio_difference,
    welch,
)
from monitor.window.check import WindowJob

NAME = "experiment_arms"
AggregateRow = Mapping[str, Any]
_ABSENT: Final = "no user of the arm was seen in the window"
_NOT_SHOWN: Final = "no item was shown to the users of the arm"


class ArmsCheck(ExperimentCheck):
    """The metrics by arm and the differences of every experiment."""

    name = NAME
    part = FEEDBACK

    def run(self, job: WindowJob) -> list[Result]:
        """Raises StoreError if the users of earlier windows cannot be stored."""
        settings, source, kept = self._settings, self._source, self._kept
        engine, window, shared = job.engine, job.window, job.tables().shared
        kept.keep_missing(engine, source, window.end)
        columns = columns_of(settings)
        exposures = with_columns(shared.exposures, columns)
        results: list[Result] = []
        for experiment in settings.experiments:
            if reason := not_judged(experiment, source, window, job.due.rows):
                results += arm_results(experiment, {}, settings.metrics, reason=reason)
                continue
            with current_split(engine, experiment, kept, window) as known:
                if known is None:
                    results += arm_results(experiment, {}, settings.metrics, reason=NOBODY)
                    continue
                split, users = known
                sums: dict[str, AggregateRow] = {}
                if split.broken is None:
                    left_out = engine.create("users_in_two_arms", mixed(users))
                    table = arm_sums(shared, exposures, settings.metrics, experiment, columns, left_out)
                    sums = {row[ARM]: row for row in table.to_pyarrow().to_pylist()}
                    engine.drop("users_in_two_arms")
                results += arm_results(experiment, sums, settings.metrics, broken=split.broken)
        return results


def arm_results(
    experiment: ExperimentSettings,
    sums: Mapping[str, AggregateRow],
    settings: MetricSettings,
    *,
    broken: str | None = None,
    reason: str = _ABSENT,
) -> Iterator[Result]:
    """The results of one experiment.

    Args:
        experiment, settings: its part of the config, and the metrics'.
        sums: arm -> its row of `arm_sums`.
        broken: why the split is broken; every result is then `undefined`.
        reason: why an arm has no sums.
    """
    control = experiment.baseline
    for number, event in enumerate(settings.events):
        for name in experiment.metrics:
            has_values = name != "value_per_user" or any(row[f"values_{number}"] for row in sums.values())
            lacking = "" if has_values else f"no action {event!r} of the window has a value"
            for arm in experiment.arms:
                own = specs.builder(specs.ARM_SPECS[name], experiment, settings, arm=arm, event=event)
                missing = lacking if arm in sums else reason
                yield from _without([own], broken, missing) or [_of_arm(name, own, sums[arm], number)]
            for arm in experiment.arms:
                if arm == control:
                    continue
                labels = {"by": name, "arm": arm, "event": event}
                value = specs.builder(specs.DIFFERENCE, experiment, settings, **labels)
                p = specs.builder(specs.DIFFERENCE_P, experiment, settings, **labels)
                missing = lacking if arm in sums and control in sums else reason
                empty = _without([value, p], broken, missing)
                yield from empty or _compared(name, value, p, sums[control], sums[arm], number)


def _without(builders: Sequence[ResultBuilder], broken: str | None, missing: str) -> list[Result]:
    """Results without a value if the split is broken or data is missing; else none."""
    if broken is not None:
        return [builder.undefined(broken, 0) for builder in builders]
    return [builder.no_data(missing) for builder in builders] if missing else []


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
        return builder.undefined(_NOT_SHOWN, users)
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
    difference: Difference | None = None
    if name == "action_rate" and not (control[SHOWN] and arm[SHOWN]):
        why = f"{_NOT_SHOWN}{'' if control[SHOWN] else ' that it is compared with'}"
        yield from (value.undefined(why, n), p.undefined(why, n))
        return
    if name == "action_rate":
        difference = ratio_difference(_ratio(control, number), _ratio(arm, number))
    else:
        base, changed = (_moments(name, row, number) for row in (control, arm))
        if base is not None and changed is not None:
            difference = welch(base, changed)
    if difference is None:
        why = "fewer than two users in an arm, or no variance in either: chance cannot be estimated"
        yield from (value.undefined(why, n), p.undefined(why, n))
        return
    yield value.value(difference.difference, n, difference.interval, detail=f"p = {difference.p:.4g}")
    yield p.value(difference.p, n)


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
