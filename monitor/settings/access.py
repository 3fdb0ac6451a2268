"""The settings of another server that the monitor asks over HTTP: its address, and the way in."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, model_validator

from monitor.core.settings import Settings


def http_parts(url: str) -> SplitResult | None:
    """The parts of the address of an HTTP server; None if it has no host, or no port that exists.

    >>> http_parts("https://prometheus:9090/x").port, http_parts("http://host:99999"), http_parts("http://[::1")
    (9090, None, None)
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None


def _a_server(value: str) -> str:
    parts = http_parts(value)
    if parts is None:
        raise ValueError("must be the address of a server, as https://prometheus:9090")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a password here would be shown in messages; write username and password_file")
    if parts.query or parts.fragment:
        raise ValueError("must end before any ? or #; the monitor adds the path of the API")
    return value.rstrip("/")


class HttpServer(Settings):
    """A server with an HTTP API. Secrets are in files.

    >>> HttpServer(url="http://alertmanager:9093/").url
    'http://alertmanager:9093'
    """

    url: Annotated[str, AfterValidator(_a_server)] = Field(description="as https://prometheus:9090")
    bearer_token_file: str | None = Field(
        None, description="a file with the token that each request sends; read again at each request"
    )
    username: str | None = Field(None, max_length=200, description="of basic authentication")
    password_file: str | None = Field(None, description="a file with the password of `username`")

    @model_validator(mode="after")
    def _has_one_way_in(self) -> HttpServer:
        if (self.username is None) != (self.password_file is None):
            raise ValueError("username and password_file belong together")
        if self.bearer_token_file is not None and self.username is not None:
            raise ValueError("write either bearer_token_file or username and password_file")
        return self
