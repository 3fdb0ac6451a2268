"""The settings of the web side: where it listens, who may read it, how many series it exports."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from monitor.core.settings import Settings
from monitor.settings.access import http_parts

_LISTEN = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]*):(?P<port>[0-9]{1,5})")


def split_listen(listen: str) -> tuple[str, int]:
    """Host and port of a listen address; an empty host means every interface.

    >>> split_listen("127.0.0.1:9108"), split_listen("[::1]:80"), split_listen(":9108")
    (('127.0.0.1', 9108), ('::1', 80), ('', 9108))
    """
    match = _LISTEN.fullmatch(listen)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{listen!r} is not an address; write it as 127.0.0.1:9108, [::1]:9108 or :9108")
    return match["host"].strip("[]"), int(match["port"])


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback(""), is_loopback("10.0.0.1")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_listen(value: str) -> str:
    split_listen(value)
    return value


def _checked_url(value: str) -> str:
    parts = http_parts(value)
    if parts is None or parts.query or parts.fragment:
        raise ValueError(f"{value!r} is not a base URL; write it as https://monitor.example.org")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a user or password would be shown in every alert and on /metrics; leave it out")
    return value.rstrip("/")


def _unset_if_empty(value: object) -> object:
    """So that a config can say `${URL:-}`: the default, if the environment has no URL."""
    return None if value == "" else value


class ServerSettings(Settings):
    """The web server of the daemon."""

    listen: Annotated[str, AfterValidator(_checked_listen)] = Field(
        "127.0.0.1:9108",
        description="address and port of the status page and /metrics; for other than loopback addresses, "
        "set web_config too",
    )
    external_url: Annotated[
        Annotated[str, AfterValidator(_checked_url)] | None, BeforeValidator(_unset_if_empty)
    ] = Field(
        None,
        description="the URL under which people reach the status page; alerts link to it. "
        "Default, also if it is empty: the listen address",
    )
    docs_url: Annotated[str, AfterValidator(_checked_url)] | None = Field(
        None,
        description="the URL under which people read your runbooks; a rule's runbook that is a path, such as "
        "docs/runbooks/rules/blacklist.md, becomes a link below it. Default: the monitor's own runbooks",
    )
    alertmanager_url: Annotated[str, AfterValidator(_checked_url)] | None = Field(
        None, description="the URL of your Alertmanager; problems link to its form for a silence"
    )
    grafana_url: Annotated[str, AfterValidator(_checked_url)] | None = Field(
        None,
        description="the URL of the Grafana that shows the dashboards of grafana/; problems and alerts link "
        "to them. Default: alerts link to the status page",
    )
    web_config: Path | None = Field(
        None, description="a web config file in Prometheus' format: TLS and basic auth"
    )
    series_limit: int = Field(
        100_000,
        ge=100,
        description="the most series in one scrape; each recommender has an equal share, and one above its "
        "share leaves out slices first, the largest family first; see docs/sizing.md",
    )
    export: tuple[str, ...] = Field(
        (),
        description="families of metrics to export beside those that alerts, dashboards and objectives "
        "use, as patterns such as recsys_*_samples; see docs/gauges.md",
    )

    def public_url(self, *, tls: bool = False, port: int | None = None) -> str:
        """The base of every link in an alert: the external URL, else the listen address.

        >>> ServerSettings(listen=":9108").public_url()
        'http://127.0.0.1:9108'
        """
        if self.external_url is not None:
            return self.external_url
        host, configured = split_listen(self.listen)
        host = "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104 (compared, not bound)
        scheme = "https" if tls else "http"
        shown = f"[{host}]" if ":" in host else host
        return f"{scheme}://{shown}:{port or configured}"
