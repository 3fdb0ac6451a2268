"""The verdict on actions that join no list: are there too many, and what is the likely reason?

Every rate rests on the join of feedback and exposures. If the join fails, all rates are wrong and look like
those of a very bad recommender.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import duckdb
import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVENT, EXPOSURES, FEEDBACK, TS
from monitor.core.results import Result, Status, Window
from monitor.engines.duckdb import DeadlineExceeded, Engine
from monitor.logs.index import readable
from monitor.logs.source import Source
from monitor.metrics.attribution import NOT_SHOWN, UNATTRIBUTED, attributed
from monitor.metrics.feedback.attribution_health import ATTRIBUTION, LOST, lost_actions
from monitor.metrics.feedback.business import ratio_sums
from monitor.metrics.feedback.time_shift import FARTHEST, joining_shift, shift_text
from monitor.metrics.feedback.why_lost import why_lost
from monitor.settings.recommender import RecommenderSettings
from monitor.statistics.effects import ratio_within
from monitor.window.tables import WindowTables
from monitor.window.verdicts import MAX

MOST_ROWS: Final = 50_000_000
"""The most exposures that are read to find the reason; in larger logs only smaller shifts are tried."""
_TABLE: Final = "exposures_far"
_MISSED: Final = (NOT_SHOWN, UNATTRIBUTED)


class _Share(NamedTuple):
    """The share of actions that join no list, with the lower end of its interval."""

    value: float
    lower: float
    actions: int


@dataclass(frozen=True, slots=True)
class UnattributedVerdict:
    """Judges the share of actions of one window that join no list.

    Attributes:
        settings: of the recommender.
        engine, source, tables: the window's logs; `tables` prepares them at the first call.
        window: the window.
        around: the time span of the exposures in the tables.
    """

    settings: RecommenderSettings
    engine: Engine
    source: Source
    tables: Callable[[], WindowTables]
    window: Window
    around: Window

    def apply(self, results: Sequence[Result]) -> list[Result]:
        """The measured results of feedback, with this share judged by `metrics.max_unattributed`.

        An objective of the team on this metric replaces that bound. A window without actions is not judged,
        and neither is a window whose actions cannot join because the exposures begin too late or are missing.

        Users with many lists have a list at any time. With a wrong time zone their actions then join a list
        that did not show the item. That is violated too, but only if a time shift makes most actions join.
        """
        return [self._verdict(one, results) if one.metric == LOST.name else one for one in results]

    def _verdict(self, measured: Result, results: Sequence[Result]) -> Result:
        has_objective = measured.threshold is not None
        verdict = measured if has_objective else self._judged(measured)
        if verdict.status is Status.OK and not has_objective:
            return self._shifted(verdict, results)
        if verdict.status is Status.VIOLATED:
            why, _ = self._reason()
            return replace(verdict, detail=f"{verdict.detail}; {why}")
        return verdict

    def _judged(self, measured: Result) -> Result:
        most = self.settings.metrics.max_unattributed
        if most is None:
            return measured
        bounded = replace(measured, threshold=most, bound=MAX)
        if measured.status is not Status.OK or measured.lower is None or measured.lower <= most:
            return bounded
        first = self._first_exposure()
        reached = first + self.settings.metrics.attribution if first else None
        if reached is None or reached >= self.window.end:
            begin = "have no rows" if first is None else f"begin at {first:%Y-%m-%dT%H:%M:%SZ}"
            why = f"no exposure is early enough for these actions to join it: the exposures {begin}"
            return replace(bounded, status=Status.UNDEFINED, value=None, lower=None, upper=None, detail=why)
        share = _Share(measured.value or 0.0, measured.lower, measured.samples or 0)
        if reached > self.window.start:  # lists from before the log begins are no fault of the join
            actions = attributed(self.tables().shared, self.settings.metrics)
            since = ibis.literal(reached.replace(tzinfo=None)).cast("timestamp(6)")
            later = _share(actions.filter(actions[TS] >= since))
            if later is None or later.lower <= most:
                return bounded
            share = later
        detail = (
            f"{_percent(share.value)} of {share.actions:,} actions join no list "
            f"(at least {_percent(share.lower)}); metrics.max_unattributed allows {_percent(most)}"
        )
        return replace(bounded, status=Status.VIOLATED, detail=detail)

    def _shifted(self, verdict: Result, results: Sequence[Result]) -> Result:
        """Violated if a time shift would make most actions join a list that showed their item."""
        most = self.settings.metrics.max_unattributed
        if most is None or not self._may_have_missed(most, results):
            return verdict
        share = _share(attributed(self.tables().shared, self.settings.metrics), _MISSED)
        if share is None or share.lower <= most:
            return verdict
        why, helps = self._reason()
        if not helps:
            return verdict
        detail = (
            f"{_percent(share.value)} of {share.actions:,} actions join no list that showed their item "
            f"(at least {_percent(share.lower)}); {why}"
        )
        return replace(verdict, status=Status.VIOLATED, detail=detail)

    def _may_have_missed(self, most: float, results: Sequence[Result]) -> bool:
        """Whether more actions than allowed found no list with their item, as far as it was measured."""
        if ATTRIBUTION.name in self.settings.metrics.disable:
            return True
        ways = [one for one in results if one.metric == ATTRIBUTION.name and one.value is not None]
        missed = sum((one.value or 0) * (one.samples or 0) for one in ways if one.labels["by"] in _MISSED)
        return missed > most * sum(one.samples or 0 for one in ways) / len(ATTRIBUTION.by)

    def _first_exposure(self) -> datetime | None:
        """When the exposures begin: with the log, or with the tables if these begin later."""
        exposures, around = self.tables().shared.around, self.around
        if exposures.count().to_pyarrow().as_py() == 0:
            return None
        oldest = min((one.start for one in self.source.exposures.windows()), default=None)
        if oldest is None or oldest < around.start:
            return around.start
        first = exposures[TS].min().to_pyarrow().as_py()
        return None if first is None else first.replace(tzinfo=around.start.tzinfo)

    def _reason(self) -> tuple[str, bool]:
        """The likely reason, and whether it is a time shift. A search that fails changes no verdict."""
        try:
            return self._find_reason()
        except (duckdb.InterruptException, DeadlineExceeded):
            raise
        except Exception as error:
            return f"the search for the reason failed: {readable(error)}", False

    def _find_reason(self) -> tuple[str, bool]:
        metrics = self.settings.metrics
        feedback = self.tables().shared.feedback
        assert feedback is not None
        feedback = feedback.filter(feedback[EVENT].isin(list(metrics.events)))
        reach = FARTHEST
        while reach and _rows(self.source, self._span(reach)) > MOST_ROWS:
            reach = timedelta(hours=reach // timedelta(hours=2))
        far = self.source.load(self.engine, EXPOSURES, self._span(reach), table=_TABLE)
        if far is None:
            return "the exposures have no rows in the hours around this window", False
        self.tables().made.append(_TABLE)
        best = joining_shift(far, feedback, metrics.attribution)
        if best is None:
            return "the actions have neither a user nor a request id", False
        sample = f"in a sample of {best.actions:,} actions"
        if best.helps:
            why = (
                f"shifted by {shift_text(best.shift)}, {best.shifted:.0%} would join the item that was shown "
                f"({best.joined:.0%} do now, {sample}): {_set_timezone(self.source, best.shift)}"
            )
            return why, True
        why = why_lost(far, feedback, metrics.attribution)
        return f"{why} ({sample}; no time shift of up to {shift_text(reach).lstrip('+')} helps)", False

    def _span(self, reach: timedelta) -> Window:
        """Whole windows, since only these are indexed."""
        length = self.window.length
        before, after = (
            -(-one // length) * length for one in (reach + self.settings.metrics.attribution, reach)
        )
        return Window(self.window.start - before, self.window.end + after)


def _share(actions: ir.Table, ways: tuple[str, ...] = (UNATTRIBUTED,)) -> _Share | None:
    (row,) = lost_actions(actions, ways).to_pyarrow().to_pylist()
    sums = ratio_sums(row, "lost")
    interval = ratio_within(sums) if sums.denominator else None
    if interval is None:
        return None
    return _Share(sums.numerator / sums.denominator, interval.lower, int(sums.denominator))


def _percent(share: float) -> str:
    """A share with as many digits as it takes to see that a small one is above a small bound.

    >>> _percent(0.7), _percent(0.0351)
    ('70%', '3.51%')
    """
    return f"{100 * share:.3g}%"


def _rows(source: Source, span: Window) -> int:
    log = source.exposures
    return sum(log.rows(one) for one in log.windows() if span.start <= one.start < span.end)


def _set_timezone(source: Source, shift: timedelta) -> str:
    zone = source.logs[FEEDBACK].settings.timezone
    own = f"is {zone} now" if zone != "UTC" else f"a zone of UTC{shift_text(-shift).removesuffix(' h')}"
    return f"correct logs.feedback.timezone ({own}), or logs.exposures.timezone if these times are wrong"
