"""The pages on the past: of a metric, a rule, a slice, an experiment, a model, and of one window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal
from urllib.parse import unquote

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.core.results import ResultKind
from monitor.core.text import encodable, visible
from monitor.experiments.specs import EXPERIMENT
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.history.store import Store
from monitor.metrics.family import MODEL_LABEL
from monitor.report import rows
from monitor.report.arms import WIDTH as ARMS_WIDTH
from monitor.report.arms import ArmsPicture, arms_pictures
from monitor.report.frame import frame
from monitor.report.past import TALL, WIDE, Past, Selection, past_of, results_of
from monitor.report.past_csv import past_csv
from monitor.report.trend import HEIGHT, WIDTH
from monitor.report.views import Frame
from monitor.report.window_page import WindowView, window_view
from monitor.service.web.api.parameters import (
    ISO_TIME,
    Labelled,
    Q,
    Query,
    Time,
    TimeRange,
    parse_time,
    read_query,
)
from monitor.service.web.api.refusal import Refusal

_CSV: Final = "text/csv; charset=utf-8"
SIZES: Final = {True: (WIDE, TALL), False: (WIDTH, HEIGHT)}
"""Width and height of a picture, by whether it stands alone."""
_PAGE_ONLY: Final = ("refresh",)  # what a page understands beside its own parameters
_FIELDS: Final = ("from", "to")  # of the form, which sends a field without a time as an empty text


class PastQuery(TimeRange, Labelled):
    """The query of a page on the past."""

    format: Literal["", "csv"] = Field("", description="csv: the same numbers for a spreadsheet")


class WindowQuery(Query):
    """The query of the page of a window."""

    end: Time | None = Field(None, alias="to", description=f"{ISO_TIME}: the end of the window")


@dataclass(frozen=True, slots=True)
class PastPage:
    frame: Frame
    recommender: str
    recommender_href: str
    what: str
    name: str
    past: Past
    arms: tuple[ArmsPicture, ...]


@dataclass(frozen=True, slots=True)
class WindowPage:
    frame: Frame
    recommender: str
    recommender_href: str
    window: WindowView


class PastPages:
    """The routes. `render` makes a page of a template and a view.

    `current` returns the snapshot, `store` is the history; `now` the time that ages are counted to.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot],
        store: Store,
        render: Callable[..., Response],
        now: Callable[[], datetime],
    ) -> None:
        self._current, self._store, self._render, self._now = current, store, render, now

    def routes(self) -> list[Route]:
        one = "/recommenders/{recommender}"
        return [
            Route(one + "/metrics/{metric:text}", self.metric),
            Route(one + "/slices/{dimension}/{value:text}", self.slice),
            Route(one + "/experiments/{experiment:text}", self.experiment),
            Route(one + "/models/{model:text}", self.model),
            Route(one + "/windows/{start}", self.window),
        ]

    def metric(self, request: Request) -> Response:
        metric = request.path_params["metric"]
        return self._past(request, "metric", metric, {}, metric=metric)

    def slice(self, request: Request) -> Response:
        # Only the address as it was sent tells a slash in a name from one between two names.
        dimension, value = map(unquote, request.scope["raw_path"].split(b"/", 5)[-2:])
        name = f"{dimension} = {rows.value_name(value)}"
        return self._past(request, "slice", name, _of_slice(dimension, value))

    def experiment(self, request: Request) -> Response:
        name = request.path_params["experiment"]
        return self._past(request, "experiment", name, {EXPERIMENT: name})

    def model(self, request: Request) -> Response:
        """What is known of a model: its samples, and what it served if exposures are sliced by model."""
        name = request.path_params["model"]
        served = _of_slice(MODEL_LABEL, name)
        return self._past(request, "model", rows.model_name(name), {MODEL_LABEL: name}, served)

    def past_of_rule(self, state: RecommenderState, rule: str, request: Request) -> Past | None:
        """The past of a rule, for its page."""
        asked = _read(PastQuery, request)
        with self._store.reading() as connection:
            return past_of(connection, state, _of_rule(rule, asked), self._now())

    def csv_of_rule(self, state: RecommenderState, rule: str, request: Request) -> Response | None:
        """The past of a rule as CSV, None if a page is asked for."""
        asked = _read(PastQuery, request)
        return self._csv(state, _of_rule(rule, asked)) if asked.format else None

    def window(self, request: Request) -> Response:
        state = self._state(request)
        try:
            start = parse_time(request.path_params["start"])
        except ValueError:
            raise HTTPException(
                404, "This address has no time; it looks like 2026-03-01T10:00:00Z."
            ) from None
        asked = _read(WindowQuery, request)
        with self._store.reading() as connection:
            view = window_view(connection, state, start, asked.end)
        if view is None:
            raise HTTPException(
                404, "No judged window starts at this time; the history may have forgotten it."
            )
        return self._render(request, "window.html", WindowPage(*self._head(state), view), refreshes=False)

    def _past(
        self,
        request: Request,
        what: str,
        name: str,
        *labels: Mapping[str, str],
        metric: str | None = None,
    ) -> Response:
        state, asked = self._state(request), _read(PastQuery, request)
        wanted = _labels(asked)
        chosen = _selection(asked, metric=metric, labels=[{**own, **wanted} for own in labels])
        if asked.format:
            return self._csv(state, chosen)
        with self._store.reading() as connection:
            past = past_of(connection, state, chosen, self._now())
        if past is None:
            raise HTTPException(
                404, f"The history has no results of this {what}; it may have forgotten them."
            )
        arms = arms_pictures(state.series, name) if what == "experiment" else ()
        view = PastPage(*self._head(state), what, visible(name), past, arms)
        return self._render(request, "past.html", view, refreshes=False, sizes=SIZES, arms_width=ARMS_WIDTH)

    def _csv(self, state: RecommenderState, chosen: Selection) -> Response:
        with self._store.reading() as connection:
            found = results_of(connection, state, chosen, self._now())
        if found is None:
            raise HTTPException(404, "The history has no such series of this recommender.")
        headers = {"Content-Disposition": 'attachment; filename="past.csv"'}
        return Response(past_csv(found).encode("utf-8", "replace"), media_type=_CSV, headers=headers)

    def _state(self, request: Request) -> RecommenderState:
        name = request.path_params["recommender"]
        for one in self._current().recommenders:
            if one.name == name:
                return one
        raise HTTPException(404, "There is no recommender of this name.")

    def _head(self, state: RecommenderState) -> tuple[Frame, str, str]:
        shown = frame(self._current(), self._now())
        return shown, visible(state.name), rows.recommender_href(state.name)


def _read(model: type[Q], request: Request) -> Q:
    """The query of a page; 400 with what is expected if it is wrong."""
    given = [
        (name, text)
        for name, text in request.query_params.multi_items()
        if name not in _PAGE_ONLY and (name not in _FIELDS or text.strip())
    ]
    try:
        return read_query(model, given)
    except Refusal as refusal:
        known = f" It takes {', '.join(refusal.exists)}." if refusal.exists else ""
        raise HTTPException(400, f"{refusal.detail}{known}") from None


def _labels(asked: Labelled) -> dict[str, str]:
    try:
        return dict(asked.wanted_labels())
    except Refusal as refusal:
        raise HTTPException(400, refusal.detail) from None


def _selection(asked: PastQuery, **chosen: Any) -> Selection:
    """The series and the span that an address asks for."""
    named = [("label", one) for one in asked.label]
    named += [("check", asked.check)] if asked.check is not None else []
    return Selection(query=tuple(named), check=asked.check, start=asked.begin, end=asked.end, **chosen)


def _of_slice(dimension: str, value: str) -> dict[str, str]:
    return {"dimension": dimension, "value": value}


def _of_rule(rule: str, asked: PastQuery) -> Selection:
    return _selection(
        asked,
        metric=ResultKind.RULE.value,
        labels=[{**_labels(asked), "rule": encodable(rule)}],
        sliced=None,
    )
