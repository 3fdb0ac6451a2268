"""The state of a check of bands before a window, from the measured windows of the history.

A state begins at a fixed window, the anchor: `history` before the start of a block of four weeks, and no more
than 8,064 windows. So a verdict rests on the same windows whatever the order of judging. States are kept in
memory and are made again if a window before them was measured again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from monitor.anomalies.band_state import MOST, YOUNG, BandState, known_history
from monitor.anomalies.past import (
    Marker,
    PastWindow,
    SeriesName,
    markers_between,
    read_windows,
    series_of,
    stamp,
)
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import DEVIATION
from monitor.core.results import Window
from monitor.settings.bands import BandSettings

_EPOCH: Final = datetime(1970, 1, 5, tzinfo=UTC)  # a Monday
_BLOCK: Final = timedelta(days=28)
_WEEK: Final = timedelta(days=7)
_BATCH: Final = 50  # windows that are read at once
_KEPT: Final = (24, 6)
"""States that are kept beside the newest: one after every so many windows."""


@dataclass(slots=True)
class _Kept:
    """A state and the windows that it rests on: those after `anchor` until its end."""

    anchor: datetime
    state: BandState
    stamp: tuple[object, ...]


class BandPast:
    """Makes the states of one check of bands. Not thread-safe: it keeps the newest ones.

    Args:
        recommender: whose windows.
        measured: the check whose results have bands.
        judged: the check of bands itself.
        settings: of the bands.
    """

    def __init__(self, recommender: str, measured: str, judged: str, settings: BandSettings) -> None:
        self._recommender, self._measured, self._judged = recommender, measured, judged
        self._settings = settings
        # By length: a history may hold windows of two lengths side by side, judged in turn.
        self._kept: dict[tuple[timedelta, int], _Kept] = {}
        self._names: dict[int, SeriesName] = {}

    def before(self, connection: Connection, window: Window, is_calm: Callable[[Window], bool]) -> BandState:
        """The state before a window. The caller takes the window itself with `step`, then calls `keep`.

        `is_calm` says whether a window lies outside of maintenance. Raises StoreError.
        """
        length, anchor = window.length, self.anchor(window)
        kept = {key: one for key, one in self._kept.items() if key[0] == length}
        usable = [one for one in kept.values() if self._is_usable(connection, one, anchor, window)]
        if usable:
            newest = max(usable, key=lambda one: one.state.end or anchor)
            state = newest.state.copy()
        else:
            for key in kept:
                del self._kept[key]
            state = self._begin(connection, anchor, length, is_calm)
        after = max(state.end or anchor, anchor)
        for one, past in self._windows(connection, after, window.start, length):
            state.step(past, one, self._names, calm=is_calm(one))
            self._keep_some(connection, anchor, state, length)
        return state

    def names(self, connection: Connection, numbers: set[int]) -> dict[int, SeriesName]:
        """The names of the measured series with at least these ids."""
        if not numbers <= self._names.keys():
            self._names = series_of(connection, self._recommender, self._measured)
        return self._names

    def keep(self, connection: Connection, window: Window, state: BandState) -> None:
        """Keep the state after a window, so that the next window needs only this one."""
        anchor = self.anchor(window)
        self._keep_some(connection, anchor, state, window.length)
        self._kept[window.length, 1] = _Kept(
            anchor, state, self._stamp(connection, anchor, state, window.length)
        )

    def anchor(self, window: Window) -> datetime:
        """Where the past of a window begins.

        A season is no beginning: then the past begins before the season.
        """
        history = known_history(self._settings, window.length)
        length = min(_BLOCK, MOST * window.length)
        begin = _EPOCH + (window.start - _EPOCH) // length * length - history
        zone = self._settings.zone
        while (season := self._settings.season_of(begin.astimezone(zone).date())) is not None:
            begin -= season.last - season.first + timedelta(days=1)
        return begin

    def _keep_some(
        self, connection: Connection, anchor: datetime, state: BandState, length: timedelta
    ) -> None:
        assert state.end is not None
        number = (state.end - _EPOCH) // length
        for every in _KEPT:
            if number % every == 0:
                self._kept[length, every] = _Kept(
                    anchor, state.copy(), self._stamp(connection, anchor, state, length)
                )

    def _is_usable(self, connection: Connection, kept: _Kept, anchor: datetime, window: Window) -> bool:
        if kept.anchor != anchor or kept.state.end is None or kept.state.end > window.start:
            return False
        return kept.stamp == self._stamp(connection, anchor, kept.state, window.length)

    def _stamp(
        self, connection: Connection, anchor: datetime, state: BandState, length: timedelta
    ) -> tuple[object, ...]:
        assert state.end is not None
        return stamp(connection, self._recommender, self._measured, anchor, state.end, length)

    def _begin(
        self,
        connection: Connection,
        anchor: datetime,
        length: timedelta,
        is_calm: Callable[[Window], bool],
    ) -> BandState:
        """A new state at the anchor. Series that are out of their bands there keep what they knew before."""
        state = BandState(self._settings, length)
        out = self._out(connection, anchor, length)
        if out:
            before = Window(anchor - length, anchor)
            older_anchor = self.anchor(before)
            older = self._begin(connection, older_anchor, length, is_calm)
            for one, past in self._windows(connection, older.end or older_anchor, anchor, length):
                older.step(past, one, self._names, calm=is_calm(one))
            state.take_over(older, out)
        return state

    def _out(self, connection: Connection, anchor: datetime, length: timedelta) -> set[BandedSeries]:
        """The series that were out of their bands about the anchor: a new state would learn their incident.

        From a week before, since an incident may have normal nights and Sundays, until the state is no longer
        so young that it learns from every window.
        """
        judged = markers_between(
            connection,
            self._recommender,
            self._judged,
            anchor - max(_WEEK, length),
            anchor + YOUNG * known_history(self._settings, length),
            length,
        )
        windows = read_windows(connection, judged, DEVIATION.name)
        out = {number for one in windows for number in one.series[one.violated].tolist()}
        names = series_of(connection, self._recommender, self._judged) if out else {}
        return {BandedSeries.banded(names[number]) for number in out}

    def _windows(
        self, connection: Connection, after: datetime, until: datetime, length: timedelta
    ) -> Iterator[tuple[Window, PastWindow]]:
        """The measured windows of a span, in the order of time."""
        found = markers_between(connection, self._recommender, self._measured, after, until, length)
        for first in range(0, len(found), _BATCH):
            batch: list[Marker] = found[first : first + _BATCH]
            for past in read_windows(connection, batch):
                self.names(connection, set(past.series.tolist()))
                yield Window(past.end - length, past.end), past
