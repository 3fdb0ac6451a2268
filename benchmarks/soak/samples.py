"""Memory and open files of the daemon over a run, and whether they are flat."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.processes import mebibytes

MOST_MEMORY: Final = 0.05
"""The most that the memory may grow over the second half, as a part of its level."""
MOST_FILES: Final = 3.0
"""The most that the number of open files may grow over the second half."""
FEWEST_WINDOWS: Final = 100
"""Over fewer windows in the second half, the growth says nothing: the caches still fill."""
_EVERY: Final = 2.0
_MOST_POINTS: Final = 300


@dataclass(frozen=True, slots=True)
class Sample:
    """The daemon and its processes at one moment; `life` is the number of its process."""

    window: int
    life: int
    mebibytes: float
    files: int
    processes: int = 4


@dataclass(frozen=True, slots=True)
class Flat:
    """The straight line through the second half of some samples."""

    level: float
    growth: float
    windows: int

    @property
    def is_long_enough(self) -> bool:
        return self.windows >= FEWEST_WINDOWS

    def is_flat(self, most: float) -> bool:
        return self.growth <= most


def fit(points: Sequence[tuple[float, float]]) -> Flat:
    """Level and growth over the second half of the windows, by the median of all slopes (Theil and Sen).

    A few samples far off, as while a judge starts, do not change the median.

    >>> fit([(n, 100.0 + n) for n in range(101)])
    Flat(level=175.0, growth=50.0, windows=50)
    """
    if len(points) < 2:
        return Flat(points[0][1] if points else 0.0, 0.0, 0)
    first, last = points[0][0], points[-1][0]
    half = [point for point in points if point[0] >= (first + last) / 2]
    step = -(-len(half) // _MOST_POINTS)
    half = half[::step]
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in itertools.combinations(half, 2) if c > a]
    span = half[-1][0] - half[0][0]
    growth = statistics.median(slopes) * span if slopes else 0.0
    return Flat(statistics.median(value for _, value in half), growth, int(span))


@dataclass(frozen=True, slots=True)
class Growth:
    """Memory and open files of one life of the daemon."""

    windows: int
    memory: Flat
    files: Flat

    @property
    def is_flat(self) -> bool:
        """Whether both are flat, or the life was too short to say."""
        return not self.memory.is_long_enough or (
            self.memory.is_flat(MOST_MEMORY * self.memory.level) and self.files.is_flat(MOST_FILES)
        )


def longest_life(samples: Sequence[Sample]) -> list[Sample]:
    """The samples of the process that judged the most windows."""
    lives: dict[int, list[Sample]] = {}
    for one in samples:
        lives.setdefault(one.life, []).append(one)
    return max(lives.values(), key=lambda life: life[-1].window - life[0].window, default=[])


def growth(samples: Sequence[Sample]) -> Growth:
    """How memory and open files grew in the longest life."""
    life = longest_life(samples)
    return Growth(
        life[-1].window - life[0].window if life else 0,
        fit([(one.window, one.mebibytes) for one in life]),
        fit([(one.window, float(one.files)) for one in life]),
    )


class Sampler:
    """Takes samples of the daemon in a thread of its own, until the block ends."""

    def __init__(self, pids: Callable[[], Sequence[int]], window: Callable[[], int]) -> None:
        """`pids` are the daemon's process, first, and those below it; empty while none runs."""
        self._pids, self._window = pids, window
        self._stop = threading.Event()
        self.samples: list[Sample] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY):
            pids = self._pids()
            if not pids:
                continue
            window, begun = self._window(), time.monotonic()
            try:
                memory = sum(map(mebibytes, pids))
                files = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids)
            except OSError:  # one of them has just ended
                continue
            if time.monotonic() - begun < _EVERY:
                self.samples.append(Sample(window, pids[0], memory, files, len(pids)))
