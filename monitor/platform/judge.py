"""The results of a day from the totals of all systems: amounts, shares, changes and substitution."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

import numpy as np

from monitor.anomalies.moments import weekday_of
from monitor.core.digest import digest
from monitor.core.numbers import number, signed
from monitor.core.results import Result, Status
from monitor.core.text import plural
from monitor.metrics.family import MetricSpec, ResultBuilder
from monitor.platform import specs
from monitor.platform.days import DAY, DailyTotals, day_of, zone_of
from monitor.settings.platform import ALL, DEMAND, OTHERS, OWN, Measured, PlatformSettings
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.counts import Floats
from monitor.statistics.intervals import Interval
from monitor.statistics.substitution import (
    LEAST_BEFORE,
    LEAST_NOW,
    Changes,
    Gain,
    changes,
    least_rise,
    shift,
)

_VERSION: Final = "1"
_INFINITE: Final = "the values add up to no finite number"


@dataclass(frozen=True)
class Total:
    """One total on every day: of the recommender, of the platform, and of the systems that give it.

    Attributes:
        systems: the neighbours that give it.
        made_of: whose totals are the platform's: the system that is declared as the whole, or the recommender
            and its neighbours.
        status: of the platform's total on each day: late if a missing part may still come, else no_data.
    """

    name: str
    own: Floats
    whole: Floats
    systems: Mapping[str, Floats]
    made_of: tuple[str, ...]
    status: tuple[Status, ...]

    @property
    def others(self) -> Floats:
        """What is not the recommender's."""
        return self.whole - self.own

    def judged(self) -> dict[str, Floats]:
        """The series that are compared, by name; `others` only where no single neighbour is all of them."""
        found = {OWN: self.own, ALL: self.whole, **self.systems}
        is_all = len(self.systems) == 1 and OWN in self.made_of
        return found if is_all else {**found, OTHERS: self.others}


def at_equal(demand: Floats, recent: int) -> Floats:
    """The factor of each day that gives it the mean demand of the recent days; NaN without demand.

    >>> at_equal(np.array([100.0, 200.0, 0.0, 50.0, 150.0]), 2).round(3).tolist()
    [1.0, 0.5, nan, 2.0, 0.667]
    """
    known = np.where(np.isfinite(demand) & (demand > 0), demand, np.nan)
    return np.asarray(np.nanmean(known[-recent:]) / known)


class PlatformJudge:
    """Judges the last day of a table of totals."""

    def __init__(self, settings: RecommenderSettings, platform: PlatformSettings) -> None:
        self._settings, self._platform = settings, platform
        self._zone = zone_of(settings, platform)
        totals = {name: one.model_dump() for name, one in platform.totals.items()}
        sources = {name: one and _measured(one) for name, one in platform.measured.items()}
        self._of = digest(json.dumps([totals, sources, str(self._zone)], sort_keys=True), 12)
        asked = [platform.recent, platform.before, platform.least_gain, platform.confidence]
        self._asked = digest(json.dumps([self._of, *map(str, asked)]), 12)

    def builder(self, spec: MetricSpec, **labels: str) -> ResultBuilder:
        """The builder of a result; its definition changes with the settings that change its meaning."""
        of = self._of if spec in (specs.AMOUNT, specs.SHARE) else self._asked
        return ResultBuilder(spec, f"{_VERSION};of={of}", labels)

    @property
    def days(self) -> int:
        """How many days a judgement looks at."""
        return (self._platform.recent + self._platform.before) // DAY

    def run(self, table: DailyTotals) -> list[Result]:
        """The results of the last day."""
        found: list[Result] = []
        for name in self._platform.totals:
            total = self.total(table, name)
            found += self._amounts(table, total)
            found += self._compared(table, total)
        return found + self._demand(table)

    def amounts(self, table: DailyTotals) -> list[Result]:
        """The amounts and shares of the last day alone."""
        found = [one for total in self.totals(table) for one in self._amounts(table, total)]
        return found + self._demand(table)

    def _demand(self, table: DailyTotals) -> list[Result]:
        """The demand of the last day, if it is measured."""
        if table.demand is None:
            return []
        return [self._amount(table, DEMAND, DEMAND)]

    def _amount(self, table: DailyTotals, total: str, system: str) -> Result:
        """A total of a system on the last day."""
        builder, reading = self.builder(specs.AMOUNT, total=total, system=system), table.readings[system]
        value, why, status = float(reading.values[total][-1]), reading.why[total][-1], reading.status[-1]
        if math.isfinite(value):
            return replace(builder.value(value, 1, detail=why), samples=None)
        state = Status.NO_DATA if status is Status.OK else status
        return replace(builder.no_data(why or _INFINITE), status=state, samples=None)

    def totals(self, table: DailyTotals) -> list[Total]:
        """Every total of all systems on all days."""
        return [self.total(table, name) for name in self._platform.totals]

    def total(self, table: DailyTotals, name: str) -> Total:
        """One total of all systems on all days."""
        platform, own = self._platform, table.own.values[name]
        parts = {
            one.name: table.systems[one.name].values[name]
            for one in platform.neighbours
            if name in platform.given_by(one)
        }
        declared = platform.whole
        if declared is not None and name in platform.given_by(declared):
            made_of: tuple[str, ...] = (declared.name,)
            whole = table.systems[declared.name].values[name]
        else:
            made_of = (OWN, *parts)
            whole = own + sum(parts.values(), np.zeros(len(table.days)))
        status = [_known(table, name, made_of, place)[0] for place in range(len(table.days))]
        return Total(name, own, whole, parts, made_of, tuple(status))

    def _amounts(self, table: DailyTotals, total: Total) -> Iterator[Result]:
        """The amounts of the last day, and the recommender's share."""
        for name, one in self._platform.measured.items():
            if total.name in self._platform.given_by(one):
                yield self._amount(table, total.name, name)
        whole = self.builder(specs.AMOUNT, total=total.name, system=ALL)
        share = self.builder(specs.SHARE, total=total.name)
        all_of_it, own_part = float(total.whole[-1]), float(total.own[-1])
        status, why = _known(table, total.name, total.made_of)
        result = whole.value(all_of_it, 1) if status is Status.OK else whole.no_data(why)
        yield replace(result, status=status, samples=None)
        status, why = _known(table, total.name, (OWN, *total.made_of))
        if status is not Status.OK:
            yield replace(share.no_data(why), status=status, samples=None)
        elif all_of_it > 0:
            yield replace(share.value(own_part / all_of_it, 1), samples=None)
        else:
            yield replace(share.undefined("the platform's total is 0 or less", 1), samples=None)

    def _compared(self, table: DailyTotals, total: Total) -> Iterator[Result]:
        """The changes against the days before, and substitution."""
        names = list(total.judged())
        judged = [*total.systems, *([OTHERS] if OTHERS in names else [])]
        found, status, why = self._changes(table, total)
        if found is None:
            for name in names:
                builder = self.builder(specs.CHANGE, total=total.name, system=name)
                yield replace(builder.no_data(why), status=status)
            yield replace(self.builder(specs.LEAST_RISE, total=total.name).no_data(why), status=status)
            for name in judged:
                yield self._bounded(replace(self._substitution(total, name).no_data(why), status=status))
            return
        confidence, least_gain = self._platform.confidence, self._platform.least_gain
        own, whole = names.index(OWN), names.index(ALL)
        for place, name in enumerate(names):
            yield self._change(total, name, found, place)
        builder, days = self.builder(specs.LEAST_RISE, total=total.name), sum(found.days)
        level = float(found.before[own])
        if level > 0:
            yield builder.value(least_rise(found, whole, own, confidence, least_gain) / level, days)
        else:
            yield builder.undefined("the recommender's level before is 0 or less", days)
        for name in judged:
            place = names.index(name)
            verdict = shift(
                found, whole=whole, part=own, other=place, confidence=confidence, least_gain=least_gain
            )
            text = self._says(total, found, {OWN: own, ALL: whole, name: place}, verdict.gain)
            builder = self._substitution(total, name)
            if verdict.gain is None or not verdict.continues:
                # Without a value: one below the bound would keep a violation from ending.
                yield self._bounded(replace(builder.value(0.0, days, detail=text), value=None))
                continue
            result = builder.value(verdict.gain.value, days, verdict.gain.interval, detail=text)
            state = Status.VIOLATED if verdict.zero_sum else Status.OK
            yield self._bounded(replace(result, status=state))

    def _substitution(self, total: Total, system: str) -> ResultBuilder:
        return self.builder(specs.SUBSTITUTION, total=total.name, system=system)

    def _bounded(self, result: Result) -> Result:
        return replace(result, threshold=self._platform.least_gain, bound="min")

    def _changes(self, table: DailyTotals, total: Total) -> tuple[Changes | None, Status, str]:
        """The changes of all series, or why there are none."""
        status, why = _known(table, total.name, (OWN, *total.made_of, *total.systems))
        if status is not Status.OK:
            return None, status, why
        left_out = self.left_out(table.days)
        if left_out[-1]:
            return None, Status.NO_DATA, f"the day is left out: it lies {left_out[-1]}"
        values = np.column_stack(list(total.judged().values()))
        if table.demand is not None:
            demand = table.demand.values[DEMAND]
            if not demand[-1] > 0:
                why = table.demand.why[DEMAND][-1] or "it is 0 or less"
                waits = table.demand.status[-1] is Status.LATE
                return None, Status.LATE if waits else Status.NO_DATA, f"demand: {why}"
            values = values * at_equal(demand, self._platform.recent // DAY)[:, None]
        values[np.array([bool(one) for one in left_out])] = np.nan
        recent = self._platform.recent // DAY
        found = changes(values, self.weekdays(table.days), recent)
        if found is not None:
            return found, Status.OK, ""
        known = np.flatnonzero(np.isfinite(values).all(axis=1))
        late = int(np.count_nonzero(known >= len(values) - recent))
        why = (
            "too few days have a total in every system: "
            f"{plural(len(known) - late, 'earlier day')} (at least {LEAST_BEFORE} are needed), "
            f"and {plural(late, 'recent day')} (at least {LEAST_NOW}); each recent weekday must be an "
            "earlier day too"
        )
        reasons = Counter(one for one in left_out if one)
        skipped = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return None, Status.NO_DATA, f"{why}; days left out: {skipped}" if skipped else why

    def left_out(self, days: Sequence[date]) -> list[str]:
        """Where each day lies that is not compared; empty if it is."""
        bands = self._settings.bands
        last = day_of(days[-1], self._zone)
        named = [one.at for one in bands.changes if specs.AMOUNT.name in one.metrics] if bands else []
        begun = max((one for one in named if one < last.end), default=None)
        season = bands.season_of(days[-1]) if bands else None
        found = []
        for day in days:
            span = day_of(day, self._zone)
            other = bands.season_of(day) if bands else None
            if any(one.covers(span) for one in self._settings.maintenance):
                found.append("in maintenance")
            elif begun is not None and span.start < begun:
                found.append("before a declared change of platform_amount")
            elif other is not None and other != season:
                found.append("in another season")
            else:
                found.append("")
        return found

    def weekdays(self, days: Sequence[date]) -> list[int]:
        days_off = self._settings.bands.days_off if self._settings.bands else ()
        return [weekday_of(datetime(day.year, day.month, day.day, 12), days_off) for day in days]

    def _change(self, total: Total, name: str, found: Changes, place: int) -> Result:
        builder = self.builder(specs.CHANGE, total=total.name, system=name)
        days, level = sum(found.days), float(found.before[place])
        if level <= 0:
            return builder.undefined("the level before is 0 or less", days)
        lower, upper = found.interval(place, self._platform.confidence)
        left = f", {found.wild} far from all others left out" if found.wild else ""
        detail = (
            f"{number(level, 6)} a day before, {number(float(found.now[place]), 6)} now; "
            f"{found.days[1]} days against {found.days[0]}{left}; the noise remembers "
            f"{float(found.memory[place]):.2f} of the day before"
        )
        value = float(found.change[place]) / level
        return builder.value(value, days, Interval(lower / level, upper / level), detail=detail)

    def _says(self, total: Total, found: Changes, places: Mapping[str, int], left: Gain | None) -> str:
        """The three conditions as one sentence."""
        confidence = self._platform.confidence
        parts = [f"{one}: {_moved(found, place, confidence)}" for one, place in places.items()]
        if left is None or left.interval is None:
            gained = "the gain is not known: the recommender has not surely changed"
        else:
            lower, upper = left.interval
            gained = (
                f"for each unit that the recommender gains, the platform gains {left.value:.2f} "
                f"({lower:.2f} to {upper:.2f})"
            )
        days = f"{found.days[1]} days against {found.days[0]}"
        days += " at equal demand" if self._platform.demand is not None else ""
        return f"{total.name}, {days}: {'; '.join(parts)}; {gained}. Observed, not caused."


def _known(table: DailyTotals, total: str, systems: Iterable[str], place: int = -1) -> tuple[Status, str]:
    """Whether all of these systems have a total on a day: late if one may still come; and which lack it."""
    readings = table.readings
    missing = {one: readings[one] for one in systems if not math.isfinite(readings[one].values[total][place])}
    why = "; ".join(f"{one}: {each.why[total][place] or _INFINITE}" for one, each in missing.items())
    late = any(each.status[place] is Status.LATE for each in missing.values())
    return Status.OK if not missing else Status.LATE if late else Status.NO_DATA, why


def _measured(one: Measured) -> object:
    """The settings that say where totals come from, without addresses and secrets."""
    hidden = {"sql": {"url"}, "prometheus": {"url", "bearer_token_file", "username", "password_file"}}
    kept = one.model_dump(exclude=hidden, mode="json")
    if kept.get("log"):
        kept["log"] = {name: kept["log"][name] for name in ("columns", "only", "timezone", "totals")}
    return kept


def _moved(found: Changes, place: int, confidence: float) -> str:
    level = float(found.before[place])
    lower, upper = found.interval(place, confidence)
    if level <= 0:
        return f"{signed(float(found.change[place]))} ({signed(lower)} to {signed(upper)})"
    return f"{found.change[place] / level:+.1%} ({lower / level:+.1%} to {upper / level:+.1%})"
