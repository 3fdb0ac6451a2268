"""The past violations of each series: from the window that was violated to the one that ended it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from monitor.core.results import Result, Status, Window
from monitor.history.reads import Evaluated, StoredResult
from monitor.history.rows import series_digest
from monitor.history.standing import BLANK, Signal, Standing, fold, signal_of

_Series = tuple[str, str, str]  # recommender, check, digest


@dataclass(frozen=True, slots=True)
class PastViolation:
    """A violation of one series.

    Attributes:
        first: the first violated window.
        end: the window that ended it; None if it has not ended in the results at hand.
        is_gone: whether it ended because that window no longer judges the series.
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
    is_gone: bool = False


def past_violations(
    results: Iterable[StoredResult], evaluated: Iterable[Evaluated] = ()
) -> list[PastViolation]:
    """The violations, the oldest first, as alerts see them: one lasts until a judged window clears it.

    It also ends with a judged window that lacks the series, such as that of a removed rule. If the series
    comes back and is still violated, the violation goes on.

    Args:
        results: in the order of time for each series.
        evaluated: the windows of these results, and windows without results.
    """
    found: list[PastViolation] = []
    current: dict[_Series, int] = {}  # series -> place in `found` of what has not ended, or only as gone
    standings: dict[_Series, Standing] = {}
    for (recommender, check, window), own in _by_window(results, evaluated).items():
        for series, result in own.items():
            signal = signal_of(result)
            standing = standings[series] = fold([(window, signal)], standings.get(series))
            place = current.get(series)
            if standing.status is not Status.VIOLATED:
                if place is not None and not found[place].is_gone:
                    found[place] = replace(found[place], end=window)
                current.pop(series, None)
            elif place is None:
                current[series] = len(found)
                found.append(PastViolation(recommender, check, window, None, 1, result, result))
            else:
                found[place] = replace(found[place], end=None, is_gone=False)
                if signal is Signal.FIRE:
                    found[place] = replace(found[place], windows=found[place].windows + 1, newest=result)
        for series, place in current.items():
            if series[:2] == (recommender, check) and series not in own and not found[place].is_gone:
                found[place] = replace(found[place], end=window, is_gone=True)
    return sorted(found, key=lambda one: one.first.end)


def _by_window(
    results: Iterable[StoredResult], evaluated: Iterable[Evaluated]
) -> Mapping[tuple[str, str, Window], Mapping[_Series, Result]]:
    """The results of each judged window of a check, in the order of time.

    A window that could not be judged and has no result is left out: it does not show that a series is gone.
    """
    found: dict[tuple[str, str, Window], dict[_Series, Result]] = {
        (one.recommender, one.check, one.window): {} for one in evaluated if one.status not in BLANK
    }
    for one in results:
        series = (one.recommender, one.check, series_digest(one.result))
        found.setdefault((one.recommender, one.check, one.window), {})[series] = one.result
    return dict(sorted(found.items(), key=lambda item: (item[0][2].end, item[0][2].start)))
