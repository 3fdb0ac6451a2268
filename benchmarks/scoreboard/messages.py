"""When Alertmanager sends messages: its groups, with `group_wait`, `group_interval` and `repeat_interval`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Labels = tuple[tuple[str, str], ...]  # (name, value) pairs in their order
Group = tuple[str, Labels]  # receiver, the labels that its alerts have in common


@dataclass(frozen=True, slots=True)
class Change:
    """The state from a moment on: the firing alerts by group; `heard`: whether an alert is not inhibited."""

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
    """A message at a moment (seconds since 1970), with its new or repeated alerts."""

    moment: float
    receiver: str
    group: Labels
    told: tuple[Labels, ...]


def sent(changes: Sequence[Change], paces: Mapping[str, Pace], end: float) -> list[Message]:
    """Every message until `end` with a firing alert.

    As in Alertmanager: a group begins with its first alert, inhibited or not. It flushes after `wait`, and
    then at each `interval`, until it is empty. A flush sends a message if an alert is new since the last
    message, if one has resolved, or if the same alerts fire for `repeat`. Messages with only resolved alerts
    are left out. An alert that resolves while it is inhibited is forgotten.

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
    look: float | None = None  # the group's next flush; None: there is no group
    members: set[Labels] = set()  # firing alerts, and those resolved since the last flush
    named: set[Labels] = set()  # firing in the last message
    ended: set[Labels] = set()  # resolved in the last message
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
