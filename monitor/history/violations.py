"""The past violations of each series: from the window that was violated to the one that ended it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from monitor.core.results import Result, Status, Window
from monitor.history.reads import StoredResult
from monitor.history.rows import series_digest
from monitor.history.standing import Signal, Standing, fold, signal_of


@dataclass(frozen=True, slots=True)
class PastViolation:
    """A violation of one series.

    Attributes:
        first: the first violated window.
        end: the window that ended it; None if it has not ended in the results at hand.
        windows: how many windows of it were violated on their own.
        result: what the first of them says, with its evidence.
        newest: what the last of them says.
    """

    recommender: str
    check: str
    first: Window
    end: Window | None
    windows: int
    result: Result
    newest: Result


def past_violations(results: Iterable[StoredResult]) -> list[PastViolation]:
    """The violations, the oldest first, as alerts see them: one lasts until a judged window clears it.

    Args:
        results: in the order of time for each series.
    """
    found: list[PastViolation] = []
    current: dict[tuple[str, str, str], int] = {}  # series -> place in `found` of what has not ended
    standings: dict[tuple[str, str, str], Standing] = {}
    for stored in results:
        series = (stored.recommender, stored.check, series_digest(stored.result))
        signal = signal_of(stored.result)
        standing = standings[series] = fold([(stored.window, signal)], standings.get(series))
        place = current.get(series)
        if standing.status is not Status.VIOLATED:
            if place is not None:
                found[place] = replace(found[place], end=stored.window)
                del current[series]
        elif place is None:
            current[series] = len(found)
            found.append(
                PastViolation(
                    stored.recommender, stored.check, stored.window, None, 1, stored.result, stored.result
                )
            )
        elif signal is Signal.FIRE:
            found[place] = replace(found[place], windows=found[place].windows + 1, newest=stored.result)
    return sorted(found, key=lambda one: one.first.end)
