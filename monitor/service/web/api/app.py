"""The application below /api/v1: routes, entity tags, and refusals as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.core.text import visible
from monitor.history.errors import StoreError
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.service.web.any_text import ANY_TEXT
from monitor.service.web.api.answers import Answer, ProblemAnswer
from monitor.service.web.api.context import Context
from monitor.service.web.api.endpoints import ENDPOINTS, OPENAPI, Endpoint
from monitor.service.web.api.links import ROOT, Links
from monitor.service.web.api.openapi import openapi
from monitor.service.web.api.parameters import Query, read_query
from monitor.service.web.api.refusal import Refusal
from monitor.service.web.conditional import conditional

log = logging.getLogger(__name__)

_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_SVG: Final = "image/svg+xml"
_RETRY_SECONDS: Final = 30


def make_api(current: Callable[[], Snapshot], store: Store, *, url: str, docs_url: str) -> Starlette:
    """The application. Its addresses begin with /api/v1.

    Args:
        current: the snapshot of now.
        store: the history behind it.
        url: the address at which people reach the monitor.
        docs_url: runbooks that are paths lie below it; may be empty.
    """
    links = Links(url)

    def answer(request: Request, endpoint: Endpoint) -> Response:
        asked = read_query(endpoint.query, request.query_params.multi_items())
        context = Context(current(), store, links, docs_url, datetime.now(UTC))
        names = {name: request.path_params[name] for name in endpoint.names}
        content = endpoint.handler(context, asked, **names)
        if isinstance(content, Answer):
            return conditional(request, _json(content), _JSON)
        response = conditional(request, content, _SVG)
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"  # pages of a wiki show the badge
        return response

    document = json.dumps(openapi(), separators=(",", ":")).encode("ascii")

    def described(request: Request) -> Response:
        read_query(Query, request.query_params.multi_items())
        return conditional(request, document, _JSON)

    app = Starlette(
        routes=[
            Route(ROOT + OPENAPI, described),
            *(Route(ROOT + _any_text(one), partial(answer, endpoint=one)) for one in ENDPOINTS),
        ],
        exception_handlers={
            Refusal: _refused,
            StoreError: _store_failed,
            HTTPException: _http_error,
            Exception: _failed,
        },
    )
    app.router.redirect_slashes = False
    return app


def _any_text(endpoint: Endpoint) -> str:
    """The path of its route: a last name may be any text, with slashes and line breaks."""
    if endpoint.path.endswith("}") and len(endpoint.names) > 1:
        return f"{endpoint.path[:-1]}:{ANY_TEXT}}}"
    return endpoint.path


def _json(content: Answer) -> bytes:
    # In ASCII: a hostile text of a log cannot do harm in a terminal.
    return content.model_dump_json(exclude_unset=True, ensure_ascii=True).encode("ascii")


def _problem(status: int, detail: str, headers: Any = None, **more: Any) -> Response:
    given = {name: value for name, value in more.items() if value is not None}
    content = ProblemAnswer(title=HTTPStatus(status).phrase, status=status, detail=detail, **given)
    return Response(_json(content), status, headers, media_type=_PROBLEM)


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, Refusal)
    return _problem(
        error.status,
        error.detail,
        parameter=error.parameter,
        expected=error.expected,
        exists=error.exists,
    )


async def _store_failed(request: Request, error: Exception) -> Response:
    log.error("%s: the history cannot be read: %s", visible(request.url.path, 200), error)
    return _problem(503, f"The history cannot be read: {error}", {"Retry-After": str(_RETRY_SECONDS)})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        paths = [ROOT + one.path for one in ENDPOINTS] + [ROOT + OPENAPI]
        return _problem(404, f"There is no address {visible(request.url.path, 200)}.", exists=paths)
    detail = "The API is read-only: use GET." if error.status_code == 405 else str(error.detail)
    return _problem(error.status_code, detail, error.headers)


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _problem(500, "The monitor failed to answer; its log says why.")
