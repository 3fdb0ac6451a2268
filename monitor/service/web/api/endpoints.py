"""The addresses of the API in one table: from it come the routes and the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from monitor.service.web.api import definitions, incidents, recommenders, series, windows
from monitor.service.web.api.answers import (
    AnomalyAnswer,
    Answer,
    ChangeAnswer,
    ExperimentAnswer,
    HistoryAnswer,
    MetricAnswer,
    ModelAnswer,
    MonitorAnswer,
    PageOf,
    RecommenderAnswer,
    RecommenderDetail,
    ResultAnswer,
    RuleAnswer,
    SeriesAnswer,
    StatusAnswer,
    ViolationAnswer,
    WindowAnswer,
)
from monitor.service.web.api.badge import badge
from monitor.service.web.api.context import Context
from monitor.service.web.api.parameters import (
    AnomaliesQuery,
    ChangesQuery,
    HistoryQuery,
    ModelsQuery,
    Paging,
    Query,
    RecommendersQuery,
    ResultsQuery,
    RulesQuery,
    SeriesQuery,
    ViolationsQuery,
    WindowsQuery,
)

OPENAPI: Final = "/openapi.json"
_NAMED: Final = "/recommenders/{recommender}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address: `handler` gets the context, the query, and the names in the path.

    `answer` is None for a badge, which is a picture.
    """

    path: str
    handler: Callable[..., Answer | str]
    answer: type[Answer] | None
    query: type[Query] = Query

    @property
    def names(self) -> list[str]:
        """The names in the path.

        >>> Endpoint("/a/{b}/c/{d}", badge, None).names
        ['b', 'd']
        """
        return re.findall(r"{(\w+)}", self.path)

    @property
    def summary(self) -> str:
        """What it answers: the docstring of its handler."""
        return (self.handler.__doc__ or "").strip()


def _badge(context: Context, asked: Query, recommender: str) -> str:  # noqa: ARG001
    """The state of a recommender as an SVG picture."""
    return badge(context.state(recommender), context.now)


ENDPOINTS: Final = (
    Endpoint("/monitor", definitions.monitor, MonitorAnswer),
    Endpoint("/metrics", definitions.metrics, PageOf[MetricAnswer], Paging),
    Endpoint("/metrics/{metric}", definitions.metric, MetricAnswer),
    Endpoint("/recommenders", recommenders.recommenders, PageOf[RecommenderAnswer], RecommendersQuery),
    Endpoint(_NAMED, recommenders.recommender, RecommenderDetail),
    Endpoint(f"{_NAMED}/status", recommenders.status, StatusAnswer),
    Endpoint(f"{_NAMED}/badge.svg", _badge, None),
    Endpoint(f"{_NAMED}/results", series.results, PageOf[ResultAnswer], ResultsQuery),
    Endpoint(f"{_NAMED}/series", series.series, PageOf[SeriesAnswer], SeriesQuery),
    Endpoint(f"{_NAMED}/series/{{metric}}", series.history, HistoryAnswer, HistoryQuery),
    Endpoint(f"{_NAMED}/windows", windows.windows, PageOf[WindowAnswer], WindowsQuery),
    Endpoint(f"{_NAMED}/violations", incidents.violations, PageOf[ViolationAnswer], ViolationsQuery),
    Endpoint(f"{_NAMED}/anomalies", incidents.anomalies, PageOf[AnomalyAnswer], AnomaliesQuery),
    Endpoint(f"{_NAMED}/anomalies/{{cause}}", incidents.anomaly, AnomalyAnswer),
    Endpoint(f"{_NAMED}/changes", incidents.changes, PageOf[ChangeAnswer], ChangesQuery),
    Endpoint(f"{_NAMED}/rules", definitions.rules, PageOf[RuleAnswer], RulesQuery),
    Endpoint(f"{_NAMED}/rules/{{rule}}", definitions.rule, RuleAnswer),
    Endpoint(f"{_NAMED}/experiments", definitions.experiments, PageOf[ExperimentAnswer], Paging),
    Endpoint(f"{_NAMED}/experiments/{{experiment}}", definitions.experiment, ExperimentAnswer),
    Endpoint(f"{_NAMED}/models", definitions.models, PageOf[ModelAnswer], ModelsQuery),
    Endpoint(f"{_NAMED}/models/{{model}}", definitions.model, ModelAnswer),
)
