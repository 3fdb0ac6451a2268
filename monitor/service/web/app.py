"""The web side: status pages, /metrics, and the three addresses under /-/ that a supervisor uses.

Pages are rendered here from the views of `monitor.report.page`; they need no JavaScript, and the
content security policy forbids any.
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
from monitor.anomalies.causes import CAUSES
from monitor.core.text import visible
from monitor.history.snapshot import Snapshot
from monitor.report import anomaly, cause, evidence, page
from monitor.service.prometheus.exporter import Exporter, SnapshotCollector
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
    """How a reload of the config ended; `message` is a sentence (or lines) for whoever asked for it."""

    ok: bool
    message: str = ""


class _Text(StringConvertor):
    """The rest of an address: a model's name may be empty, or have slashes and line breaks."""

    regex = r"[\s\S]*"


register_url_convertor("text", _Text())


class Guard:
    """Adds the same guarding headers to every response, errors included, and logs what failed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def guarded(message: Message) -> None:
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
            await self._app(scope, receive, guarded)
        except Exception:
            if not started:
                raise
            # Starlette has answered 500; passed on, the error would also cut the connection.
            logger.exception("%s %s failed", scope["method"], visible(scope["path"], 200))


def make_app(
    current: Callable[[], Snapshot],
    *,
    reload: Callable[[], ReloadOutcome],
    not_ready: Callable[[], str],
    healthy: Callable[[], bool],
    settings: ServerSettings,
    url: str | None = None,
    passwords: Passwords | None = None,
) -> ASGIApp:
    """The application. Every callable is called from a worker thread and may block.

    `not_ready` says in a sentence why nobody should rely on the monitor now, and is empty where all works.
    `url` is the address of the status page as people reach it (default: what the settings say);
    `passwords` guard every path where they hold a user.
    """
    collector = SnapshotCollector(
        current,
        version=__version__,
        url=url or settings.public_url(),
        series_limit=settings.series_limit,
    )
    pages = _Pages(current, settings.docs_url or "")
    supervisor = _Supervisor(Exporter(collector), reload=reload, not_ready=not_ready, healthy=healthy)
    app = Starlette(
        routes=[
            Route("/", pages.overview),
            Route("/recommenders/{name}", pages.recommender),
            Route("/recommenders/{name}/rules/{rule:path}", pages.rule),
            Route("/recommenders/{name}/anomalies/{cause:path}", pages.anomaly),
            Route("/recommenders/{name}/gaps/{pair}/{cause}/model-{model:text}", pages.cause),
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
    guarded: ASGIApp = app if passwords is None else BasicAuth(app, passwords)
    return Guard(guarded)


class _Pages:
    """The pages for people."""

    def __init__(self, current: Callable[[], Snapshot], docs_url: str) -> None:
        self._current = current
        self._docs_url = docs_url
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def overview(self, request: Request) -> Response:
        return self._render(request, "overview.html", page.overview(self._current(), _now(), self._docs_url))

    def recommender(self, request: Request) -> Response:
        found = page.recommender_page(self._current(), request.path_params["name"], _now(), self._docs_url)
        if found is None:
            raise HTTPException(404, "There is no recommender of this name.")
        return self._render(request, "recommender.html", found)

    def rule(self, request: Request) -> Response:
        name, rule = request.path_params["name"], request.path_params["rule"]
        found = evidence.rule_page(self._current(), name, rule, _now(), self._docs_url)
        if found is None:
            raise HTTPException(404, "There is no rule of this name; it may have left the config.")
        return self._render(request, "rule.html", found)

    def cause(self, request: Request) -> Response:
        name, model, pair, named = (request.path_params[key] for key in ("name", "model", "pair", "cause"))
        found = cause.cause_page(self._current(), name, model, pair, named, _now(), self._docs_url)
        if found is None:
            raise HTTPException(404, "The last window has no such cause of a gap; the gap may have resolved.")
        return self._render(request, "cause.html", found)

    def anomaly(self, request: Request) -> Response:
        name, named = request.path_params["name"], request.path_params["cause"]
        found = anomaly.anomaly_page(self._current(), name, named, _now(), self._docs_url, CAUSES)
        if found is None:
            raise HTTPException(404, "There is no anomaly of this name in any window.")
        return self._render(request, "anomaly.html", found)

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
    """The addresses that programs use."""

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
        # A page elsewhere can make a browser send this POST: browsers say where it comes from.
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


def _root(request: Request) -> str:
    """The way back to the root of the site, relative: it holds behind any proxy's prefix."""
    raw = request.scope.get("raw_path") or request.url.path.encode()
    return "../" * (raw.count(b"/") - 1) or "./"


def _now() -> datetime:
    return datetime.now(UTC)
