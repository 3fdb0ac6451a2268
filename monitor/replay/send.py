"""Sends the requests of a plan: at a bounded rate, with bounded concurrency, and none of them twice."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from yarl import URL

from monitor.core.columns import OK
from monitor.replay.answers import GARBAGE, TOO_LARGE, Answer, AnswerReader
from monitor.replay.journal import Journal
from monitor.replay.pace import Limits, Pace
from monitor.replay.plan import Request
from monitor.replay.templates import Rendered, Templates
from monitor.settings.replay import TargetSettings

ERROR: Final = "error"
TIMEOUT: Final = "timeout"
REFUSED: Final = "refused"
_BUSY: Final = (429, 500, 502, 503, 504)
_TICK: Final = 0.004  # seconds between two looks at the pace
_IDLE: Final = 2.0  # seconds; many servers close a connection after 5, and a request on it would be lost
_CHUNK: Final = 1 << 16
_MOST_BEGUN: Final = 512  # at once
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_OF_CONNECTING: Final = 0.8  # of the timeout: so a connection that is never made is known as one

Step = Callable[[str], None]


@dataclass(slots=True)
class Sent:
    """What one process has sent.

    Attributes:
        begun: the requests that it tried to send.
        statuses: how many ended with each status.
        retries: how often a request was sent again.
        aborted: the limit that was passed.
        stopped: whether a signal ended it.
        seconds: how long it took.
    """

    begun: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    aborted: str = ""
    stopped: bool = False
    seconds: float = 0.0

    @property
    def arrived(self) -> int:
        """How many may have arrived: all but the refused ones."""
        return self.begun - self.statuses[REFUSED]


@dataclass(frozen=True, slots=True)
class _Outcome:
    answer: Answer
    http_status: int | None = None
    arrived: bool = True  # whether the endpoint may have got the request


def send(
    target: TargetSettings,
    requests: Iterable[Request],
    journal: Journal,
    step: Step = lambda _: None,
) -> Sent:
    """Send the requests and record each outcome in the journal.

    SIGINT and SIGTERM end it: what is under way is waited for, and nothing new is sent.
    """
    return asyncio.run(_Sender(target, journal, step).run(iter(requests)))


class _Sender:
    def __init__(self, target: TargetSettings, journal: Journal, step: Step) -> None:
        self._target, self._journal, self._step = target, journal, step
        self._templates = Templates(target)
        self._reader = AnswerReader(target)
        self._limits = Limits(target.abort)
        self._secret = target.secret_headers.get_secret_value()
        self._jitter = random.Random()  # noqa: S311 (waiting times are no secrets)
        self._sent = Sent()
        self._active: set[asyncio.Task[None]] = set()
        self._broken: BaseException | None = None
        self._pace = Pace(target.rate, target.ramp_up.total_seconds(), time.monotonic())

    async def run(self, requests: Iterator[Request]) -> Sent:
        target = self._target
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        connector = aiohttp.TCPConnector(limit=target.concurrency, keepalive_timeout=_IDLE)
        timeout = aiohttp.ClientTimeout(total=target.timeout, sock_connect=target.timeout * _OF_CONNECTING)
        session = aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),  # one user's cookie must not go along with another's request
            auto_decompress=False,
            trust_env=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "recsys-monitor"},
        )
        session._retry_connection = False  # else aiohttp itself sends a GET again on a broken connection
        with ThreadPoolExecutor(1, "journal") as worker, _stopping(loop, self._stop):
            async with session:
                await self._send_all(loop, worker, session, requests)
        self._journal.flush()
        self._sent.seconds = time.perf_counter() - began
        return self._sent

    def _stop(self) -> None:
        self._sent.stopped = True

    @property
    def _ends(self) -> bool:
        return self._sent.stopped or bool(self._limits.reason) or self._broken is not None

    async def _send_all(
        self,
        loop: asyncio.AbstractEventLoop,
        worker: ThreadPoolExecutor,
        session: aiohttp.ClientSession,
        requests: Iterator[Request],
    ) -> None:
        target = self._target
        pace = self._pace
        while not self._ends:
            free = target.concurrency - len(self._active)
            count = min(pace.allowed(time.monotonic()), free, _MOST_BEGUN)
            if count < 1:
                self._journal.flush()
                await asyncio.sleep(_TICK)
                continue
            chunk = list(itertools.islice(requests, count))
            if not chunk:
                break
            pace.sent(len(chunk))
            await loop.run_in_executor(worker, self._journal.begin, [one.number for one in chunk])
            self._journal.flush()
            self._sent.begun += len(chunk)
            for one in chunk:
                task = loop.create_task(self._one(session, one))
                self._active.add(task)
                task.add_done_callback(self._done)
        self._sent.aborted = self._limits.reason
        while self._active:
            await asyncio.wait(self._active, timeout=1.0)
            self._journal.flush()
        if self._broken is not None:
            raise self._broken

    def _done(self, task: asyncio.Task[None]) -> None:
        self._active.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = error

    async def _one(self, session: aiohttp.ClientSession, request: Request) -> None:
        """Send one request, again if that is allowed, and record its outcome."""
        rendered = self._templates.render(request.values)
        headers = {**rendered.headers, **self._secret}
        for attempt in itertools.count(1):
            at, began = time.time(), time.perf_counter()
            outcome = await self._once(session, rendered, headers, request.user)
            seconds = time.perf_counter() - began
            if attempt > self._target.retries or self._ends or not self._may_retry(outcome):
                break
            await asyncio.sleep(self._wait(attempt))
            if self._ends:
                break
            self._sent.retries += 1
            self._pace.sent(1)  # it counts for the rate
        answer = outcome.answer
        self._sent.statuses[answer.status] += 1
        self._limits.add(failed=answer.status != OK, seconds=seconds)
        self._journal.answer(
            {
                "number": request.number,
                "status": answer.status,
                "http_status": outcome.http_status,
                "latency": seconds,
                "attempts": attempt,
                "replayed_at": at,
                "items": list(answer.items),
                "scores": answer.scores,
                "positions": answer.positions,
                "model": answer.model,
                "detail": answer.detail,
            }
        )
        self._step(f"{self._target.name}: {sum(self._sent.statuses.values()):,} sent")

    def _may_retry(self, outcome: _Outcome) -> bool:
        if not outcome.arrived:
            return True
        status = outcome.answer.status
        passing = status == TIMEOUT or (
            status == ERROR and (outcome.http_status is None or outcome.http_status in _BUSY)
        )
        return self._target.idempotent and passing

    def _wait(self, attempt: int) -> float:
        """Seconds until the next attempt: drawn from 0 to a bound that doubles each time."""
        return self._jitter.uniform(0, min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)))

    async def _once(
        self, session: aiohttp.ClientSession, rendered: Rendered, headers: Mapping[str, str], user: object
    ) -> _Outcome:
        """Send a request once. What went wrong is told by its kind: a message may hold a secret."""
        try:
            async with session.request(
                self._target.method,
                URL(rendered.url, encoded=True),
                data=rendered.body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                return await self._read(response, user)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as exc:
            return _Outcome(Answer(REFUSED, detail=f"no connection: {_reason(exc)}"), arrived=False)
        except TimeoutError:
            return _Outcome(Answer(TIMEOUT, detail=f"no answer within {self._target.timeout:g} s"))
        except aiohttp.ClientResponseError:
            return _Outcome(Answer(GARBAGE, detail="the answer is not HTTP"))
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return _Outcome(Answer(ERROR, detail=f"the connection broke: {type(exc).__name__}"))

    async def _read(self, response: aiohttp.ClientResponse, user: object) -> _Outcome:
        status = response.status
        if not 200 <= status < 300:
            further = "; redirects are not followed" if 300 <= status < 400 else ""
            response.close()
            return _Outcome(Answer(ERROR, detail=f"HTTP {status}{further}"), status)
        most = self._target.max_response
        body = bytearray()
        async for part in response.content.iter_chunked(_CHUNK):
            body += part
            if len(body) > most:
                response.close()
                return _Outcome(Answer(TOO_LARGE, detail=f"more than {int(most):,} bytes"), status)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            return _Outcome(
                Answer(GARBAGE, detail="the answer is compressed, which was not asked for"), status
            )
        return _Outcome(self._reader.read(bytes(body), user), status)


def _reason(exc: Exception) -> str:
    if isinstance(exc, aiohttp.ConnectionTimeoutError):
        return "timeout"
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return "the host is unknown"
    if isinstance(exc, aiohttp.ClientSSLError):
        return "TLS failed"
    if isinstance(exc, OSError) and exc.errno is not None and exc.errno > 0:
        return os.strerror(exc.errno)  # the text of the exception repeats the address
    return type(exc).__name__


@contextmanager
def _stopping(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """The first signal stops; the second one ends the process as usual."""
    wanted = (signal.SIGINT, signal.SIGTERM)

    def first(which: signal.Signals) -> None:
        stop()
        loop.remove_signal_handler(which)

    for one in wanted:
        loop.add_signal_handler(one, first, one)
    try:
        yield
    finally:
        for one in wanted:
            loop.remove_signal_handler(one)
