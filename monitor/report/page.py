"""One recommender's page: what needs attention first, and sections that are shown on demand.

The templates only lay out these views. Nothing else is read: no store and no clock. A view builds a section
only when it is asked for, so a fleet of many recommenders costs little.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final
from urllib.parse import quote

from monitor.core.results import Result, ResultKind, Status, rank, worst_status
from monitor.core.text import plural, visible, visible_lines
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.metrics.feedback.attribution_health import LOST
from monitor.report import anomalies, bands, gaps, numbers, rows, sections
from monitor.report.changes import changes_beside
from monitor.report.forecast_section import forecast_attention, forecast_view
from monitor.report.frame import frame
from monitor.report.health import health_view
from monitor.report.links import OVERVIEW, Sites
from monitor.report.models import model_views
from monitor.report.platform_section import platform_attention, platform_view
from monitor.report.problems import Trouble, is_stalled, problems
from monitor.report.runbooks import runbook_address
from monitor.report.views import (
    AnomaliesView,
    ChangeView,
    ForecastView,
    Frame,
    Group,
    HealthView,
    Lately,
    LogView,
    ModelView,
    PlatformView,
    ProblemView,
    SectionLink,
    SeriesRow,
    TimeView,
    Verdict,
)
from monitor.settings.recommender import ROLLUP

_SLICES: Final = "slices/"


@dataclass(frozen=True, slots=True)
class RecommenderPage:
    frame: Frame
    recommender: RecommenderView


@dataclass(frozen=True, slots=True)
class SectionPage:
    """One section of a recommender's page. `slices` are set if it is that of a dimension."""

    frame: Frame
    recommender: RecommenderView
    section: SectionLink
    slices: Group | None


def recommender_page(
    snapshot: Snapshot, recommender: str, now: datetime, sites: Sites | None = None
) -> RecommenderPage | None:
    """One recommender's page, None if there is no such recommender."""
    view = _view_of(snapshot, recommender, now, sites)
    return None if view is None else RecommenderPage(frame(snapshot, now), view)


def section_page(
    snapshot: Snapshot, recommender: str, section: str, now: datetime, sites: Sites | None = None
) -> SectionPage | None:
    """A section of a recommender, None if it has no such section."""
    view = _view_of(snapshot, recommender, now, sites)
    link = None if view is None else next((one for one in view.sections if one.key == section), None)
    if view is None or link is None:
        return None
    slices = view.slice_group(section.removeprefix(_SLICES)) if section.startswith(_SLICES) else None
    return SectionPage(frame(snapshot, now), view, link, slices)


def _view_of(
    snapshot: Snapshot, recommender: str, now: datetime, sites: Sites | None
) -> RecommenderView | None:
    state = next((one for one in snapshot.recommenders if one.name == recommender), None)
    return None if state is None else RecommenderView(state, snapshot, now, sites)


class RecommenderView:
    """Everything that is shown of one recommender, each part made when it is first read."""

    def __init__(
        self, state: RecommenderState, snapshot: Snapshot, now: datetime, sites: Sites | None = None
    ) -> None:
        self._state, self._snapshot, self._now, self._sites = state, snapshot, now, sites or Sites()
        self._of_bands: list[Series] = []
        self._of_platform: list[Series] = []
        self._of_forecast: list[Series] = []
        self._rules: list[Series] = []
        self._of_models: list[Series] = []
        self._of_health: list[Series] = []
        self._metrics: list[Series] = []
        self._slices: list[Series] = []
        for one in state.series:
            self._place_of(one.result).append(one)

    def _place_of(self, result: Result) -> list[Series]:
        kind = result.kind
        if kind is ResultKind.METRIC or kind is ResultKind.LOG:
            return self._slices if rows.is_slice(result) else self._metrics
        if kind is ResultKind.RULE:
            return self._rules
        if kind.is_of_the_past:
            return self._of_bands
        if kind.is_of_the_platform:
            return self._of_platform
        if kind is ResultKind.FORECAST:
            return self._of_forecast
        if rows.is_slice(result):
            return self._slices
        if kind.is_of_models:
            return self._of_models
        return self._of_health if kind is ResultKind.HEALTH else self._metrics

    @property
    def name(self) -> str:
        return visible(self._state.name)

    @property
    def href(self) -> str:
        return rows.recommender_href(self._state.name)

    @property
    def dashboard(self) -> str:
        return self._sites.dashboard(OVERVIEW, self._state.name)

    @property
    def error(self) -> str:
        return visible_lines(self._state.error or "")

    @property
    def judged_elsewhere(self) -> bool:
        """Whether another monitor judges it, or none does yet."""
        return self._state.judged_by is not None

    @property
    def judged_by(self) -> str:
        """The address of the other monitor, if it is one that a link may lead to."""
        address = visible(self._state.judged_by or "")
        return address if address.startswith(("http://", "https://")) else ""

    @property
    def error_runbook(self) -> str:
        return self._sites.runbook("RecsysRecommenderError")

    @property
    def files_runbook(self) -> str:
        return self._sites.runbook("RecsysSkippedFiles")

    @property
    def maintenance(self) -> str:
        """Until when alerts are held back, and why."""
        held = self._state.maintenance
        if held is None:
            return ""
        reason = f": {visible(held.reason)}" if held.reason else ""
        until = numbers.moment(held.until)
        if self._now < held.until:
            return f"Maintenance until {until}{reason}. Nobody is alerted."
        return f"Maintenance until {until} is over{reason}. Alerts are held back until all of it is judged."

    @property
    def empty(self) -> str:
        """Why there is nothing to show yet."""
        if self._state.series:
            return ""
        text = "No window has been judged yet: "
        if self._state.error is not None:
            return text + "the recommender cannot run, see above."
        if all(log.watermark is None for log in self._state.logs):
            return text + "no readable rows have been found in its logs so far."
        return text + "a window is judged once the log has moved past its end by the configured lateness."

    @property
    def last_window(self) -> str:
        return "" if self._state.last_window is None else numbers.window(self._state.last_window)

    @property
    def last_window_href(self) -> str:
        window = self._state.last_window
        return "" if window is None else rows.window_href(self._state.name, window)

    @property
    def last_run(self) -> TimeView | None:
        return None if self._state.last_run is None else rows.moment(self._state.last_run, self._now)

    @property
    def pending(self) -> str:
        return numbers.count(self._state.pending_windows)

    @property
    def logs(self) -> tuple[LogView, ...]:
        return tuple(sections.log_view(log, self._now) for log in self._state.logs)

    @cached_property
    def _pending_rules(self) -> list[SeriesRow]:
        judged = {one.result.labels.get("rule") for one in self._rules}
        return [
            rows.pending_row(self._state.name, info) for info in self._state.rules if info.rule not in judged
        ]

    @cached_property
    def _objectives(self) -> list[Series]:
        found = (*self._metrics, *self._of_health, *self._slices)
        return _worst_first([one for one in found if one.result.threshold is not None])

    @cached_property
    def _gaps(self) -> list[Series]:
        return _worst_first(gaps.gaps_that_count(self._of_models))

    @cached_property
    def troubles(self) -> list[Trouble]:
        """What needs attention, by what it is, the worst and newest of each kind first."""
        now = self._now
        unwell = [one for one in self._rules if one.standing not in _WELL]
        found = [
            Trouble(one, rows.rule_row(one, now, drawn=False), self._runbook_of(one))
            for one in _worst_first(unwell)
        ]
        missed = [one for one in self._objectives if one.standing not in _WELL]
        found += [Trouble(one, rows.objective_row(one, now, drawn=False)) for one in missed]
        for gap in self._gaps:
            if gap.standing not in _WELL:
                row = gaps.attention_row(gap, self._of_models, now)
                found.append(Trouble(gap, row, gaps.first_runbook(gap, self._of_models, self._sites.docs)))
        apart = (
            *anomalies.attention(self._of_bands, now),
            *platform_attention(self._of_platform, now),
            *forecast_attention(self._of_forecast, now),
        )
        found += [Trouble(one, row) for one, row in apart if one.standing not in _WELL]
        failed = [one for one in (*self._metrics, *self._of_models) if one.result.status is Status.ERROR]
        failed = [one for one in failed if not rows.has_objective(one.result)]
        return found + [Trouble(one, rows.objective_row(one, now, drawn=False)) for one in failed]

    def _runbook_of(self, rule: Series) -> str:
        """What the rule itself names as its runbook, if that is a link and the rule is violated."""
        if rule.standing is not Status.VIOLATED:
            return ""
        name = rule.result.labels.get("rule")
        info = next((one for one in self._state.rules if one.rule == name), None)
        return "" if info is None else runbook_address(info.runbook, self._sites.docs)

    @cached_property
    def status(self) -> Status:
        """The worst of everything that is judged. A stopped log is late, even before a window is."""
        applying = [one for one in self._rules if one.standing is not Status.UNDEFINED]
        judged = [*applying, *(one for one in self._objectives if one.standing is not Status.UNDEFINED)]
        statuses = [one.standing for one in (*judged, *self._gaps)]
        statuses += [one.series.standing for one in self.troubles if one.series.standing in _COUNTING]
        statuses += [Status.ERROR for one in self.troubles if one.series.result.status is Status.ERROR]
        statuses += [Status.ERROR] if self._state.error is not None else []
        statuses += [Status.LATE for log in self._state.logs if is_stalled(log, self._state.last_run)]
        # That of LOST is there by default.
        asked_for = [one for one in judged if one.result.metric != LOST.name]
        if not (asked_for or self._gaps or self._pending_rules):  # then the state of the logs counts
            statuses += [one.standing for one in self._metrics if one.result.kind is ResultKind.LOG]
        return worst_status(statuses)

    @property
    def verdict(self) -> Verdict:
        return rows.verdict(self.status)

    @cached_property
    def problems(self) -> tuple[ProblemView, ...]:
        """What needs attention, the worst first."""
        return problems(self._state, self.troubles, self._now, self._sites)

    @property
    def newest_problem(self) -> float:
        """When the newest problem began, as seconds; 0 if there is none."""
        return max((one.series.since.timestamp() for one in self.troubles), default=0.0)

    @property
    def changes(self) -> tuple[ChangeView, ...]:
        """What changed around the beginning of the newest problem."""
        began = [one.series.since for one in self.troubles]
        if not began:
            return ()
        return changes_beside(self._state, self._snapshot, max(began), self._now)

    @property
    def lately(self) -> tuple[Lately, ...]:
        """Rules that are ok again after a recent violation."""
        return tuple(rows.lately(one, self._now) for one in self._rules if rows.is_over(one))

    @property
    def summary(self) -> str:
        """The counts of what is judged."""
        applying = [one.standing for one in self._rules if one.standing is not Status.UNDEFINED]
        pending = len(self._pending_rules)
        counts = Counter(applying)
        violated, ok = counts[Status.VIOLATED], counts[Status.OK]
        unjudged = len(applying) - violated - ok
        parts = [f"{violated} of {plural(len(applying) + pending, 'rule')} violated"] if violated else []
        parts += [f"{unjudged} could not be judged"] if unjudged else []
        parts += [f"{ok} ok" if parts else f"{plural(ok, 'rule')} ok"] if ok else []
        parts += [f"{pending} not judged yet"] if pending else []
        bounds = Counter(one.standing for one in self._objectives)
        missed = bounds[Status.VIOLATED]
        # That of LOST is there by default.
        bounds -= Counter(one.standing for one in self._objectives if one.result.metric == LOST.name)
        met = bounds[Status.OK]
        unknown = bounds.total() - bounds[Status.VIOLATED] - bounds[Status.UNDEFINED] - met
        parts += [f"{plural(missed, 'objective')} missed"] if missed else []
        parts += [f"{plural(unknown, 'objective')} could not be judged"] if unknown else []
        parts += [f"{plural(met, 'objective')} ok"] if met and not (missed or unknown) else []
        of_gaps = Counter(one.standing for one in self._gaps)
        large, fine = of_gaps[Status.VIOLATED], of_gaps[Status.OK]
        unseen = len(self._gaps) - large - fine
        parts += [f"{plural(large, 'AUC gap')} too large"] if large else []
        parts += [f"{plural(unseen, 'AUC gap')} could not be judged"] if unseen else []
        parts += [f"{plural(fine, 'AUC gap')} ok"] if fine and not (large or unseen) else []
        parts += anomalies.counted(self._of_bands)
        return " · ".join(parts) or ("no rule applies to the logs" if self._rules else "no rules")

    @cached_property
    def sections(self) -> tuple[SectionLink, ...]:
        """The sections of the page, in their order. What the recommender does not have is left out."""
        names = {one.result.metric for one in (*self._metrics, *self._of_health)} - _OF_SCORE
        found = [
            ("anomalies", "Anomalies", _found(self._of_bands)) if self._of_bands else None,
            ("platform", "Platform", None) if self._of_platform else None,
            ("forecast", "Forecast", None) if self._of_forecast else None,
            ("rules", "Rules", len(self._rules) + len(self._pending_rules)),
            ("objectives", "Objectives", len(self._objectives)),
            ("models", "Models", len({one.result.labels["model"] for one in self._of_models})),
            ("health", "Health", len(self._of_health) - 1) if self.health else None,
            ("metrics", "Metrics", len(names)),
            *(
                (f"{_SLICES}{dimension}", _title_of(dimension), len(members))
                for dimension, members in self._by_dimension.items()
            ),
            ("monitor", "The monitor itself", None),
        ]
        return tuple(
            SectionLink(
                key=key,
                id=f"slices-{place}" if key.startswith(_SLICES) else key,
                title=title,
                count="" if count is None else numbers.count(count),
                href=f"{self.href}/sections/{quote(key, safe='/', errors='replace')}",
            )
            for place, (key, title, count) in enumerate(filter(None, found))
            if count != 0 or key == "anomalies"
        )

    @cached_property
    def _bands(self) -> bands.Bands:
        return bands.bands_of(self._of_bands)

    @cached_property
    def _by_dimension(self) -> dict[str, list[Series]]:
        return sections.by_dimension(self._slices)

    @property
    def health(self) -> HealthView | None:
        return health_view(self._of_health, self._now)

    @property
    def anomalies(self) -> AnomaliesView | None:
        return anomalies.anomalies_view(self._of_bands, self._now, self._state.clock_change)

    @property
    def banded(self) -> bool:
        """Whether the tables have a column for the expected values."""
        return self.anomalies is not None

    @property
    def platform(self) -> PlatformView | None:
        return platform_view(self._of_platform, self._now)

    @property
    def forecast(self) -> ForecastView | None:
        return forecast_view(self._of_forecast, self._now)

    @property
    def rules(self) -> tuple[SeriesRow, ...]:
        judged = (rows.rule_row(one, self._now) for one in _worst_first(self._rules))
        return (*judged, *self._pending_rules)

    @property
    def objectives(self) -> tuple[SeriesRow, ...]:
        return tuple(rows.objective_row(one, self._now, with_slice=True) for one in self._objectives)

    @property
    def models(self) -> tuple[ModelView, ...]:
        return model_views(self._of_models, self._now, self._sites.docs)

    @property
    def metrics(self) -> tuple[Group, ...]:
        return sections.metric_groups(self._metrics, self._bands, self._now)

    @property
    def slices(self) -> tuple[Group, ...]:
        return tuple(self.slice_group(dimension) for dimension in self._by_dimension)

    def slice_group(self, dimension: str) -> Group:
        """The slices of one dimension."""
        return sections.slice_group(dimension, self._by_dimension[dimension], self._bands, self._now)

    @property
    def durations(self) -> tuple[tuple[str, str], ...]:
        took = sorted(self._state.check_seconds.items())
        return tuple((name, numbers.seconds(seconds)) for name, seconds in took)

    @property
    def counters(self) -> tuple[tuple[str, str], ...]:
        return tuple(sections.counter_rows(self._snapshot, self._state.name))


_WELL: Final = (Status.OK, Status.UNDEFINED)
_COUNTING: Final = tuple(one for one in Status if one not in _WELL)
_OF_SCORE: Final = {"health_score", "health_part"}


def _title_of(dimension: str) -> str:
    return "Days and weeks" if dimension == ROLLUP else f"Slices by {visible(dimension)}"


def _found(series: list[Series]) -> int:
    """How many causes of anomalies were found or could not be checked."""
    return sum(
        one.standing not in (Status.OK, Status.NO_DATA) for one in anomalies.causes_of(series).values()
    )


def _worst_first(series: list[Series]) -> list[Series]:
    """Sorted by state, the worst and newest first. Series that are ok keep their order."""
    return sorted(
        series,
        key=lambda s: (rank(s.standing), 0 if s.standing is Status.OK else -s.since.timestamp()),
    )
