"""How fast requests are sent, and when to stop: both are functions of what has happened so far."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from monitor.settings.replay import AbortSettings

_BURST_SECONDS: Final = 0.1
_SLOW_SHARE: Final = 0.1


def least_seconds(requests: int, rate: float, ramp_up: float) -> float:
    """How long so many requests take at least, while the rate rises and after it.

    >>> least_seconds(500, rate=100, ramp_up=10), least_seconds(1_000, rate=100, ramp_up=10)
    (10.0, 15.0)
    >>> least_seconds(5, rate=10, ramp_up=100)
    10.0
    """
    in_ramp = rate * ramp_up / 2
    if requests < in_ramp:
        return math.sqrt(2 * requests * ramp_up / rate)
    return ramp_up + (requests - in_ramp) / rate


class Pace:
    """How many requests may be sent now: the rate rises from 0 to `rate` in `ramp_up` seconds, then stays.

    What is not sent in time is not made up for, so an endpoint that was slow is not flooded.

    >>> pace = Pace(rate=100, ramp_up=10, start=0.0)
    >>> [pace.allowed(at / 100) for at in (1, 50, 60)], pace.rate_at(5), pace.rate_at(20)
    ([0, 1, 1], 50.0, 100)
    """

    def __init__(self, rate: float, ramp_up: float, start: float) -> None:
        self._rate, self._ramp_up, self._start = rate, ramp_up, start
        self._last = start
        self._tokens = 0.0

    def rate_at(self, now: float) -> float:
        """The rate at a time, in requests a second."""
        passed = now - self._start
        return self._rate if passed >= self._ramp_up else self._rate * passed / self._ramp_up

    def allowed(self, now: float) -> int:
        """How many requests may be sent at this time."""
        between = (self.rate_at(now) + self.rate_at(self._last)) / 2 * (now - self._last)
        most = max(1.0, self._rate * _BURST_SECONDS)
        self._tokens = min(self._tokens + between, most)
        self._last = now
        return int(self._tokens + 1e-9)

    def sent(self, count: int) -> None:
        """Count what was sent; more than allowed is made up for later."""
        self._tokens -= count


class Limits:
    """The newest answers against the limits of a target.

    >>> limits = Limits(AbortSettings(errors=0.5, of=5))
    >>> for failed in (True, True, False, True):
    ...     limits.add(failed=failed, seconds=0.1)
    >>> limits.reason
    ''
    >>> limits.add(failed=False, seconds=0.1)
    >>> limits.reason
    '3 of the newest 5 requests failed; the limit is 50 %'
    """

    def __init__(self, settings: AbortSettings) -> None:
        self._settings = settings
        self._newest: deque[tuple[bool, bool]] = deque()
        self._failed = self._slow = 0
        self.reason = ""

    def add(self, *, failed: bool, seconds: float) -> None:
        """Count a request, with its latency."""
        settings = self._settings
        slow = settings.latency is not None and seconds > settings.latency
        self._newest.append((failed, slow))
        self._failed += failed
        self._slow += slow
        if len(self._newest) > settings.of:
            failed_then, slow_then = self._newest.popleft()
            self._failed -= failed_then
            self._slow -= slow_then
        if self.reason or len(self._newest) < settings.of:
            return
        if self._failed > settings.errors * settings.of:
            self.reason = (
                f"{self._failed} of the newest {settings.of} requests failed; "
                f"the limit is {settings.errors * 100:g} %"
            )
        elif self._slow > _SLOW_SHARE * settings.of:
            self.reason = (
                f"{self._slow} of the newest {settings.of} requests took longer than {settings.latency:g} s; "
                f"the limit is a tenth of them"
            )
