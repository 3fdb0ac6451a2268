"""When Alertmanager sends: its groups, at the pace of `group_wait` and of the two intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]  # (name, value) pairs in their order
Group = tuple[str, Labels]  # receiver, the labels that its alerts have in common


@dataclass(frozen=True, slots=True)
class Change:
    """What is so from a moment on: the alerts that fire; whether one is heard, or held back, over or not."""

    moment: float
    firing: Mapping[Group, Collection[Labels]]
    heard: Callable[[Labels], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Pace:
    """`group_wait`, `group_interval` and `repeat_interval` of a route, in seconds."""

    wait: float
    interval: float
    repeat: float


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A message at a moment (seconds since 1970), with the alerts that it tells anew, or once more."""

    moment: float
    receiver: str
    group: Labels
    told: tuple[Labels, ...]


def sent(changes: Sequence[Change], paces: Mapping[str, Pace], end: float) -> list[Message]:
    """Every message until `end` that tells of an alert that fires.

    As Alertmanager does: a group begins with its first alert, heard or not, and looks at its alerts when it
    has waited, and at each interval from then on, until it has seen that none is left. At a look it sends
    if an alert is heard that the message before did not name, or one is over and that is news, or, where the
    same still stand, once they have stood for `repeat`. A message that only says that something is over is
    none of these here. What is over while it is held back is forgotten, and nobody is told that it is.

    >>> group, alert = ("ticket", ()), (("alertname", "A"),)
    >>> pace = {"ticket": Pace(wait=300, interval=3600, repeat=7200)}
    >>> [one.moment for one in sent([Change(0, {group: [alert]})], pace, end=12_000)]
    [300, 11100]
    >>> sent([Change(0, {group: [alert]}), Change(240, {})], pace, end=12_000)
    []
    """
    groups = dict.fromkeys(group for one in changes for group in one.firing)
    return sorted(message for group in groups for message in _of(group, changes, paces[group[0]], end))


def _of(group: Group, changes: Sequence[Change], pace: Pace, end: float) -> Iterator[Message]:
    look: float | None = None  # the group's next one; None: there is no group
    members: set[Labels] = set()  # what fires, and what is over since the last look
    named: set[Labels] = set()  # what the last message said to fire
    ended: set[Labels] = set()  # and to be over
    last = 0.0
    for change, until in zip(changes, [*(one.moment for one in changes[1:]), end], strict=True):
        firing = set(change.firing.get(group, ()))
        members |= firing
        if look is None and firing:
            look = change.moment + pace.wait
        while look is not None and (look < until or look == until == end):
            heard = {one for one in members if change.heard(one)}
            over, stand = heard - firing, heard & firing
            fresh, again = stand - named, look - last > pace.repeat
            news = bool(named) if not stand else bool(fresh) or again or not over <= ended
            if heard and news:
                if told := fresh or (stand if again else ()):
                    yield Message(look, *group, tuple(sorted(told)))
                named, ended, last = stand, over, look
            members = firing.copy()
            look = look + pace.interval if members else None
