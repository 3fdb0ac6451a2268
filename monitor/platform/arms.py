"""Substitution in an experiment: what an arm changes in each system per user, and the gain that is left.

It is causal: chance alone decided who is in which arm. Only systems with a log and user ids take part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import ibis.expr.types as ir

from monitor.core.columns import ARM, USER_ID
from monitor.core.results import Result, Status, Window
from monitor.core.text import NAME_LENGTH, visible
from monitor.engines.duckdb import Engine
from monitor.experiments.assignments import Assignments
from monitor.experiments.split_check import NOBODY, current_split
from monitor.logs.source import Source
from monitor.metrics.family import ResultBuilder
from monitor.platform import specs
from monitor.platform.judge import PlatformJudge
from monitor.platform.kept import column_of
from monitor.platform.system_log import SystemLog
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.platform import ALL, OWN, PlatformSettings
from monitor.statistics.effects import Difference, Moments, welch
from monitor.statistics.intervals import Interval
from monitor.statistics.substitution import fieller, student

_USERS: Final = "users"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Taken:
    """The files of the users of each system in the same windows, and what is missing."""

    files: Mapping[str, Sequence[str]]
    note: str


class ArmsOfPlatform:
    """The experiments of a recommender, over all systems that are logs. Used by one thread."""

    def __init__(
        self,
        platform: PlatformSettings,
        judge: PlatformJudge,
        experiments: Sequence[ExperimentSettings],
        logs: Mapping[str, SystemLog],
        source: Source,
        kept: Assignments,
        length: timedelta,
    ) -> None:
        self._platform, self._judge, self._experiments = platform, judge, tuple(experiments)
        self._source, self._kept, self._length = source, kept, length
        whole = platform.whole
        self._whole = whole.name if whole is not None and whole.name in logs else None
        self._logs = dict(logs)
        self._without = [one.name for one in platform.systems if one.name not in logs]

    def run(self, engine: Engine, end: datetime) -> list[Result]:
        """The results of all experiments up to a moment. Raises StoreError if users cannot be kept."""
        if not self._experiments or OWN not in self._logs:
            return [
                one
                for experiment in self._experiments
                for one in self._nothing(
                    experiment,
                    Status.NO_DATA,
                    "the recommender's totals come from no log, so no user is known",
                )
            ]
        if len(self._logs) == 1:
            why = "no other system has a log, so its users are not known"
            return [one for each in self._experiments for one in self._nothing(each, Status.NO_DATA, why)]
        self._kept.keep_missing(engine, self._source, end)
        return [one for experiment in self._experiments for one in self._of(engine, experiment, end)]

    def _of(self, engine: Engine, experiment: ExperimentSettings, end: datetime) -> Iterator[Result]:
        begins = experiment.begins(self._length)
        if begins is not None and begins >= end:
            yield from self._nothing(
                experiment, Status.NO_DATA, f"the experiment begins at {begins:%Y-%m-%d}"
            )
            return
        taken = self._taken(engine, begins, end)
        if not taken.files:
            yield from self._nothing(experiment, Status.NO_DATA, taken.note)
            return
        last = Window(end - self._length, end)
        with current_split(engine, experiment, self._kept, last) as known:
            if known is None:
                yield from self._nothing(experiment, Status.NO_DATA, NOBODY)
                return
            split, users = known
            if split.broken is not None:
                yield from self._nothing(experiment, Status.UNDEFINED, split.broken)
                return
            sums = self._sums(engine, users, taken, experiment.arms)
        note = taken.note + (f"; {split.mixed:,} users in two arms left out" if split.mixed else "")
        for arm in experiment.arms:
            if arm != experiment.baseline:
                yield from self._compared(experiment, arm, sums, note)

    def _taken(self, engine: Engine, begins: datetime | None, end: datetime) -> _Taken:
        """The kept windows that all systems have."""
        kept = {
            name: {
                window
                for window, one in log.kept.known(self._length).items()
                if one.by_user and window.end <= end and (begins is None or window.start >= begins)
            }
            for name, log in self._logs.items()
        }
        common = set.intersection(*kept.values())
        if not common:
            empty = ", ".join(name for name, windows in kept.items() if not windows)
            return _Taken({}, f"no window is known of {empty or 'all systems together'}")
        first, last = min(common).start, max(common).end
        span = Window(begins or first, end)
        lacking = (span.end - span.start) // self._length - len(common)
        whole = (last - first) // self._length == len(common)
        files: dict[str, list[str]] = {}
        for name, log in self._logs.items():
            if whole:
                paths = log.kept.user_files(Window(first, last), self._length, engine.cursor)
            else:
                paths = [log.kept.path(window) for window in sorted(common)]
            files[name] = [str(path) for path in paths]
        parts = [f"from {first:%Y-%m-%d %H:%M}Z to {last:%Y-%m-%d %H:%M}Z"]
        parts += [f"{lacking:,} windows are missing in some system"] if lacking else []
        parts += [f"without {', '.join(self._without)}, whose users are not known"] if self._without else []
        return _Taken(files, "; ".join(parts))

    def _sums(self, engine: Engine, users: ir.Table, taken: _Taken, arms: Sequence[str]) -> dict[str, Row]:
        """The sums over the users of each arm; the columns `s_`, `q_` and `p_` are those of `_pairs`."""
        views = []
        try:
            one_arm = users.filter(users.arms == 1, users[ARM].isin(list(arms)))
            every = one_arm.select(USER_ID, ARM)
            names = list(self._logs)
            totals = [column_of(place) for place in range(len(self._platform.totals))]
            for number, name in enumerate(names):
                view = f"platform_users_{number}"
                views.append(view)
                rows = engine.reader(view, "read_parquet", list(taken.files[name]), union_by_name=True)
                rows = rows.filter(rows[USER_ID].notnull())
                by_user = rows.aggregate(by=USER_ID, **{f"{one}_{number}": rows[one].sum() for one in totals})
                every = every.left_join(by_user, USER_ID).drop(f"{USER_ID}_right")
            made: dict[str, Any] = {ARM: every[ARM]}
            for total in totals:
                each = {
                    name: every[f"{total}_{number}"].fill_null(0.0).cast("float64")
                    for number, name in enumerate(names)
                }
                every_part = [value for name, value in each.items() if name != self._whole]
                whole = each[self._whole] if self._whole else sum(every_part[1:], every_part[0])
                for number, name in enumerate(names):
                    made[f"{total}_{number}"] = each[name]
                made[f"{total}_all"] = whole
            flat = every.select(**made)
            sums: dict[str, Any] = {_USERS: flat.count()}
            own = names.index(OWN)
            for total in totals:
                for part in (*map(str, range(len(names))), "all"):
                    value = flat[f"{total}_{part}"]
                    sums[f"s_{total}_{part}"] = value.sum()
                    sums[f"q_{total}_{part}"] = (value * value).sum()
                sums[f"p_{total}"] = (flat[f"{total}_{own}"] * flat[f"{total}_all"]).sum()
            rows = flat.aggregate(by=ARM, **sums).to_pyarrow().to_pylist()
            return {row[ARM]: row for row in rows}
        finally:
            engine.drop(*views)

    def _compared(
        self, experiment: ExperimentSettings, arm: str, sums: Mapping[str, Row], note: str
    ) -> Iterator[Result]:
        control, changed = sums.get(experiment.baseline), sums.get(arm)
        if control is None or changed is None:
            yield from self._nothing(experiment, Status.NO_DATA, "no user is in one of the arms", [arm])
            return
        users = int(control[_USERS]) + int(changed[_USERS])
        names = list(self._logs)
        confidence = self._platform.confidence
        for place, total in enumerate(self._platform.totals):
            column = column_of(place)
            parts = {name: str(number) for number, name in enumerate(names) if name != self._whole}
            for name, part in {**parts, ALL: "all"}.items():
                builder = self._difference(experiment, arm, total, name)
                base, other = (_moments(row, f"{column}_{part}") for row in (control, changed))
                found = welch(base, other, confidence) if base and other else None
                if found is None:
                    yield builder.undefined("fewer than two users in an arm, or no variance in either", users)
                else:
                    detail = f"p = {found.p:.4g}; {note}"
                    yield builder.value(found.difference, users, found.interval, detail=detail)
            yield self._gain(experiment, arm, total, column, control, changed, note)

    def _gain(
        self, experiment: ExperimentSettings, arm: str, total: str, column: str,
        control: Row, changed: Row, note: str,
    ) -> Result:  # fmt: skip
        builder = self._verdict(experiment, arm, total)
        users = int(control[_USERS]) + int(changed[_USERS])
        own = f"{column}_{list(self._logs).index(OWN)}"
        part = [one for row in (control, changed) if (one := _moments(row, own))]
        whole = [one for row in (control, changed) if (one := _moments(row, f"{column}_all"))]
        confidence, least_gain = self._platform.confidence, self._platform.least_gain
        if len(part) < 2 or len(whole) < 2:
            return self._bounded(builder.undefined("fewer than two users in an arm", users))
        of_part, of_whole = welch(part[0], part[1], confidence), welch(whole[0], whole[1], confidence)
        if of_part is None or of_whole is None:
            return self._bounded(builder.undefined("no variance in either arm", users))
        between = _covariance(control, column, own) + _covariance(changed, column, own)
        variances = [sum(one.variance / one.n for one in pair) for pair in (whole, part)]
        quantile = student(min(of_part.df, of_whole.df), confidence)
        interval = fieller(
            of_whole.difference, of_part.difference, (variances[0], variances[1]), between, quantile
        )
        gains = (
            f"{visible(arm, NAME_LENGTH)} against {visible(experiment.baseline, NAME_LENGTH)}, {total} per "
            f"user: the recommender {_said(of_part)}, the platform {_said(of_whole)}; {note}"
        )
        if interval is None or of_part.interval.lower <= 0:
            text = f"the recommender does not surely gain, so nothing is taken from others; {gains}"
            return self._bounded(replace(builder.value(0.0, users, detail=text), value=None))
        value = of_whole.difference / of_part.difference
        result = builder.value(value, users, Interval(*interval), detail=f"{gains}. Caused by the arm.")
        is_zero_sum = interval.upper < least_gain
        return self._bounded(replace(result, status=Status.VIOLATED if is_zero_sum else Status.OK))

    def _difference(self, experiment: ExperimentSettings, arm: str, total: str, system: str) -> Any:
        labels = {specs.TOTAL: total, specs.SYSTEM: system, specs.EXPERIMENT: experiment.name, specs.ARM: arm}
        return self._judge.builder(specs.ARM_DIFFERENCE, **labels)

    def _verdict(self, experiment: ExperimentSettings, arm: str, total: str) -> ResultBuilder:
        labels = {specs.TOTAL: total, specs.EXPERIMENT: experiment.name, specs.ARM: arm}
        return self._judge.builder(specs.IN_EXPERIMENT, **labels)

    def _bounded(self, result: Result) -> Result:
        return replace(result, threshold=self._platform.least_gain, bound="min")

    def _nothing(
        self, experiment: ExperimentSettings, status: Status, why: str, arms: Sequence[str] = ()
    ) -> Iterator[Result]:
        """The results of an experiment without a value."""
        for arm in arms or [one for one in experiment.arms if one != experiment.baseline]:
            for total in self._platform.totals:
                for name in (*(one for one in self._logs if one != self._whole), ALL):
                    result = self._difference(experiment, arm, total, name).no_data(why)
                    yield replace(result, status=status)
                yield self._bounded(
                    replace(self._verdict(experiment, arm, total).no_data(why), status=status)
                )


def _said(found: Difference) -> str:
    lower, upper = found.interval
    return f"{found.difference:+.4g} ({lower:+.4g} to {upper:+.4g})"


def _moments(row: Row, column: str) -> Moments | None:
    return Moments.of_sums(int(row[_USERS]), float(row[f"s_{column}"]), float(row[f"q_{column}"]))


def _covariance(row: Row, total: str, own: str) -> float:
    """The covariance of the means of the recommender's and of all systems' total per user."""
    n = int(row[_USERS])
    product = float(row[f"p_{total}"]) - float(row[f"s_{own}"]) * float(row[f"s_{total}_all"]) / n
    return product / (n - 1) / n if n > 1 else math.nan
