"""The rows of a span as the tables of its metrics, read with an engine of their own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.errors import ExpectedError
from monitor.core.results import Result, Window
from monitor.core.text import visible
from monitor.engines.duckdb import Engine
from monitor.logs.empty import empty_exposures, feedback_of
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.logs.windows import Parts
from monitor.metrics.family import Family
from monitor.metrics.measure import resolved
from monitor.metrics.shared import Shared, answered
from monitor.models.samples import Samples
from monitor.report import numbers
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import RecommenderSettings

_EXPOSURES: Final = "drawn_exposures"


class Missing(ExpectedError):
    """Why a figure cannot be drawn, as one sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class SpanRows:
    """The logs of one recommender in a span of whole windows.

    The tables are those of `monitor.window.tables`, without the history, which no figure needs.

    Args:
        engine: an engine that nothing else uses.
        source: the logs, whose files are indexed.
        settings: of the recommender.
        span: whole windows.
        now: the time on the clock.
    """

    def __init__(
        self, engine: Engine, source: Source, settings: RecommenderSettings, span: Window, now: datetime
    ) -> None:
        self.engine, self.source, self.settings, self.span, self.now = engine, source, settings, span, now
        self.parts = parts_of(source, settings, span.length)
        self._results: dict[str, list[Result]] = {}

    @property
    def window(self) -> timedelta:
        """The length of the recommender's windows."""
        return self.source.time.window

    @cached_property
    def shared(self) -> Shared:
        """The exposures of the span with what belongs to them.

        Raises Missing if the recommender has no log of exposures.
        """
        source, engine, span = self.source, self.engine, self.span
        if c.EXPOSURES not in source.logs:
            raise Missing("The config has no log of exposures.")
        loaded = source.load(engine, c.EXPOSURES, span, table=_EXPOSURES)
        if loaded is None:
            known = source.id_types() | source.schema(c.EXPOSURES)
            loaded = empty_exposures(engine, _EXPOSURES, known=known)
        responses = around = None
        if c.FEEDBACK in source.logs:
            reach = self.parts.span(span, c.FEEDBACK)
            responses = feedback_of(engine, source, reach, "responses")
            around = source.load(engine, c.EXPOSURES, reach, table="exposures_around")
        return Shared(
            engine.view("exposures", answered(loaded)),
            attempts=loaded,
            catalog=source.load_catalog(engine, table="catalog"),
            feedback=feedback_of(engine, source, span, "feedback"),
            responses=responses,
            around=around,
            window=(span.start.replace(tzinfo=None), span.end.replace(tzinfo=None)),
            # Under names of their own: the samples of models are labelled by tables of the usual names.
            materialise=lambda name, expression: engine.create(f"drawn_{name}", expression),
        )

    @cached_property
    def metrics(self) -> MetricSettings:
        """The settings of the metrics; the figures need metrics that may be switched off elsewhere."""
        return resolved(self.settings.metrics, self.shared).model_copy(update={"disable": ()})

    def results(self, family: Family, key: str | None = None) -> list[Result]:
        """The results of a family of metrics on the span; empty if the logs cannot give them."""
        name = f"{family.name} {key or ''}"
        if name not in self._results:
            self._results[name] = []
            if family.reason_not(self.shared, self.metrics) is None:
                rows = self.shared.answer(
                    family.name, key, lambda: family.measure(self.shared, self.metrics, key)
                )
                self._results[name] = family.results(rows, self.metrics, key, key)
        return self._results[name]

    def result(self, family: Family, metric: str, **labels: str) -> Result | None:
        """The result with exactly these labels; None if the family does not give it."""
        wanted: Mapping[str, str] = labels
        found = (one for one in self.results(family) if one.metric == metric and one.labels == wanted)
        return next(found, None)

    def need_exposures(self, column: str = "") -> Shared:
        """The shared tables, if the span has rows of exposures and these have the column.

        Raises Missing with the reason.
        """
        shared = self.shared
        if not self.count(c.EXPOSURES):
            raise Missing(self.nothing(c.EXPOSURES))
        if column and column not in shared.exposures.columns:
            raise Missing(f"The log of exposures has no column {column}.")
        return shared

    def need_feedback(self) -> None:
        """Raises Missing if there is no feedback on the span's lists."""
        if c.FEEDBACK not in self.source.logs:
            raise Missing("The config has no log of feedback, so nothing is known of what users did.")
        if not self.count(c.FEEDBACK, self.parts.span(self.span, c.FEEDBACK)):
            raise Missing(self.nothing(c.FEEDBACK, "There is no feedback on these lists yet."))

    def incomplete(self) -> tuple[str, ...]:
        """A note if actions on the span's lists may still come or were lost."""
        last = Window(self.span.end - self.window, self.span.end)
        ready, late = self.parts.completeness(last, c.FEEDBACK, self.now)
        if ready and late is None:
            return ()
        return (f"Actions on these lists may be missing: {visible(late or 'they may still come')}.",)

    def count(self, log: str, span: Window | None = None) -> int:
        """The rows of a log in a span, by the index of its files."""
        over = span or self.span
        steps = over.length // self.window
        windows = (Window.of(over.start + step * self.window, self.window) for step in range(steps))
        return sum(self.source.logs[log].rows(one) for one in windows)

    def nothing(self, log: str, otherwise: str = "") -> str:
        """Why a log has no rows in the span, as one sentence."""
        each: Log = self.source.logs[log]
        if each.error is not None:
            return f"The log cannot be read: {visible(each.error)}."
        if each.has_rotated(self.span):
            return f"The files of the log of {log} with rows of this span were rotated away."
        lost = each.lost(self.span)
        if lost is not None:
            return f"The rows of the log of {log} in this span are lost: {visible(lost)}."
        first = min((one.start for one in each.windows()), default=None)
        if first is None:
            return otherwise or f"No row of the log of {log} can be read."
        if self.span.end <= first:
            return (
                f"The log of {log} now begins at {numbers.moment(first)}: older files were rotated away, or "
                "never had rows of this span."
            )
        return otherwise or f"The log of {log} has no rows in this span."

    @cached_property
    def samples(self) -> Samples:
        """The samples of the models. Raises Missing if the recommender has no log of samples."""
        if c.SAMPLES not in self.source.logs:
            raise Missing("The config has no log of samples.")
        samples = Samples(self.settings, self.source, self.parts)
        samples.look(self.engine)
        return samples

    @cached_property
    def online_span(self) -> Window:
        """The time whose online samples are drawn: that of the check of models, at least the span."""
        return self.parts.samples_of(self.span)

    @cached_property
    def online(self) -> ir.Table | None:
        """The online samples; None if there are none."""
        return self.samples.online(self.engine, self.span)


def parts_of(source: Source, settings: RecommenderSettings, length: timedelta) -> Parts:
    """How far the parts of a span of this length reach."""
    return Parts.of(
        source,
        settings.metrics.attribution,
        max(settings.models.over, length),
        joined=settings.models.online == c.EXPOSURES,
    )
