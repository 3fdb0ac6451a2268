"""The plan of a soak: steps of a seed, the same in both runs.

A step is a few actions. After each step the driver waits until the daemon has judged what they make due.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from benchmarks.soak.actions import Action
from benchmarks.soak.traffic import EXPOSURES, FEEDBACK, LOGS, RECOMMENDERS, SEED, name_of

LATE, HALF, COPY, DELETED, BACK, UNREADABLE, UNLISTED = EVENTS = (
    "late", "half-written", "duplicated", "deleted", "deleted and put back", "unreadable", "cannot be listed",
)  # fmt: skip
AHEAD: Final = 2  # windows that land after the last one that is judged
_KEPT: Final = 90  # windows whose files stay in the folder; a log is rotated
_REACH: Final = (3, 14)  # how many windows back a late or a deleted file may belong
_GROUP: Final = (3, 8)
_FIRST_GROUP: Final = 6


@dataclass(slots=True)
class Step:
    """Some actions, and a barrier after them.

    Attributes:
        windows: the windows that land in this step, which may be none.
        actions: of each window in turn, or of the event.
        event: the event that begins in this step; empty if none does.
    """

    windows: range
    actions: list[list[Action]]
    event: str = ""


@dataclass(slots=True)
class Planner:
    """Draws the steps; see `plan`."""

    total: int
    random: random.Random
    landed: dict[int, list[str]] = field(default_factory=dict)  # window -> its files, in the folder now
    newest: int = -1
    oldest: int = 0

    def windows(self, count: int, half: tuple[str, str] | None = None) -> Step:
        """The next windows. Of the first one, one file is only half there if `half` names a log."""
        first = self.newest + 1
        windows = range(first, min(first + count, self.total))
        actions = []
        for window in windows:
            self.newest = window
            of_window = []
            # Feedback comes first: a window is judged once its log of exposures has passed it.
            for log in (FEEDBACK, EXPOSURES):
                for recommender in RECOMMENDERS:
                    cut = half == (recommender, log) and window == first
                    of_window.append(self.land(recommender, log, window, kind="half" if cut else "put"))
            actions.append(of_window + self._rotated())
        return Step(windows, actions)

    def land(
        self, recommender: str, log: str, window: int, *, kind: str = "put", late: bool = False
    ) -> Action:
        path = f"{recommender}/{log}/{name_of(window, late=late)}"
        self._is_there(window, path)
        return Action("half" if kind == "half" else "put", path, self.newest, source=path)

    def event(self, action: Action, name: str = "") -> Step:
        return Step(range(0), [[action]], name)

    def back(self) -> int:
        return self.newest - self.random.randint(*_REACH)

    def remove(self, window: int, path: str) -> Action:
        self.landed[window].remove(path)
        return Action("remove", path, self.newest)

    def junk(self, recommender: str, log: str, kind: str) -> Action:
        path = f"{recommender}/{log}/{name_of(self.newest).replace('w', kind, 1)}"
        self._is_there(self.newest, path)
        return Action("loop" if kind == "loop" else "junk", path, self.newest)

    def copy(self, recommender: str, log: str, window: int) -> Action:
        source = f"{recommender}/{log}/{name_of(window)}"
        path = source.replace(".parquet", "-copy.parquet")
        self._is_there(window, path)
        return Action("put", path, self.newest, source=source)

    def _is_there(self, window: int, path: str) -> None:
        held = self.landed.setdefault(window, [])
        if path not in held:
            held.append(path)

    def _rotated(self) -> list[Action]:
        """Remove the files of old windows, the oldest first."""
        actions = []
        while self.oldest < self.newest - _KEPT:
            actions += [self.remove(self.oldest, path) for path in list(self.landed.get(self.oldest, ()))]
            self.oldest += 1
        return actions


def plan(windows: int, seed: int = SEED) -> list[Step]:
    """The steps until this many windows of each recommender can be judged."""
    return list(_steps(Planner(windows + AHEAD, random.Random(seed))))


def _steps(planner: Planner) -> Iterator[Step]:
    yield planner.windows(_FIRST_GROUP)
    used: set[tuple[str, str, int]] = set()  # one event for each file
    events: list[str] = []
    while planner.newest < planner.total - 1:
        if not events:
            events = planner.random.sample(EVENTS, len(EVENTS))
        event = events.pop()
        recommender, log = planner.random.choice(RECOMMENDERS), planner.random.choice(LOGS)
        window = max(0, planner.back())
        size = planner.random.randint(*_GROUP)
        if event in (LATE, COPY, DELETED, BACK) and (recommender, log, window) in used:
            yield planner.windows(1)
            continue
        used.add((recommender, log, window))
        path = f"{recommender}/{log}/{name_of(window)}"
        if event == LATE:
            yield planner.event(planner.land(recommender, log, window, late=True), LATE)
            yield planner.windows(size)
        elif event == COPY:
            yield planner.event(planner.copy(recommender, log, window), COPY)
            yield planner.windows(size)
        elif event == DELETED:
            yield planner.event(planner.remove(window, path), DELETED)
            yield planner.windows(size)
        elif event == BACK:
            yield planner.event(planner.remove(window, path), BACK)
            yield planner.windows(size)
            # As a backup gives it back: with the same time of change as before.
            whole = Action("put", path, window, source=path)
            planner.landed[window].append(path)
            yield planner.event(whole)
        elif event == HALF:
            first = planner.newest + 1
            if first + 1 >= planner.total:
                continue  # no window would follow whose rows show that this one is over
            step = planner.windows(size, half=(recommender, log))
            step.event = HALF
            yield step
            yield planner.event(planner.land(recommender, log, first))
        else:
            junk = planner.junk(recommender, log, "loop" if event == UNLISTED else "junk")
            window = planner.newest
            yield planner.event(junk, event)
            yield planner.windows(size)
            yield planner.event(planner.remove(window, junk.path))
