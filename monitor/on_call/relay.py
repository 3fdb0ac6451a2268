"""The web application of `recsys-monitor relay`: Alertmanager posts to it, and it posts to chat robots.

It answers 200 only if the robot took the message. For a failure it answers 502, so that Alertmanager tries
again and counts it in `alertmanager_notifications_failed_total`.
"""

from __future__ import annotations

import hmac
import json
import logging
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from monitor.core.http_access import AccessError, read_secret
from monitor.core.text import plural
from monitor.on_call.message import read_message
from monitor.on_call.robots import deliver
from monitor.settings.on_call import RelaySettings, RelayTarget

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 4 << 20


def relay_application(settings: RelaySettings) -> Starlette:
    """The application for these targets. It keeps nothing between two messages."""
    targets = {target.name: target for target in settings.targets}

    async def post(request: Request) -> Response:
        target = targets.get(request.path_params["target"])
        if settings.token_file is not None:
            try:
                token = await run_in_threadpool(read_secret, settings.token_file)
            except AccessError as error:
                return _failed("the relay", str(error))
            given = request.headers.get("authorization", "")  # its bytes, each as a character
            if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {token}".encode()):
                return PlainTextResponse("the token is missing or wrong\n", 401)
        if target is None:
            return PlainTextResponse("no target of on_call.relay has this name\n", 404)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return PlainTextResponse("the message is too long\n", 413)
        return await run_in_threadpool(_relay, target, bytes(body))

    def healthy(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    return Starlette(
        routes=[Route("/-/healthy", healthy), Route("/{target}", post, methods=["POST"])],
    )


def _relay(target: RelayTarget, body: bytes) -> Response:
    try:
        message = read_message(json.loads(body))
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        logger.warning("%s: what was posted is no message of Alertmanager", target.name)
        return PlainTextResponse("this is no message of Alertmanager\n", 400)
    try:
        deliver(target, message)
    except AccessError as error:
        return _failed(target.name, str(error))
    logger.info("%s: %s took a message with %s", target.name, target.to, plural(message.count, "alert"))
    return PlainTextResponse("sent\n")


def _failed(name: str, why: str) -> Response:
    logger.error("%s: %s", name, why)
    return PlainTextResponse(f"{why}\n", 502)
