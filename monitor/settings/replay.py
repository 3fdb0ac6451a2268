"""The settings of a replay: which requests are sent, where to, how fast, and how an answer is read."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ByteSize, Field, Secret, field_validator, model_validator

from monitor.core.settings import Duration, Name, Settings
from monitor.core.text import quoted
from monitor.settings.access import http_parts
from monitor.settings.logs import LogSettings

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OF_THE_CLIENT: Final = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")

Case = str | int | float | bool | None


def _is_a_host(value: str) -> str:
    if _HOST.fullmatch(value) is None:
        raise ValueError(
            f"{quoted(value)} is not a host; write it as 127.0.0.1, [::1] or api.example.org:8080"
        )
    return value.lower()


def _has_a_fixed_host(value: str) -> str:
    parts = http_parts(value)
    if parts is None:
        raise ValueError("must begin with http:// or https:// and a host")
    if "{" in parts.netloc:
        raise ValueError("the host must be fixed: only the path and the query may be a template")
    if "@" in parts.netloc:
        raise ValueError("a user or password would be shown in messages; put it into secret_headers")
    if parts.fragment:
        raise ValueError("a server never sees what follows #; leave it out")
    return value


def _are_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if _HEADER.fullmatch(name) is None:
            raise ValueError(f"{quoted(name)} is not the name of a header")
        if name.lower() in _OF_THE_CLIENT:
            raise ValueError(f"the client itself sets {quoted(name)}")
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            raise ValueError(f"the value of {quoted(name)} has a control character")
    return headers


Headers = Annotated[dict[str, str], AfterValidator(_are_headers)]


class ResponseSettings(Settings):
    """Where the list is in the JSON of an answer: JSON paths, such as `$.items[*].id`.

    A path that finds one list means its entries. Scores and positions are as many as items.
    """

    items: str = Field("$.items[*].id", description="the ids of the items, the first one on top of the list")
    scores: str | None = Field(None, description="their scores")
    positions: str | None = Field(None, description="their positions; default: 1, 2, 3, ...")
    user: str | None = Field(
        None, description="the user of the answer; if it is another one, the status is wrong_user"
    )
    model: str | None = Field(
        None, description="the model that answered, for the column model; default: `version`"
    )


class AbortSettings(Settings):
    """When a replay stops by itself, so that it does no harm to an endpoint in trouble."""

    errors: float = Field(
        0.2, gt=0, le=1, description="stop if more than this share of the newest requests failed"
    )
    latency: float | None = Field(
        None,
        gt=0,
        le=600,
        description="stop if more than a tenth of the newest requests took longer; in seconds",
    )
    of: int = Field(50, ge=5, le=10_000, description="how many of the newest requests count")


class TargetSettings(Settings):
    """An HTTP endpoint of a recommender. URL, headers and body are templates: `{{ user_id }}`."""

    name: Name
    url: Annotated[str, AfterValidator(_has_a_fixed_host)] = Field(
        description="such as http://127.0.0.1:8080/recommend?user={{ user_id }}; values are escaped"
    )
    method: Literal["GET", "POST", "PUT"] = "POST"
    headers: Headers = Field(default_factory=dict, description="name: template")
    secret_headers: Secret[Headers] = Field(
        Secret({}),
        description='name: value, as in Authorization: "Bearer ${file:token}"; never shown, never a template',
    )
    body: dict[str, Any] | list[Any] | str | None = Field(
        None,
        description="the JSON body; a text in it that is one expression keeps the type of its value. If the "
        "body is one text, it is a template that gives JSON",
    )
    response: ResponseSettings = ResponseSettings()
    version: str | None = Field(
        None, min_length=1, max_length=200, description="the version of the target, for the column version"
    )
    rate: float = Field(50.0, gt=0, le=100_000, description="requests a second, at most")
    concurrency: int = Field(16, ge=1, le=2_000, description="requests at the same time, at most")
    ramp_up: Duration = Field(
        timedelta(seconds=10), description="in this time the rate rises from 0 to `rate`"
    )
    timeout: float = Field(
        5.0, gt=0, le=600, description="a request that takes longer is a timeout; in seconds"
    )
    retries: int = Field(
        2, ge=0, le=10, description="how often a request is sent again, if that is allowed, see `idempotent`"
    )
    idempotent: bool = Field(
        False,
        description="whether the endpoint may get a request twice: true also retries timeouts, broken "
        "connections, 429 and 5xx; false retries only if no connection was made",
    )
    max_response: ByteSize = Field(
        "1MB",  # type: ignore[assignment]
        ge=1,
        description="a larger answer is too_large",
    )
    max_items: int = Field(1000, ge=1, le=100_000, description="an answer with more items is too_large")
    abort: AbortSettings = AbortSettings()

    @model_validator(mode="after")
    def _get_has_no_body(self) -> TargetSettings:
        if self.method == "GET" and self.body is not None:
            raise ValueError("a GET has no body; write method: POST, or put the values into the url")
        twice = {one.lower() for one in self.headers} & {
            one.lower() for one in self.secret_headers.get_secret_value()
        }
        if twice:
            raise ValueError(f"{quoted(min(twice))} is both in headers and in secret_headers")
        return self


class ReplaySettings(Settings):
    """Requests of real traffic are sent to an endpoint again, see docs/replay.md."""

    allowed_hosts: tuple[Annotated[str, AfterValidator(_is_a_host)], ...] = Field(
        min_length=1,
        max_length=100,
        description="requests go to these hosts only: api.example.org, or with a port, 127.0.0.1:8080",
    )
    targets: tuple[TargetSettings, ...] = Field(min_length=1, max_length=50)
    requests: LogSettings | None = Field(
        None,
        description="a log of requests: request_id, user_id, ts and any other column; default: those of "
        "logs.exposures",
    )
    cases: dict[str, tuple[Case, ...]] | None = Field(
        None,
        description="for --cases: each column with its values; every combination is one request, such as "
        "{user_id: [new-1, new-2], scene: [home, feed]}",
    )
    keep: tuple[str, ...] = Field(
        ("scene",), max_length=50, description="columns of the requests that the new log keeps, if they exist"
    )
    max_requests: int = Field(
        100_000, ge=1, le=10_000_000, description="a replay of more requests is refused; choose fewer users"
    )

    @field_validator("cases")
    @classmethod
    def _have_values(cls, value: dict[str, tuple[Case, ...]] | None) -> dict[str, tuple[Case, ...]] | None:
        for name, values in (value or {}).items():
            if not values:
                raise ValueError(f"{quoted(name)} has no value")
            if any(isinstance(one, int) and not -(2**63) <= one < 2**63 for one in values):
                raise ValueError(f"{quoted(name)} has a number beyond 64 bits; write it in quotes")
        if value is not None and not value:
            raise ValueError("names no column")
        return value
