"""Substitution in an experiment: what an arm changes in each system per user, and the gain that is left.

It is causal: chance alone decided who is in which arm. Only systems with a log and user ids take part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import ibis.expr.types as ir

from monitor.core.columns import ARM, USER_ID
from monitor.core.numbers import signed
from monitor.core.results import Result, Status, Window
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.engines.duckdb import Engine
from monitor.experiments.assignments import Assignments
from monitor.experiments.queries import FIRST
from monitor.experiments.split_check import NOBODY, current_split
from monitor.logs.source import Source
from monitor.metrics.family import ResultBuilder
from monitor.platform import specs
from monitor.platform.judge import PlatformJudge
from monitor.platform.kept import MARK, column_of
from monitor.platform.system_log import SystemLog
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.platform import ALL, OWN, PlatformSettings
from monitor.statistics.effects import Difference, Moments, welch
from monitor.statistics.intervals import Interval
from monitor.statistics.substitution import fieller, student

MOST_UNKNOWN: Final = 0.05
"""The largest share of a system's total that may have no known user. Beyond it nothing is judged."""
MOST_MISSING: Final = 0.1
"""The largest share of an experiment's windows that some system may lack. Beyond it nothing is judged."""
_USERS: Final = "users"
_ROUNDING: Final = 1e-9
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Taken:
    """The files of the users of each system in the same windows, and what is missing.

    Attributes:
        files: of the systems whose users are known at least in part.
        note: what is taken, in words.
        windows: those windows.
        unknown: total -> system -> the share of the total that has no known user.
    """

    files: Mapping[str, Sequence[str]]
    note: str
    windows: Sequence[Window] = ()
    unknown: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def faults(self, total: str) -> dict[str, str]:
        """The systems with too much of a total without a known user, each with a sentence."""
        return {
            name: f"{_percent(share)} of the {total} of {name} have no known user, more than "
            f"{_percent(MOST_UNKNOWN)}"
            for name, share in self.unknown.get(total, {}).items()
            if share > MOST_UNKNOWN
        }

    def said(self, total: str) -> str:
        """The note, with the shares of this total that have no known user."""
        parts = [
            f"{_percent(share)} of {name}" for name, share in self.unknown.get(total, {}).items() if share > 0
        ]
        return f"{self.note}; without a known user: {', '.join(parts)}" if parts else self.note


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
        why = ""
        if OWN not in self._logs:
            why = "the recommender's totals come from no log, so no user is known"
        elif len(self._logs) == 1:
            why = "no other system has a log, so its users are not known"
        if why:
            return [one for each in self._experiments for one in self._nothing(each, Status.NO_DATA, why)]
        if not self._experiments:
            return []
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
            missing, every = self._missing(users, taken, begins, end)
            lack = f"some system lacks {missing:,} of the experiment's {every:,} windows"
            if missing > MOST_MISSING * every:
                why = f"{lack}, more than {_percent(MOST_MISSING)}; {taken.note}"
                yield from self._nothing(experiment, Status.NO_DATA, why)
                return
            sums = self._sums(engine, users, taken, experiment.arms)
        if missing:
            taken = replace(taken, note=f"{taken.note}; {lack}")
        if split.mixed:
            mixed = plural(split.mixed, "user")
            taken = replace(taken, note=f"{taken.note}; {mixed} in two arms left out")
        for arm in experiment.arms:
            if arm != experiment.baseline:
                yield from self._compared(experiment, arm, sums, taken)

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
        whole = (last - first) // self._length == len(common)
        files: dict[str, list[str]] = {}
        for name, log in self._logs.items():
            if whole:
                paths = log.kept.user_files(Window(first, last), self._length, engine.cursor)
            else:
                paths = [log.kept.path(window) for window in sorted(common)]
            files[name] = [str(path) for path in paths]
        parts = [f"from {first:%Y-%m-%d %H:%M}Z to {last:%Y-%m-%d %H:%M}Z"]
        unknown = {name: self._unknown(engine, paths) for name, paths in files.items()}
        nobody = [name for name, shares in unknown.items() if shares is None]
        without = [*self._without, *nobody]
        parts += [f"without {', '.join(without)}, whose users are not known"] if without else []
        if OWN in nobody:
            return _Taken({}, "the rows of the recommender's log have no user")
        known = {name: paths for name, paths in files.items() if name not in nobody}
        if len(known) == 1:
            return _Taken({}, f"the rows of {', '.join(nobody)} have no user, and no other system has a log")
        shares = {
            total: {name: one[total] for name, one in unknown.items() if one is not None}
            for total in self._platform.totals
        }
        return _Taken(known, "; ".join(parts), sorted(common), shares)

    def _missing(
        self, users: ir.Table, taken: _Taken, begins: datetime | None, end: datetime
    ) -> tuple[int, int]:
        """How many windows of the experiment are not taken, and how many it has."""
        if begins is None:
            first = int(users[FIRST].min().to_pyarrow().as_py())
            # Without a start it begins with the log, whose first window is never added up.
            begins = datetime.fromtimestamp(first, UTC) + self._length
        every = (end - begins) // self._length
        return every - sum(window.start >= begins for window in taken.windows), every

    def _unknown(self, engine: Engine, paths: Sequence[str]) -> dict[str, float] | None:
        """The share of each total of a log that has no known user. None if no row has a user."""
        view = "platform_known_users"
        try:
            rows = engine.reader(view, "read_parquet", list(paths), union_by_name=True)
            is_user, is_whole = rows[USER_ID].notnull(), rows[MARK] != ""
            sums: dict[str, Any] = {_USERS: is_user.sum()}
            for place in range(len(self._platform.totals)):
                column = column_of(place)
                sums[f"known_{column}"] = is_user.ifelse(rows[column], 0.0).sum()
                sums[f"whole_{column}"] = is_whole.ifelse(rows[column], 0.0).sum()
            (row,) = rows.aggregate(**sums).to_pyarrow().to_pylist()
        finally:
            engine.drop(view)
        found = {
            total: _lacking(float(row[f"known_{column_of(place)}"]), float(row[f"whole_{column_of(place)}"]))
            for place, total in enumerate(self._platform.totals)
        }
        return None if not row[_USERS] and any(found.values()) else found

    def _sums(self, engine: Engine, users: ir.Table, taken: _Taken, arms: Sequence[str]) -> dict[str, Row]:
        """The sums over the users of each arm; the columns `s_`, `q_` and `p_` are those of `_pairs`."""
        views = []
        try:
            one_arm = users.filter(users.arms == 1, users[ARM].isin(list(arms)))
            every = one_arm.select(USER_ID, ARM)
            names, declared = list(taken.files), self._whole_of(taken)
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
                every_part = [value for name, value in each.items() if name != declared]
                whole = each[declared] if declared else sum(every_part[1:], every_part[0])
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
        self, experiment: ExperimentSettings, arm: str, sums: Mapping[str, Row], taken: _Taken
    ) -> Iterator[Result]:
        control, changed = sums.get(experiment.baseline), sums.get(arm)
        if control is None or changed is None:
            yield from self._nothing(experiment, Status.NO_DATA, "no user is in one of the arms", [arm])
            return
        users = int(control[_USERS]) + int(changed[_USERS])
        names, declared = list(taken.files), self._whole_of(taken)
        confidence = self._platform.confidence
        parts = {name: str(number) for number, name in enumerate(names) if name != declared}
        nobody = [name for name in self._logs if name not in taken.files and name != self._whole]
        for place, total in enumerate(self._platform.totals):
            column, note = column_of(place), taken.said(total)
            faults = taken.faults(total)
            used = names if declared is None else (OWN, declared)
            every_fault = "; ".join(why for name, why in faults.items() if name in used)
            for name in nobody:
                yield self._difference(experiment, arm, total, name).no_data(
                    "the rows of its log have no user"
                )
            for name, part in {**parts, ALL: "all"}.items():
                builder = self._difference(experiment, arm, total, name)
                if why := every_fault if name == ALL else faults.get(name, ""):
                    yield builder.no_data(why)
                    continue
                base, other = (_moments(row, f"{column}_{part}") for row in (control, changed))
                found = welch(base, other, confidence) if base and other else None
                if found is None:
                    yield builder.undefined("fewer than two users in an arm, or no variance in either", users)
                else:
                    detail = f"p = {found.p:.4g}; {note}"
                    yield builder.value(found.difference, users, found.interval, detail=detail)
            if every_fault:
                yield self._bounded(self._verdict(experiment, arm, total).no_data(every_fault))
            else:
                own = f"{column}_{names.index(OWN)}"
                yield self._gain(experiment, arm, total, column, own, control, changed, note)

    def _gain(
        self, experiment: ExperimentSettings, arm: str, total: str, column: str, own: str,
        control: Row, changed: Row, note: str,
    ) -> Result:  # fmt: skip
        builder = self._verdict(experiment, arm, total)
        users = int(control[_USERS]) + int(changed[_USERS])
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

    def _whole_of(self, taken: _Taken) -> str | None:
        """The system that is declared as the whole, if its users are known."""
        return self._whole if self._whole in taken.files else None

    def _difference(self, experiment: ExperimentSettings, arm: str, total: str, system: str) -> ResultBuilder:
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


def _lacking(known: float, whole: float) -> float:
    """The share of a whole that the known part lacks.

    >>> _lacking(3.0, 4.0), _lacking(0.0, 0.0), _lacking(1.0, 0.0)
    (0.25, 0.0, 1.0)
    """
    left = abs(whole - known)
    if left <= _ROUNDING * max(abs(whole), abs(known)):
        return 0.0
    return min(1.0, left / abs(whole)) if whole else 1.0


def _percent(share: float) -> str:
    """A share in percent; a small one is not shown as 0.

    >>> _percent(0.051), _percent(0.0001)
    ('5.1 %', 'less than 0.1 %')
    """
    return "less than 0.1 %" if share < 0.001 else f"{share * 100:.1f} %"


def _said(found: Difference) -> str:
    lower, upper = found.interval
    return f"{signed(found.difference)} ({signed(lower)} to {signed(upper)})"


def _moments(row: Row, column: str) -> Moments | None:
    return Moments.of_sums(int(row[_USERS]), float(row[f"s_{column}"]), float(row[f"q_{column}"]))


def _covariance(row: Row, total: str, own: str) -> float:
    """The covariance of the means of the recommender's and of all systems' total per user."""
    n = int(row[_USERS])
    product = float(row[f"p_{total}"]) - float(row[f"s_{own}"]) * float(row[f"s_{total}_all"]) / n
    return product / (n - 1) / n if n > 1 else math.nan
