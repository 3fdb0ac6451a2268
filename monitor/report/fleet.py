"""The overview of all recommenders: a line each, the most urgent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from monitor.core.results import Status, rank, worst_status
from monitor.core.text import plural, visible
from monitor.health.specs import HEALTH_SCORE
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.report import numbers, rows
from monitor.report.frame import frame
from monitor.report.page import RecommenderView
from monitor.report.sparkline import SmallLine, small_line
from monitor.report.views import Frame, ProblemView, TimeView, Verdict

_LINES: Final = 200  # on a page
_POINTS: Final = 20  # of a sparkline: a line is small
_SENTENCE: Final = 90  # characters


@dataclass(frozen=True, slots=True)
class FleetLine:
    """One recommender. `problem` is the most urgent one, `more` counts the others."""

    name: str
    href: str
    verdict: Verdict
    is_held: bool  # maintenance holds its alerts back
    problem: str
    sentence: str
    more: int
    since: TimeView | None
    health: str
    last_window: str
    spark: SmallLine | None


@dataclass(frozen=True, slots=True)
class StateOption:
    """A state to filter by, and how many recommenders have it."""

    key: str
    label: str


@dataclass(frozen=True, slots=True)
class FleetPage:
    """The overview. `shown` says how many lines fit the search, `left_out` how many of them are not shown."""

    frame: Frame
    summary: str
    verdict: Verdict
    lines: tuple[FleetLine, ...]
    shown: str
    left_out: int
    options: tuple[StateOption, ...]
    state: str
    search: str
    empty: str


class Fleet:
    """All recommenders of a snapshot, the most urgent first. Searches of it cost little."""

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self.snapshot, self.now = snapshot, now
        self._views = [RecommenderView(one, snapshot, now) for one in snapshot.recommenders]
        pairs = zip(snapshot.recommenders, self._views, strict=True)
        self._ordered = sorted(pairs, key=lambda pair: _urgency(*pair))
        self._lines: dict[str, FleetLine] = {}

    def page(self, state: str = "", search: str = "") -> FleetPage:
        """The recommenders in this state whose name contains all words of the search."""
        words = search.lower().split()
        fitting = [
            (own, view)
            for own, view in self._ordered
            if (not state or view.status == state) and all(word in own.name.lower() for word in words)
        ]
        return FleetPage(
            frame=frame(self.snapshot, self.now),
            summary=_headline(self._views),
            verdict=rows.verdict(worst_status(view.status for view in self._views)),
            lines=tuple(self._line(own, view) for own, view in fitting[:_LINES]),
            shown=f"{len(fitting):,} of {plural(len(self._views), 'recommender')}",
            left_out=max(0, len(fitting) - _LINES),
            options=_options(self._views),
            state=state,
            search=visible(search),
            empty="No recommender fits the search." if words or state else "There is no recommender to show.",
        )

    def _line(self, state: RecommenderState, view: RecommenderView) -> FleetLine:
        if state.name not in self._lines:
            self._lines[state.name] = _line(state, view, self.now)
        return self._lines[state.name]


def _headline(views: Sequence[RecommenderView]) -> str:
    if not views:
        return "No recommender is configured"
    if all(view.empty and not view.error for view in views):
        return "Nothing has been judged yet"
    bad = sum(view.status is not Status.OK for view in views)
    if len(views) == 1:
        well = f"All is well {'again ' if views[0].lately else ''}with {views[0].name}"
        return f"{views[0].name} needs attention" if bad else well
    if not bad:
        return f"All is well with {len(views):,} recommenders"
    return f"{bad} of {len(views):,} recommenders {'needs' if bad == 1 else 'need'} attention"


def _urgency(state: RecommenderState, view: RecommenderView) -> tuple[int, int, float, str]:
    """Those in maintenance after those that alert; then the worst state, then the newest problem."""
    group = 2 if view.status is Status.OK else 1 if state.maintenance else 0
    return group, rank(view.status), -view.newest_problem, state.name


def _line(state: RecommenderState, view: RecommenderView, now: datetime) -> FleetLine:
    first = view.problems[0] if view.problems else None
    score = next((one for one in state.series if one.result.metric == HEALTH_SCORE.name), None)
    spark = score or _requests(state.series)
    window = state.last_window
    return FleetLine(
        name=view.name,
        href=view.href,
        verdict=view.verdict,
        is_held=state.maintenance is not None,
        problem=first.name if first else ("cannot run" if view.error else ""),
        sentence=_shortened(first, view),
        more=max(0, len(view.problems) - 1),
        since=first.since if first else None,
        health="" if score is None or score.result.value is None else numbers.share(score.result.value),
        last_window="" if window is None else numbers.age(window.end, now),
        spark=None if spark is None else _small(spark),
    )


def _shortened(problem: ProblemView | None, view: RecommenderView) -> str:
    text = problem.sentence if problem else view.error or view.empty
    return text if len(text) <= _SENTENCE else f"{text[:_SENTENCE].rstrip()}…"


def _requests(series: Iterable[Series]) -> Series | None:
    """The number of requests, which every log of exposures has."""
    for one in series:
        if one.result.metric == "volume" and dict(one.result.labels) == {"by": "requests"}:
            return one
    return None


def _small(series: Series) -> SmallLine | None:
    name = "health" if series.result.metric == HEALTH_SCORE.name else "requests"
    return small_line(series.past[-_POINTS:], rows.shower_of(series.result), name)


def _options(views: Sequence[RecommenderView]) -> tuple[StateOption, ...]:
    counts = Counter(view.status for view in views)
    present = sorted(counts, key=rank)
    return (
        StateOption("", f"any state ({len(views):,})"),
        *(StateOption(one.value, f"{rows.verdict(one).word} ({counts[one]:,})") for one in present),
    )
