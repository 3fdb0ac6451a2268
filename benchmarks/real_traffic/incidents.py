"""What is done to real traffic, and what the alerts should make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.real_traffic.draws import SCENES, Change

A_DAY: Final = 24
TREND_DAYS: Final = 10
_A_DAY_LESS: Final = 0.99

Reported = Literal["page", "any"]


@dataclass(frozen=True, slots=True)
class Bar:
    """In this share of the cases an alert must fire within so many windows; a small series has longer."""

    share: float
    windows: int
    small: int

    def of(self, *, is_small: bool) -> int:
        """How many windows a series has."""
        return self.small if is_small else self.windows


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident.

    `change` gives what becomes of a window, by the place of the incident in a sweep and the number of the
    window. `by`: which alert must fire. `watched`: for how many windows it is followed if nothing is
    reported. `enough`: the expected requests of the bar's windows from which on a case counts; with fewer,
    the noise of real traffic hides it. `only_volume`: nothing but the number of requests changes, so the
    cause must be `traffic_*`. `stays`: the alert must still fire in the last window.
    """

    name: str
    says: str
    change: Callable[[int, int], Change]
    bar: Bar
    watched: int
    by: Reported = "any"
    enough: int = 0
    only_volume: bool = False
    at_night: bool = False
    stays: bool = False


def _scene(place: int, _: int) -> Change:
    return Change(lost=list(SCENES)[place % len(SCENES)])


def _share_left(window: int) -> float:
    return float(_A_DAY_LESS ** (window / A_DAY))


INCIDENTS: Final = {
    one.name: one
    for one in (
        Incident(
            "half", "half of all requests are gone for a day",
            lambda *_: Change(requests=0.5), Bar(0.99, 2, 4), watched=8, by="page", only_volume=True,
        ),
        Incident(
            "third", "three in ten requests are gone for a day",
            lambda *_: Change(requests=0.7), Bar(0.95, 3, 6), watched=8, only_volume=True,
        ),
        Incident(
            "scene", "one of four scenes is gone, each in turn", _scene, Bar(0.98, 2, 2), watched=4,
        ),
        Incident(
            "clicks", "a fifth of the clicks is gone for twelve hours",
            lambda *_: Change(clicks=0.8), Bar(0.90, 12, 12), watched=12,
        ),
        Incident(
            "night", "half of all requests are gone for two hours at night",
            lambda *_: Change(requests=0.5), Bar(0.90, 2, 2), watched=2, enough=400, only_volume=True,
            at_night=True,
        ),
        Incident(
            "requests_fall", "requests fall by 1 % a day",
            lambda _, window: Change(requests=_share_left(window)),
            Bar(0.90, TREND_DAYS * A_DAY, TREND_DAYS * A_DAY), watched=TREND_DAYS * A_DAY, stays=True,
        ),
        Incident(
            "clicks_fall", "clicks fall by 1 % a day",
            lambda _, window: Change(clicks=_share_left(window)),
            Bar(0.90, TREND_DAYS * A_DAY, TREND_DAYS * A_DAY), watched=TREND_DAYS * A_DAY, stays=True,
        ),
    )
}  # fmt: skip
MOST_TICKETS: Final = 0.2  # a week
MOST_PAGES: Final = 0.02
TRAFFIC_NAMED: Final = 0.95
