"""Basic auth for every path but the open ones, as in Prometheus.

A bcrypt check is slow on purpose (50-100 ms), so successful checks are cached. The cache holds keyed hashes
that are worthless outside this process. An unknown user costs as much time as a known one.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection, Mapping

import bcrypt
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_CACHED = 100
_BCRYPT_BYTES = 72  # bcrypt ignores further bytes, and the library refuses longer passwords
_CHALLENGE = {"WWW-Authenticate": 'Basic realm="recsys-monitor"', "Cache-Control": "no-store"}


class Passwords:
    """Checks names and passwords against bcrypt hashes.

    >>> hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    >>> passwords = Passwords(lambda: {"alice": hashed})
    >>> [passwords.check(*who) for who in [("alice", "secret"), ("alice", "guess"), ("bob", "secret")]]
    [True, False, False]
    >>> passwords.remembered("alice", "secret"), passwords.remembered("alice", "guess")
    (True, False)
    """

    def __init__(self, users: Callable[[], Mapping[str, str]]) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, None] = {}
        self._decoys: dict[int, str] = {}

    @property
    def needed(self) -> bool:
        """Whether there are users. Without users everybody may read."""
        return bool(self._users())

    def remembered(self, name: str, password: str) -> bool:
        """Whether this name and password passed before, with the same hash. Fast."""
        hashed = self._users().get(name)
        return hashed is not None and self._digest(name, hashed, password) in self._known

    def check(self, name: str, password: str) -> bool:
        """Whether the password is right. Slow, also for an unknown name."""
        users = self._users()
        hashed = users.get(name)
        try:
            # Also check a hash for an unknown name: otherwise the time would reveal which names exist.
            matches = bcrypt.checkpw(_cut(password), (hashed or self._decoy(users)).encode())
        except ValueError:
            matches = False
        if hashed is None or not matches:
            return False
        while len(self._known) >= _CACHED:
            self._known.pop(next(iter(self._known)))
        self._known[self._digest(name, hashed, password)] = None
        return True

    def _digest(self, name: str, hashed: str, password: str) -> bytes:
        # The hash is part of the key, so a changed password invalidates the old entry.
        parts = [part.encode("utf-8", "surrogatepass") for part in (name, hashed, password)]
        text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self._key, text, hashlib.sha256).digest()

    def _decoy(self, users: Mapping[str, str]) -> str:
        cost = max((int(hashed[4:6]) for hashed in users.values()), default=10)
        if cost not in self._decoys:
            self._decoys[cost] = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(cost)).decode()
        return self._decoys[cost]


def _cut(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")[:_BCRYPT_BYTES]


def read_credentials(header: str) -> tuple[str, str] | None:
    """Name and password of an Authorization header, None if it has none.

    >>> read_credentials("Basic YWxpY2U6c2VjcmV0"), read_credentials("Basic \u00e9")
    (('alice', 'secret'), None)
    """
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except ValueError:  # no base64, no ASCII at all, or no UTF-8 behind it
        return None
    name, colon, password = text.partition(":")
    return (name, password) if colon else None


class BasicAuth:
    """ASGI middleware: answers 401 to a request without a correct name and password.

    `open_paths` are answered to everybody. Their answers must hold nothing that anybody may not know.
    """

    def __init__(self, app: ASGIApp, passwords: Passwords, open_paths: Collection[str] = ()) -> None:
        self._app = app
        self._passwords = passwords
        self._open_paths = frozenset(open_paths)
        self._one_at_a_time = asyncio.Lock()  # so that guessing cannot take all cores from the checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = scope["type"] == "http" and scope["path"] not in self._open_paths
        if guarded and self._passwords.needed and not await self._passes(scope):
            await PlainTextResponse("Unauthorized\n", 401, _CHALLENGE)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _passes(self, scope: Scope) -> bool:
        header = next((value for key, value in scope["headers"] if key == b"authorization"), b"")
        credentials = read_credentials(header.decode("latin-1"))
        if credentials is None:
            return False
        if self._passwords.remembered(*credentials):
            return True
        async with self._one_at_a_time:
            return await run_in_threadpool(self._passwords.check, *credentials)
