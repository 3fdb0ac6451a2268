"""The web application: status pages, /metrics, and the addresses under /-/ for a supervisor.

The pages work without JavaScript. The content security policy allows the site's own script and no other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor import __version__
from monitor.core.text import visible
from monitor.history.errors import StoreError
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.report.distributions.desk import Desk
from monitor.report.links import Sites
from monitor.service.prometheus.exporter import Exporter
from monitor.service.web.any_text import ANY_TEXT
from monitor.service.web.api.app import make_api
from monitor.service.web.api.links import ROOT
from monitor.service.web.auth import BasicAuth, Passwords
from monitor.service.web.pages import Pages
from monitor.settings.config import Config
from monitor.settings.server import ServerSettings

logger = logging.getLogger(__name__)

# For probes, which have no password: one word each, never a reason or a name.
OPEN_PATHS: Final = ("/healthz", "/readyz")
COMPRESSION: Final = 5  # the level of gzip
_CONTENT_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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
    store: Store | None = None,
    config: Callable[[], Config | None] = lambda: None,
    desk: Desk | None = None,
) -> ASGIApp:
    """The application. It calls every callable from a thread that may block.

    `not_ready` returns why the monitor cannot be relied on now, empty if it can. `url` is the address at
    which people reach the status page. `passwords` guard all but OPEN_PATHS as soon as they have a user.
    `store` is the history behind /api/v1; without it there is no API. `config` gives what was last
    loaded. `desk` reads the logs for the distributions.
    """
    sites = Sites(settings.docs_url or "", settings.grafana_url or "", settings.alertmanager_url or "")
    exporter = Exporter(
        current,
        version=__version__,
        url=url,
        grafana_url=settings.grafana_url,
        series_limit=settings.series_limit,
        export=settings.export,
    )
    pages = Pages(current, sites, config, store, desk, exporter.left_out)
    supervisor = _Supervisor(exporter, reload=reload, not_ready=not_ready, healthy=healthy)
    routes: list[BaseRoute] = []
    if store is not None:
        api = make_api(current, store, url=url, docs_url=settings.docs_url or "")
        routes.append(Route(f"{ROOT}{{path:{ANY_TEXT}}}", api))
    app = Starlette(
        routes=[
            *routes,
            *pages.routes(),
            Route("/metrics", supervisor.metrics),
            Route("/healthz", supervisor.healthz),
            Route("/readyz", supervisor.readyz),
            Route("/-/healthy", supervisor.healthy),
            Route("/-/ready", supervisor.ready),
            Route("/-/reload", supervisor.reload, methods=["POST"]),
        ],
        middleware=[Middleware(GZipMiddleware, minimum_size=1024, compresslevel=COMPRESSION)],
        exception_handlers={
            400: pages.refused,
            404: pages.not_found,
            HTTPException: _http_error,
            StoreError: pages.history_down,
        },
    )
    app.router.redirect_slashes = False
    return SecurityHeaders(BasicAuth(app, passwords, OPEN_PATHS))


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

    def healthz(self, request: Request) -> Response:  # noqa: ARG002
        return _probed(self._healthy())

    def readyz(self, request: Request) -> Response:  # noqa: ARG002
        return _probed(not self._not_ready())

    def reload(self, request: Request) -> Response:
        # A page of another site can make a browser send this POST. Browsers say where it comes from.
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("A reload from another site is refused.\n", 403)
        outcome = self._reload()
        text = outcome.message or ("The config was reloaded." if outcome.ok else "The reload failed.")
        return PlainTextResponse(text.rstrip("\n") + "\n", 200 if outcome.ok else 500)


def _probed(ok: bool) -> Response:
    return PlainTextResponse("ok\n") if ok else PlainTextResponse("not ok\n", 503)


async def _http_error(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
