"""TLS and basic auth, configured in a file of the format of Prometheus' web config.

    tls_server_config:
      cert_file: server.crt          # relative to this file
      key_file: server.key
      client_auth_type: RequireAndVerifyClientCert   # with client_ca_file; default NoClientCert
      min_version: TLS12             # or TLS13
    basic_auth_users:
      alice: $2b$10$...              # bcrypt, as written by `htpasswd -nBC 10 "" | tr -d ':\n'`

A file for Prometheus works here too, except for TLS options that Python's ssl module cannot set. Such an
option is refused with a message, never ignored.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.core.errors import ExpectedError
from monitor.core.yaml_text import YamlProblem, read_yaml

_BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|1[0-9]|20)\$[./A-Za-z0-9]{53}")
_CLIENT_AUTH = {"NoClientCert": ssl.CERT_NONE, "RequireAndVerifyClientCert": ssl.CERT_REQUIRED}
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_TLS_KEYS = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version")
_GO_ONLY = ("max_version", "cipher_suites", "curve_preferences", "prefer_server_cipher_suites")


class WebConfigError(ExpectedError, ValueError):
    """All mistakes in a web config file, as pairs of (place, message)."""

    def __init__(self, path: Path, problems: list[tuple[str, str]]) -> None:
        self.path = path
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(f"{path}: {place}: {text}" if place else f"{path}: {text}" for place, text in problems)
        )


@dataclass(frozen=True, slots=True)
class TlsConfig:
    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2

    def lasting(self) -> tuple[object, ...]:
        """What connections keep until a restart: all but the certificate. Raises OSError."""
        authorities = None if self.client_ca_file is None else self.client_ca_file.read_bytes()
        return authorities, self.client_auth, self.min_version

    def context(self) -> ssl.SSLContext:
        """A server's context. Raises OSError or ssl.SSLError if a file cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self.min_version
        context.load_cert_chain(self.cert_file, self.key_file)
        if self.client_ca_file is not None:
            context.load_verify_locations(self.client_ca_file)
        context.verify_mode = self.client_auth
        context.set_alpn_protocols(["http/1.1"])
        return context


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The content of the file. `users` maps names to bcrypt hashes; without users there is no basic auth."""

    users: Mapping[str, str] = field(default_factory=dict)
    tls: TlsConfig | None = None

    @property
    def guards(self) -> bool:
        """Whether clients must authenticate."""
        return bool(self.users) or (self.tls is not None and self.tls.client_auth == ssl.CERT_REQUIRED)


def load_web_config(path: Path) -> WebConfig:
    """Read and check a web config file. Raises WebConfigError with every mistake at once."""
    try:
        raw = read_yaml(path)
    except YamlProblem as error:
        raise WebConfigError(path, [(error.place, error.message)]) from None
    if raw is None:
        return WebConfig()
    if not isinstance(raw, dict):
        raise WebConfigError(path, [("", "must be a mapping with tls_server_config and basic_auth_users")])
    problems: list[tuple[str, str]] = []
    for key in raw:
        if key == "http_server_config":
            problems.append((key, "is not supported: the server speaks HTTP/1.1; remove it"))
        elif key not in ("tls_server_config", "basic_auth_users"):
            problems.append((str(key), "unknown key; known are tls_server_config and basic_auth_users"))
    users = _users(raw.get("basic_auth_users"), problems)
    tls = _tls(raw.get("tls_server_config"), path.parent, problems)
    if problems:
        raise WebConfigError(path, problems)
    return WebConfig(users, tls)


def _users(raw: Any, problems: list[tuple[str, str]]) -> dict[str, str]:
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        problems.append(("basic_auth_users", "must map user names to bcrypt hashes"))
        return {}
    users: dict[str, str] = {}
    for name, hashed in raw.items():
        place = f"basic_auth_users.{name}"
        if not isinstance(name, str) or not name or ":" in name:
            problems.append((place, "a user name is text without a colon; put it in quotes"))
        elif not isinstance(hashed, str) or not _BCRYPT.fullmatch(hashed):
            # The value itself stays out of the message: it may be a password in the clear.
            hint = 'htpasswd -nBC 10 "" | tr -d ":\\n"'
            problems.append((place, f"is not a bcrypt hash of cost 4 to 20; write one with: {hint}"))
        else:
            users[name] = hashed
    return users


def _tls(raw: Any, folder: Path, problems: list[tuple[str, str]]) -> TlsConfig | None:
    if raw is None:
        return None
    if not isinstance(raw, dict):
        problems.append(("tls_server_config", "must be a mapping with cert_file and key_file"))
        return None
    before = len(problems)
    for key, value in raw.items():
        place = f"tls_server_config.{key}"
        if key in _GO_ONLY:
            problems.append((place, "is not supported by this server; remove it"))
        elif key not in _TLS_KEYS:
            problems.append((place, f"unknown key; known are {', '.join(_TLS_KEYS)}"))
        elif not isinstance(value, str) or not value:
            problems.append((place, "must be text"))
    problems.extend(
        (f"tls_server_config.{key}", "is missing") for key in ("cert_file", "key_file") if key not in raw
    )
    auth = _choice(raw, "client_auth_type", _CLIENT_AUTH, "NoClientCert", problems)
    version = _choice(raw, "min_version", _VERSIONS, "TLS12", problems)
    if auth == ssl.CERT_REQUIRED and "client_ca_file" not in raw:
        problems.append(("tls_server_config.client_ca_file", "is missing; client_auth_type needs it"))
    if auth == ssl.CERT_NONE and "client_ca_file" in raw:
        hint = "set client_auth_type: RequireAndVerifyClientCert as well"
        problems.append(("tls_server_config.client_ca_file", f"has no effect; {hint}"))
    if len(problems) > before:
        return None
    ca = folder / raw["client_ca_file"] if "client_ca_file" in raw else None
    tls = TlsConfig(folder / raw["cert_file"], folder / raw["key_file"], ca, auth, version)
    _try_files(tls, problems)
    return tls


def _choice(
    raw: Mapping[str, Any], key: str, known: Mapping[str, Any], default: str, problems: list[tuple[str, str]]
) -> Any:
    name = raw.get(key, default)
    if isinstance(name, str) and name not in known:
        problems.append((f"tls_server_config.{key}", f"{name!r} is not one of {', '.join(known)}"))
    return known.get(name if isinstance(name, str) else default, known[default])


def _try_files(tls: TlsConfig, problems: list[tuple[str, str]]) -> None:
    """Load the files now, so that a bad file is a config error and not a failed handshake later."""
    before = len(problems)
    for key in ("cert_file", "key_file", "client_ca_file"):
        file: Path | None = getattr(tls, key)
        if file is None:
            continue
        try:
            file.open("rb").close()
        except OSError as error:
            problems.append((f"tls_server_config.{key}", f"{file} cannot be read: {error.strerror}"))
    if len(problems) == before:
        try:
            tls.context()
        except (OSError, ssl.SSLError) as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            problems.append(("tls_server_config", f"the certificate and the key cannot be used: {reason}"))
