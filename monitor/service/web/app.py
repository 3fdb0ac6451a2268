"""The web application: status pages, /metrics, and the addresses under /-/ for a supervisor.

The pages render the views of `monitor.report`. They need no JavaScript, and the content security policy
forbids it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor import __version__
from monitor.core.text import visible
from monitor.history.snapshot import Snapshot
from monitor.report import anomaly, cause, evidence, page, runbook_page
from monitor.report.scatter import TEMPLATES
from monitor.service.prometheus.exporter import Exporter
from monitor.service.web.auth import BasicAuth, Passwords
from monitor.settings.server import ServerSettings

logger = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 30
_HERE: Final = Path(__file__).parent
_CONTENT_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class ReloadOutcome:
    """How a reload of the config ended. `message` is a sentence, or several lines, for the caller."""

    ok: bool
    message: str = ""


class _AnyText(StringConvertor):
    """The rest of an address. The name of a model may be empty or contain slashes and line breaks."""

    regex = r"[\s\S]*"


register_url_convertor("text", _AnyText())


class SecurityHeaders:
    """Adds the security headers to every response, errors included, and logs failed requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception:
            if not started:
                raise
            # Starlette has already answered 500. Raising again would also cut the connection.
            logger.exception("%s %s failed", scope["method"], visible(scope["path"], 200))


def make_app(
    current: Callable[[], Snapshot],
    *,
    reload: Callable[[], ReloadOutcome],
    not_ready: Callable[[], str],
    healthy: Callable[[], bool],
    settings: ServerSettings,
    url: str,
    passwords: Passwords,
) -> ASGIApp:
    """The application. It calls every callable from a thread that may block.

    `not_ready` returns why the monitor cannot be relied on now, empty if it can. `url` is the address at
    which people reach the status page. `passwords` guard every path as soon as they have a user.
    """
    exporter = Exporter(current, version=__version__, url=url, series_limit=settings.series_limit)
    pages = _Pages(current, settings.docs_url or "")
    supervisor = _Supervisor(exporter, reload=reload, not_ready=not_ready, healthy=healthy)
    app = Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/recommenders/{recommender}", pages.recommender),
            Route("/recommenders/{recommender}/rules/{rule:path}", pages.rule),
            Route("/recommenders/{recommender}/anomalies/{cause:path}", pages.anomaly),
            Route("/recommenders/{recommender}/gaps/{pair}/{cause}/model-{model:text}", pages.cause),
            Route("/runbooks/{name:path}", pages.runbook),
            Route("/static/style.css", _style),
            Route("/metrics", supervisor.metrics),
            Route("/-/healthy", supervisor.healthy),
            Route("/-/ready", supervisor.ready),
            Route("/-/reload", supervisor.reload, methods=["POST"]),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)],
        exception_handlers={404: pages.not_found, HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return SecurityHeaders(BasicAuth(app, passwords))


class _Pages:
    def __init__(self, current: Callable[[], Snapshot], docs_url: str) -> None:
        self._current = current
        self._docs_url = docs_url
        self._templates = Environment(
            loader=FileSystemLoader([_HERE / "templates", TEMPLATES]),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters["below"] = _below

    def overview(self, request: Request) -> Response:
        return self._show(request, page.overview, "overview.html")

    def recommender(self, request: Request) -> Response:
        missing = "There is no recommender of this name."
        return self._show(request, page.recommender_page, "recommender.html", missing)

    def rule(self, request: Request) -> Response:
        missing = "There is no rule of this name; it may have left the config."
        return self._show(request, evidence.rule_page, "rule.html", missing)

    def cause(self, request: Request) -> Response:
        missing = "The last window has no such cause of a gap; the gap may have resolved."
        return self._show(request, cause.cause_page, "cause.html", missing)

    def anomaly(self, request: Request) -> Response:
        missing = "There is no anomaly of this name in any window."
        return self._show(request, anomaly.anomaly_page, "anomaly.html", missing)

    def runbook(self, request: Request) -> Response:
        return self._show(
            request, runbook_page.runbook_page, "runbook.html", "There is no runbook of this name."
        )

    def _show(
        self, request: Request, view_of: Callable[..., Any], template: str, missing: str = ""
    ) -> Response:
        """Render a view. The names in the route are parameters of `view_of`."""
        view = view_of(self._current(), **request.path_params, now=datetime.now(UTC), docs_url=self._docs_url)
        if view is None:
            raise HTTPException(404, missing)
        return self._render(request, template, view)

    def not_found(self, request: Request, error: Exception) -> Response:
        detail = getattr(error, "detail", "")
        text = detail if detail != "Not Found" else "There is no page at this address."
        what = {"path": visible(request.url.path, 200), "text": text}
        return self._render(request, "not_found.html", what, status=404, refreshes=False)

    def _render(
        self, request: Request, template: str, shown: Any, *, status: int = 200, refreshes: bool = True
    ) -> Response:
        paused = request.query_params.get("refresh") == "off"
        html = self._templates.get_template(template).render(
            page=shown,
            root=_root(request),
            version=__version__,
            refresh=REFRESH_SECONDS if refreshes and not paused else None,
            refreshes=refreshes,
        )
        return Response(html, status, media_type="text/html")


class _Supervisor:
    """The addresses for programs."""

    def __init__(
        self,
        exporter: Exporter,
        *,
        reload: Callable[[], ReloadOutcome],
        not_ready: Callable[[], str],
        healthy: Callable[[], bool],
    ) -> None:
        self._exporter, self._reload, self._not_ready, self._healthy = exporter, reload, not_ready, healthy

    def metrics(self, request: Request) -> Response:
        body, content_type = self._exporter.scrape(request.headers.get("accept", ""))
        return Response(body, headers={"Content-Type": content_type})

    def healthy(self, request: Request) -> Response:  # noqa: ARG002 (the routes' shape)
        if self._healthy():
            return PlainTextResponse("recsys-monitor is healthy.\n")
        return PlainTextResponse("recsys-monitor is not healthy.\n", 503)

    def ready(self, request: Request) -> Response:  # noqa: ARG002
        reason = self._not_ready()
        if not reason:
            return PlainTextResponse("recsys-monitor is ready.\n")
        return PlainTextResponse(f"recsys-monitor is not ready: {visible(reason)}\n", 503)

    def reload(self, request: Request) -> Response:
        # A page of another site can make a browser send this POST. Browsers say where it comes from.
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("A reload from another site is refused.\n", 403)
        outcome = self._reload()
        text = outcome.message or ("The config was reloaded." if outcome.ok else "The reload failed.")
        return PlainTextResponse(text.rstrip("\n") + "\n", 200 if outcome.ok else 500)


def _style(request: Request) -> Response:  # noqa: ARG001
    return FileResponse(_HERE / "static" / "style.css", headers={"Cache-Control": "public, max-age=300"})


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)


def _below(href: str, root: str) -> str:
    """An address of a view as a link of a page: absolute addresses stay, the others are below the root."""
    return href if href.startswith(("http://", "https://")) else f"{root}{href}"


def _root(request: Request) -> str:
    """The relative path to the root of the site. It works behind a proxy with any prefix."""
    raw = request.scope.get("raw_path") or request.url.path.encode()
    return "../" * (raw.count(b"/") - 1) or "./"
