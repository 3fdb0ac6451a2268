"""What the addresses of distributions answer: the page of a recommender's figures, and the CSV of each."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from monitor.core.results import Window
from monitor.core.text import VALUE_LENGTH, quoted
from monitor.history.errors import StoreError
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.history.store import Store
from monitor.logs.log import Log
from monitor.report.distributions.csv_file import as_csv
from monitor.report.distributions.desk import RETRY_SECONDS, Busy, Desk, Drawn
from monitor.report.distributions.page import DistributionsPage, distributions_page
from monitor.report.distributions.span import SpanError, newest_window, whole_windows
from monitor.service.file_index import restore
from monitor.service.web.api.parameters import parse_time
from monitor.settings.config import Config
from monitor.settings.recommender import RecommenderSettings

log = logging.getLogger(__name__)

_PARAMETERS = ("start", "end", "refresh")  # `refresh` is of every page
_NOTHING_JUDGED = (
    "No window has been judged yet, so there is nothing to draw. Choose a span to draw it anyway."
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A page with its status and headers."""

    page: DistributionsPage
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Distributions:
    """Finds the recommender and the span of a request, and asks the desk for the figures."""

    def __init__(
        self, current: Callable[[], Snapshot], config: Callable[[], Config | None], desk: Desk
    ) -> None:
        self._current, self._config, self._desk = current, config, desk

    def page(self, recommender: str, asked: QueryParams, now: datetime) -> Answer:
        """The page; a span that cannot be drawn is refused on it with a sentence.

        Raises HTTPException 404 if there is no such recommender.
        """
        snapshot, config, settings, state = self._of(recommender)
        by_spark = config.engine.kind == "spark"

        def refused(why: str, status: int, span: Window | None = None, **headers: str) -> Answer:
            view = distributions_page(snapshot, recommender, now, span, refusal=why)
            return Answer(view, status, headers)

        try:
            span = _span(asked, state, settings)
        except SpanError as error:
            return refused(str(error), 400)
        if span is None:
            return refused(_NOTHING_JUDGED, 200)
        try:
            drawn = self._desk.figures(config, settings, span)
        except Busy as busy:
            why = f"{busy} Only one request reads the logs at a time. Ask again in half a minute."
            return refused(why, 503, span, **{"Retry-After": str(RETRY_SECONDS)})
        view = distributions_page(snapshot, recommender, now, span, drawn, by_another_engine=by_spark)
        return Answer(view, 200 if drawn.finished else 503)

    def csv(self, recommender: str, name: str, asked: QueryParams) -> tuple[str, str]:
        """The CSV file of a figure, and its name.

        Raises HTTPException: 404 if there is no such figure or it has no numbers, 400 for a wrong span, 503
        while another request is computing.
        """
        _, config, settings, state = self._of(recommender)
        try:
            span = _span(asked, state, settings)
        except SpanError as error:
            raise HTTPException(400, str(error)) from None
        if span is None:
            raise HTTPException(404, _NOTHING_JUDGED)
        figure = self._drawn(config, settings, span).figure(name)
        if figure is None:
            raise HTTPException(404, "There is no figure of this name.")
        if figure.table is None:
            raise HTTPException(404, figure.why)
        start = f"{span.start.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        return as_csv(figure.table), f"{settings.name}-{name}-{start}.csv"

    def _drawn(self, config: Config, settings: RecommenderSettings, span: Window) -> Drawn:
        try:
            return self._desk.figures(config, settings, span)
        except Busy as busy:
            raise HTTPException(503, str(busy), {"Retry-After": str(RETRY_SECONDS)}) from None

    def _of(self, recommender: str) -> tuple[Snapshot, Config, RecommenderSettings, RecommenderState]:
        snapshot, config = self._current(), self._config()
        if config is None:
            raise HTTPException(404, "There is no config, so that no log is known to read.")
        settings = next((one for one in config.recommenders if one.name == recommender), None)
        state = next((one for one in snapshot.recommenders if one.name == recommender), None)
        if settings is None:
            raise HTTPException(404, "There is no recommender of this name in the config.")
        return snapshot, config, settings, state or RecommenderState(recommender)


def known_files(store: Store | None) -> Callable[[str, Log], None]:
    """Fills the index of a log from the history, so that only files that are new to it are read."""

    def fill(recommender: str, each: Log) -> None:
        if store is None:
            return
        try:
            restore(each, store, recommender, each.name)
        except StoreError as error:
            log.warning("the index of %s is read from its files, not from the history: %s", each.name, error)

    return fill


def _span(asked: QueryParams, state: RecommenderState, settings: RecommenderSettings) -> Window | None:
    """The span that the query asks for, by default the newest judged window; None if none was judged."""
    for name in asked:
        if name not in _PARAMETERS:
            what = quoted(name, VALUE_LENGTH, "...")
            raise SpanError(f"There is no parameter {what} at this address. It takes start, end.")
    start, end = (_moment(name, asked.get(name, "")) for name in ("start", "end"))
    if start is None and end is None:
        return newest_window(state)
    return whole_windows(start, end, settings.window)


def _moment(name: str, text: str) -> datetime | None:
    if not text.strip():
        return None
    try:
        return parse_time(text.strip())
    except (ValueError, OverflowError):
        raise SpanError(
            f"{name}={quoted(text, VALUE_LENGTH, '...')} is no time between 1970 and 2199. Write it "
            "in ISO 8601, such as 2026-03-01T10:00:00Z."
        ) from None
