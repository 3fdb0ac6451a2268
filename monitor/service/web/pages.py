"""The pages for people: routes that render the views of `monitor.report`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from monitor import __version__
from monitor.core.text import visible
from monitor.history.errors import StoreError
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.report import anomaly, cause, evidence, fleet, page, runbook_page
from monitor.report.distributions.desk import Desk
from monitor.report.links import Sites
from monitor.report.report_files import parse_name, reports_in
from monitor.report.reports_page import reports_page
from monitor.report.scatter import TEMPLATES
from monitor.service.prometheus.budget import LeftOut
from monitor.service.web.conditional import conditional
from monitor.service.web.distributions import Distributions
from monitor.service.web.past_pages import SIZES, PastPages
from monitor.settings.config import Config

REFRESH_SECONDS: Final = 30
_REPORT_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HERE: Final = Path(__file__).parent
_HTML: Final = "text/html; charset=utf-8"
_STATIC: Final = {"style.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}
_NO_RECOMMENDER: Final = "There is no recommender of this name."
_MOST_SEARCHED: Final = 200  # characters


class Pages:
    """The pages. `current` returns the snapshot that they show, `config` what was last loaded.

    `store` is the history, without which there are no pages on the past. `desk` reads the logs for the
    figures of distributions. `left_out` says what the last scrape left out of a recommender.
    """

    def __init__(
        self,
        current: Callable[[], Snapshot],
        sites: Sites,
        config: Callable[[], Config | None] = lambda: None,
        store: Store | None = None,
        desk: Desk | None = None,
        left_out: Callable[[str], LeftOut | None] = lambda _: None,
    ) -> None:
        self._current = current
        self._left_out = left_out
        self._config = config
        self._sites = sites
        self._distributions = Distributions(current, config, desk or Desk())
        self._fleet: fleet.Fleet | None = None
        self._templates = Environment(
            loader=FileSystemLoader([_HERE / "templates", TEMPLATES]),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["below"] = _below
        self._past = None if store is None else PastPages(current, store, self._render, _now)

    def routes(self) -> list[Route]:
        """The routes. The name of a model or of a dimension may be empty or contain slashes."""
        one = "/recommenders/{recommender}"
        return [
            *(() if self._past is None else self._past.routes()),
            Route("/", self.overview),
            Route(one, self.recommender),
            Route(one + "/sections/{section:text}", self.section),
            Route(one + "/distributions", self.distributions),
            Route(one + "/distributions/{name}.csv", self.distribution_csv),
            Route(one + "/rules/{rule:path}", self.rule),
            Route(one + "/anomalies/{cause:path}", self.anomaly),
            Route(one + "/gaps/{pair}/{cause}/model-{model:text}", self.cause),
            Route("/runbooks/{name:path}", self.runbook),
            Route("/reports/", self.reports),
            Route("/reports/{name}", self.report),
            *(Route(f"/static/{name}", partial(_static, name)) for name in _STATIC),
        ]

    def overview(self, request: Request) -> Response:
        """The fleet; with a single recommender and no search, that recommender itself."""
        snapshot, asked = self._current(), request.query_params
        state, search = asked.get("state", ""), asked.get("q", "")[:_MOST_SEARCHED]
        if len(snapshot.recommenders) == 1 and not (state or search):
            return self._of_recommender(request, snapshot, snapshot.recommenders[0].name, is_alone=True)
        return self._render(request, "overview.html", self._fleet_of(snapshot).page(state, search))

    def _fleet_of(self, snapshot: Snapshot) -> fleet.Fleet:
        """The sorted fleet, kept until the next snapshot or minute: many readers ask for the same."""
        now, kept = _now(), self._fleet
        if kept is None or kept.snapshot is not snapshot or kept.now != now:
            kept = self._fleet = fleet.Fleet(snapshot, now)
        return kept

    def recommender(self, request: Request) -> Response:
        name = request.path_params["recommender"]
        return self._of_recommender(request, self._current(), name, is_alone=False)

    def _of_recommender(self, request: Request, snapshot: Snapshot, name: str, *, is_alone: bool) -> Response:
        view = page.recommender_page(snapshot, name, _now(), self._sites)
        if view is None:
            raise HTTPException(404, _NO_RECOMMENDER)
        return self._render(
            request,
            "recommender.html",
            view,
            is_alone=is_alone,
            left_out=self._left_out(name),
            left_out_runbook=self._sites.runbook("RecsysSeriesBudgetReached"),
        )

    def section(self, request: Request) -> Response:
        view_of = partial(page.section_page, sites=self._sites)
        return self._show(request, view_of, "section.html", "This recommender has no such section now.")

    def rule(self, request: Request) -> Response:
        """The last window of a rule, and its past; with format=csv that alone."""
        snapshot, rule = self._current(), request.path_params["rule"]
        name = request.path_params["recommender"]
        view = evidence.rule_page(snapshot, name, rule, _now(), docs_url=self._sites.docs)
        if view is None:
            raise HTTPException(404, "There is no rule of this name; it may have left the config.")
        if self._past is None:
            return self._render(request, "rule.html", view, past=None)
        state = next(one for one in snapshot.recommenders if one.name == name)
        if (table := self._past.csv_of_rule(state, rule, request)) is not None:
            return table
        try:
            past = self._past.past_of_rule(state, rule, request)
        except StoreError:  # the page says that the history is down; the last window is known without it
            past = None
        return self._render(request, "rule.html", view, past=past, sizes=SIZES)

    def cause(self, request: Request) -> Response:
        view_of = partial(cause.cause_page, docs_url=self._sites.docs)
        missing = "The last window has no such cause of a gap; the gap may have resolved."
        return self._show(request, view_of, "cause.html", missing)

    def anomaly(self, request: Request) -> Response:
        view_of = partial(anomaly.anomaly_page, docs_url=self._sites.docs)
        return self._show(request, view_of, "anomaly.html", "There is no anomaly of this name in any window.")

    def distributions(self, request: Request) -> Response:
        answer = self._distributions.page(request.path_params["recommender"], request.query_params, _now())
        shown = self._render(
            request, "distributions.html", answer.page, status=answer.status, refreshes=False
        )
        shown.headers.update(answer.headers)
        return shown

    def distribution_csv(self, request: Request) -> Response:
        text, name = self._distributions.csv(**request.path_params, asked=request.query_params)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, headers=headers, media_type="text/csv; charset=utf-8")

    def runbook(self, request: Request) -> Response:
        view_of = partial(runbook_page.runbook_page, docs_url=self._sites.docs)
        return self._show(request, view_of, "runbook.html", "There is no runbook of this name.")

    def reports(self, request: Request) -> Response:
        folder = self._report_folder()
        if folder is None:
            raise HTTPException(404, "No reports are written: the config has no `reports`.")
        view = reports_page(self._current(), reports_in(folder), datetime.now(UTC))
        return self._render(request, "reports.html", view, refreshes=False)

    def report(self, request: Request) -> Response:
        folder, name = self._report_folder(), request.path_params["name"]
        if folder is None or parse_name(name) is None or not (folder / name).is_file():
            raise HTTPException(404, "There is no report of this name.")
        # Its own policy, in the file, is stricter: it names its style.
        return FileResponse(folder / name, headers={"Content-Security-Policy": _REPORT_POLICY})

    def history_down(self, request: Request, error: Exception) -> Response:
        """A page that needs the history, while it cannot be read."""
        text = f"The history cannot be read now, so there is no past to show: {visible(error)}"
        what = {"heading": "The history is down", "path": visible(request.url.path, 200), "text": text}
        return self._render(request, "not_found.html", what, status=503)

    def _report_folder(self) -> Path | None:
        """The folder of reports, None if none are written."""
        config = self._config()
        return None if config is None or config.reports is None else config.reports.folder

    def not_found(self, request: Request, error: Exception) -> Response:
        detail = getattr(error, "detail", "")
        text = detail if detail != "Not Found" else "There is no page at this address."
        what = {"heading": "Nothing here", "path": visible(request.url.path, 200), "text": text}
        return self._render(request, "not_found.html", what, status=404, refreshes=False)

    def refused(self, request: Request, error: Exception) -> Response:
        """A page whose query is wrong: what is expected."""
        what = {"heading": "Not understood", "path": visible(request.url.path, 200)}
        what["text"] = getattr(error, "detail", "")
        return self._render(request, "not_found.html", what, status=400, refreshes=False)

    def _show(self, request: Request, view_of: Callable[..., Any], template: str, missing: str) -> Response:
        """Render a view. The names in the route are parameters of `view_of`."""
        view = view_of(self._current(), **request.path_params, now=_now())
        if view is None:
            raise HTTPException(404, missing)
        return self._render(request, template, view)

    def _render(
        self,
        request: Request,
        template: str,
        shown: Any,
        *,
        status: int = 200,
        refreshes: bool = True,
        **more: Any,
    ) -> Response:
        paused = request.query_params.get("refresh") == "off"
        html = self._templates.get_template(template).render(
            page=shown,
            root=_root(request),
            version=__version__,
            refresh=REFRESH_SECONDS if refreshes and not paused else None,
            refreshes=refreshes,
            toggle=_toggled(request),
            has_reports=self._report_folder() is not None,
            has_distributions=self._config() is not None,
            **more,
        )
        if status != 200:
            return Response(html, status, media_type=_HTML)
        return conditional(request, html, _HTML)


def _static(name: str, request: Request) -> Response:
    return conditional(request, (_HERE / "static" / name).read_bytes(), _STATIC[name])


def _now() -> datetime:
    """The time to the minute: no page shows a finer age, so within a minute its text stays the same."""
    return datetime.now(UTC).replace(second=0, microsecond=0)


def _toggled(request: Request) -> str:
    """The same page with the refresh paused, or going on."""
    asked = [(key, text) for key, text in request.query_params.multi_items() if key != "refresh"]
    paused = request.query_params.get("refresh") == "off"
    return f"?{urlencode(asked if paused else [*asked, ('refresh', 'off')])}"


def _below(href: str, root: str) -> str:
    """An address of a view as a link of a page: absolute addresses stay, the others are below the root."""
    return href if href.startswith(("http://", "https://")) else f"{root}{href}"


def _root(request: Request) -> str:
    """The relative path to the root of the site. It works behind a proxy with any prefix."""
    raw = request.scope.get("raw_path") or request.url.path.encode()
    return "../" * (raw.count(b"/") - 1) or "./"
