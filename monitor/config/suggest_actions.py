"""Which settings of the metrics a feedback log suggests: events with their grades, attribution, k."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from monitor.config.actions import LONGEST_NAME, MOST_EVENTS, WITHIN, Actions, Delays, grade
from monitor.config.problems import show_duration
from monitor.config.template import comment, key
from monitor.config.traits import Traits
from monitor.metrics.settings import MetricSettings
from monitor.settings import parse_duration

_SPANS = tuple(map(parse_duration, ("1h", "2h", "4h", "8h", "12h", "1d", "2d", "3d", "7d")))
_MOST_WINDOWS = 100  # each of which is read again for every one of them


def suggest_actions(actions: Actions | None, read: Traits | None, window: str) -> list[str]:
    """Lines of the metrics' settings that the feedback tells."""
    if actions is None:
        return []
    lines = [*_events(actions), _attribution(actions.delays, parse_duration(window))]
    if read is not None:
        places = ", ".join(map(str, MetricSettings().k))
        longest = f"the longest list looked at has {read.longest:,}"
        lines.append(
            f"# k: [{places}]{comment(f'the places at which lists are judged (ndcg, recall); {longest}')}"
        )
    return lines


def _events(actions: Actions) -> Iterator[str]:
    graded = [(name, count, *grade(name)) for name, count in actions.events]
    fit = [one for one in graded if one[2] is not None and 0 < len(one[0]) <= LONGEST_NAME]
    chosen = fit[:MOST_EVENTS]
    if chosen:
        yield "events: # what users do, and how much each says for its item; guessed by name, so correct it"
    for name, count, relevance, why in chosen:
        seen = f"a guess: {why}; {count:,} of {actions.total:,} actions looked at"
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
        seen = f"{delays.before:.0%} of {delays.n:,} actions come before their list: is a timezone wrong?"
        return f"{plain}{comment(seen)}"
    typical = timedelta(seconds=round(delays.typical.total_seconds()))
    within = show_duration(max(typical, timedelta(0)))
    seen = f"{WITHIN:.0%} of {delays.n:,} actions came within {within} of their list"
    if typical <= default:
        return f"{plain}{comment(f'{what}; {seen}')}"
    bearable = [one for one in _SPANS if one <= _MOST_WINDOWS * window]
    enough = [one for one in bearable if one >= typical] or bearable[-1:]
    if not enough:
        return f"{plain}{comment(f'{seen}; longer windows would bear a longer one')}"
    length = show_duration(enough[0])
    return f"attribution: {length}{comment(f'a guess: {seen}; a window waits as long for its actions')}"
