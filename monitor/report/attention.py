"""The state of a recommender and the series that need attention, without the rows of a page.

A page draws every series, which takes long for hundreds of recommenders. This looks at standings alone. A
test holds that both agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from monitor.core.results import ResultKind, Status, rank, worst_status
from monitor.history.snapshot import RecommenderState, Series
from monitor.metrics.feedback.attribution_health import LOST
from monitor.report import rows
from monitor.report.anomalies import anomaly_trouble
from monitor.report.forecast_section import forecast_trouble
from monitor.report.gaps import gaps_that_count
from monitor.report.platform_section import platform_trouble


@dataclass(frozen=True, slots=True)
class Attention:
    """The state of a recommender, and the series that need attention, the worst first."""

    status: Status
    series: tuple[Series, ...]

    @property
    def violated(self) -> tuple[Series, ...]:
        """The series that are violated now."""
        return tuple(one for one in self.series if one.standing is Status.VIOLATED)

    @property
    def unjudged(self) -> tuple[Series, ...]:
        """The series that should have a verdict and have none: no data, late, or an error."""
        return tuple(one for one in self.series if one.standing is not Status.VIOLATED)

    @property
    def since(self) -> datetime | None:
        """When the state began: the earliest start of a series that has it. None if no series has it."""
        return min((one.since for one in self.series if one.standing is self.status), default=None)


def attention_of(state: RecommenderState) -> Attention:
    """What of a recommender needs attention."""
    of_bands = [one for one in state.series if rows.is_of_bands(one.result)]
    of_platform = [one for one in state.series if one.result.kind.is_of_the_platform]
    of_forecast = [one for one in state.series if one.result.kind is ResultKind.FORECAST]
    apart = {id(one) for one in (*of_bands, *of_platform, *of_forecast)}
    every = [one for one in state.series if id(one) not in apart]
    rules = [one for one in every if rows.is_rule(one.result)]
    of_models = [one for one in every if rows.is_of_model(one.result)]
    objectives = [one for one in every if rows.has_objective(one.result) and not rows.is_of_model(one.result)]
    gaps = gaps_that_count(of_models)
    failed = [
        one
        for one in every
        if one.result.status is Status.ERROR
        and not (rows.is_rule(one.result) or rows.is_slice(one.result))
        and one.result.kind is not ResultKind.HEALTH
    ]
    judged_objectives = [one for one in objectives if one.standing is not Status.UNDEFINED]
    judged = [*(one for one in rules if one.standing is not Status.UNDEFINED), *judged_objectives]
    vanished, broken = forecast_trouble(of_forecast)
    trouble = [*anomaly_trouble(of_bands), *platform_trouble(of_platform), *vanished, *broken]
    statuses = [one.standing for one in (*judged, *gaps, *trouble)]
    statuses += [Status.ERROR] if failed or state.error is not None else []
    waiting = {info.rule for info in state.rules} - {one.result.labels.get("rule") for one in rules}
    asked_for = [one for one in judged_objectives if one.result.metric != LOST.name]
    if not (rules or asked_for or gaps or waiting):  # then the state of the logs counts
        logs = [one for one in every if one.result.kind is ResultKind.LOG]
        statuses += [one.standing for one in logs if not rows.is_slice(one.result)]
    shown = {id(one): one for one in (*judged, *gaps, *trouble, *failed)}
    needs = [one for one in shown.values() if one.standing not in (Status.OK, Status.UNDEFINED)]
    return Attention(worst_status(statuses), tuple(sorted(needs, key=lambda one: rank(one.standing))))
