"""The API of an Alertmanager. Every failure is a sentence that says what to do, and holds no secret."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from urllib.request import Request

from monitor.core.errors import ExpectedError
from monitor.core.http_access import AccessError, auth_headers, sentence
from monitor.on_call.asking import answer_of
from monitor.settings.access import HttpServer

TIMEOUT: Final = 10.0
_API: Final = "/api/v2/"
_REQUESTS: Final = "alertmanager_notification_requests_total"
_FAILED: Final = "alertmanager_notification_requests_failed_total"


class AlertmanagerError(ExpectedError):
    """Alertmanager cannot be reached, or refused a request."""

    hint = "on_call.alertmanager in the config says where it is and how to sign in."


class Integration(NamedTuple):
    """Where requests go: a kind such as `webhook`, of a receiver; None if Alertmanager does not name it."""

    kind: str
    receiver: str | None


class Requests(NamedTuple):
    """How many requests to receivers were answered or failed, and how many of them failed."""

    made: int
    failed: int


class AlertmanagerApi:
    """Asks one Alertmanager; its files of secrets are read for each request."""

    def __init__(self, server: HttpServer, timeout: float = TIMEOUT) -> None:
        self._server, self._timeout = server, timeout

    def get(self, path: str, **query: str) -> Any:
        """The answer to a GET below /api/v2/."""
        return self._ask(f"{path}?{urlencode(query)}" if query else path, None)

    def post(self, path: str, content: object) -> Any:
        """The answer to a POST of JSON below /api/v2/; None if it is empty."""
        return self._ask(path, json.dumps(content).encode())

    def requests(self) -> dict[Integration, Requests]:
        """The requests since it began. By receiver if it has `receiver-name-in-metrics`."""
        from prometheus_client.parser import text_string_to_metric_families

        counts: dict[str, dict[Integration, int]] = {_REQUESTS: {}, _FAILED: {}}
        try:
            for family in text_string_to_metric_families(self._read("/metrics", None).decode("utf-8")):
                for one in family.samples:
                    if (some := counts.get(one.name)) is not None:
                        to = Integration(one.labels["integration"], one.labels.get("receiver_name"))
                        some[to] = some.get(to, 0) + int(one.value)
        except (ValueError, KeyError, OverflowError):
            counts[_REQUESTS].clear()
        if not counts[_REQUESTS]:
            raise AlertmanagerError(f"{self._server.url}/metrics does not count the requests to receivers")
        return {to: Requests(made, counts[_FAILED].get(to, 0)) for to, made in counts[_REQUESTS].items()}

    def _ask(self, path: str, body: bytes | None) -> Any:
        answer = self._read(f"{_API}{path}", body)
        try:
            return json.loads(answer) if answer.strip() else None
        except (ValueError, RecursionError):
            raise AlertmanagerError(f"what answers at {self._server.url} is no Alertmanager") from None

    def _read(self, path: str, body: bytes | None) -> bytes:
        server = self._server
        name = f"Alertmanager at {server.url}"
        try:
            headers = auth_headers(server.bearer_token_file, server.username, server.password_file)
            headers |= {"Content-Type": "application/json", "Accept": "application/json"}
            request = Request(f"{server.url}{path}", data=body, headers=headers)  # noqa: S310
            code, answer = answer_of(name, request, self._timeout)
        except AccessError as error:
            raise AlertmanagerError(str(error)) from None
        if code != 200:
            said = sentence(answer.decode("utf-8", "replace"))
            raise AlertmanagerError(f"{name} answered with code {code}: {said}")
        return answer
