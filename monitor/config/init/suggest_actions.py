"""Suggests the settings of the metrics of feedback: events with their grades, attribution, k."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta

from monitor.config.init.actions import LONGEST_NAME, MOST_EVENTS, SPANS, WITHIN, Actions, Delays, grade
from monitor.config.init.template import comment, key
from monitor.config.init.traits import Traits
from monitor.core.settings import parse_duration, show_duration
from monitor.settings.metrics import MetricSettings

_MOST_WINDOWS = 100  # longest attribution, in windows: each window reads all of them again


def suggest_actions(actions: Actions | None, read: Traits | None, window: str) -> list[str]:
    """Lines of the metrics' settings that follow from the feedback."""
    if actions is None:
        return []
    lines = [*_events(actions), _attribution(actions.delays, parse_duration(window))]
    if read is not None:
        places = ", ".join(map(str, MetricSettings().k))
        longest = f"the longest sampled list has {read.longest:,}"
        lines.append(
            f"# k: [{places}]{comment(f'the cut-offs of ranking metrics (ndcg, recall); {longest}')}"
        )
    return lines


def _events(actions: Actions) -> Iterator[str]:
    graded = [(name, count, *grade(name)) for name, count in actions.events]
    fit = [one for one in graded if one[2] is not None and 0 < len(one[0]) <= LONGEST_NAME]
    chosen = fit[:MOST_EVENTS]
    if chosen:
        yield "events: # user actions, each with its grade of relevance; guessed by name, so check them"
    for name, count, relevance, why in chosen:
        seen = f"a guess: {why}; {count:,} of {actions.total:,} sampled actions"
        yield f"  {key(name)}: {{grade: {relevance}}}{comment(seen)}"
    for name, count, _, why in [one for one in graded if one not in chosen][:MOST_EVENTS]:
        reason = why if grade(name)[0] is None else "left out"
        yield f"  # not judged: {comment(f'{name[:LONGEST_NAME]} ({count:,}): {reason}').removeprefix(' # ')}"


def _attribution(delays: Delays | None, window: timedelta) -> str:
    default = MetricSettings().attribution
    what = "an action counts for a list shown at most this long before it"
    plain = f"# attribution: {show_duration(default)}"
    if delays is None:
        return f"{plain}{comment(what)}"
    if delays.before > 0.5:
        seen = f"{delays.before:.0%} of {delays.n:,} actions come before their list: check the time zones"
        return f"{plain}{comment(seen)}"
    seen = f"{WITHIN:.0%} of {delays.n:,} actions came within {about(delays.typical)} of their list"
    if delays.typical <= timedelta(0):
        seen = f"{WITHIN:.0%} of {delays.n:,} actions have the time of their list, so the delay is unknown"
    if delays.typical <= default:
        return f"{plain}{comment(f'{what}; {seen}')}"
    longest = _MOST_WINDOWS * window
    enough = [one for one in SPANS if delays.typical <= one <= longest]
    if enough:
        why = f"a guess: {seen}; each window waits this long for its actions"
        return f"attribution: {show_duration(enough[0])}{comment(why)}"
    bearable = [(one, share) for one, share in zip(SPANS, delays.within, strict=True) if one <= longest]
    length, share = bearable[-1] if bearable else (default, delays.within[0])
    why = (
        f"{share:.0%} of the actions came within this time, {WITHIN:.0%} within {about(delays.typical)}; "
        f"a longer time needs windows longer than {show_duration(window)}"
    )
    return f"attribution: {show_duration(length)}{comment(why)}"


def about(length: timedelta) -> str:
    """A length of time for people, rounded up to at most two units.

    >>> about(timedelta(days=6, hours=23, minutes=58)), about(timedelta(seconds=119))
    ('7d', '2m')
    >>> about(timedelta(hours=5, minutes=58, seconds=19)), about(timedelta(seconds=42.3))
    ('5h59m', '43s')
    """
    seconds = max(math.ceil(length.total_seconds()), 0)
    step = 3600 if seconds >= 86400 else 60 if seconds > 90 else 1
    return show_duration(timedelta(seconds=math.ceil(seconds / step) * step))
