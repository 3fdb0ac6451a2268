"""One run of a soak: it lands the steps of the plan, and waits at each barrier."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.soak import stages, trouble
from benchmarks.soak.comparison import Everything, everything
from benchmarks.soak.daemon import SoakError, Supervisor, wait_until, write_config
from benchmarks.soak.killer import Killer, Kills
from benchmarks.soak.plan import AHEAD, Step
from benchmarks.soak.progress import PARTS, Progress, Reader
from benchmarks.soak.samples import Sample, Sampler
from benchmarks.soak.traffic import RECOMMENDERS

PATIENCE: Final = 300.0
"""Seconds that a barrier waits; only what hangs takes so long."""
QUIET: Final = (0.55, 0.72)
"""The part of the windows in which nobody kills: the longest life of the disturbed daemon."""
_LAG: Final = 2  # kills
_PACE: Final = 0.05  # seconds between two windows that land
_SETTLED: Final = 2  # turns without a change
_LAST_SECONDS: Final = 6.0  # at the end: two rounds of housekeeping, and the turns after them


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run has its files; `logs` are the same for both runs, since paths are in the results."""

    folder: Path
    logs: Path
    source: Path
    history: str = ""  # a URL; by default SQLite in the state folder
    disk_mebibytes: int = 512

    @property
    def state(self) -> Path:
        return self.folder / "disk" / "state"

    @property
    def url(self) -> str:
        return self.history or f"sqlite:///{self.state / 'history.sqlite'}"


@dataclass(slots=True)
class Disturbance:
    """What happens to the disturbed run besides its files."""

    kills: int
    troubles: Callable[[Path | None], dict[str, trouble.Trouble]]
    rounds: int
    barriers: Sequence[Progress]
    expected_stages: Sequence[str]
    seed: int


@dataclass(slots=True)
class Outcome:
    """What a run has found."""

    history: Everything
    barriers: list[Progress] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    seconds: float = 0.0
    starts: int = 0
    exits: list[str] = field(default_factory=list)
    troubles: Counter[str] = field(default_factory=Counter)
    kills: Kills = field(default_factory=Kills)
    has_disk: bool = False


def run(steps: Sequence[Step], place: Place, disturbed: Disturbance | None = None) -> Outcome:
    """Land all steps for one daemon. Raises SoakError if something goes wrong."""
    _prepare(place)
    began = time.monotonic()
    with ExitStack() as stack:
        disk = place.folder / "disk"
        is_disk = stack.enter_context(trouble.small_disk(disk, place.disk_mebibytes))
        config = place.folder / "config.yaml"
        write_config(config, logs=place.logs, state=place.state, history=place.history)
        supervisor = Supervisor(config, place.folder)
        stack.callback(supervisor.close)
        driver = _Driver(steps, place, supervisor, disturbed, disk if is_disk else None)
        supervisor.start()
        sampler = stack.enter_context(Sampler(supervisor.pids, lambda: driver.window))
        driver.run()
        time.sleep(_LAST_SECONDS)
        code = supervisor.stop()
        if code != 0:
            raise SoakError(f"the daemon ended with {code}:\n{supervisor.last_words(20)}")
        if disturbed is None and supervisor.exits:
            raise SoakError(f"the undisturbed daemon ended by itself: {supervisor.exits}")
        return Outcome(
            history=everything(place.url, place.state),
            barriers=driver.barriers,
            samples=sampler.samples,
            seconds=time.monotonic() - began,
            starts=supervisor.starts,
            exits=supervisor.exits,
            troubles=driver.troubles,
            kills=driver.kills,
            has_disk=is_disk,
        )


def _prepare(place: Place) -> None:
    """An empty folder of the run, and the logs as they are before the first window."""
    for folder in (place.folder, place.logs):
        shutil.rmtree(folder, ignore_errors=True)
    for name in RECOMMENDERS:
        for log in ("exposures", "feedback"):
            (place.logs / name / log).mkdir(parents=True)
        for file in ("catalog.parquet", "blacklist.csv"):
            shutil.copy2(place.source / name / file, place.logs / name / file)


class _Driver:
    """Lands the steps; in the disturbed run with a killer beside it, and with troubles at some steps."""

    def __init__(
        self,
        steps: Sequence[Step],
        place: Place,
        supervisor: Supervisor,
        disturbed: Disturbance | None,
        disk: Path | None,
    ) -> None:
        self._steps = steps
        self._place = place
        self._supervisor = supervisor
        self._disturbed = disturbed
        self._reader = Reader(place.url)
        self._total = max(step.windows.stop for step in steps)
        self._killer: Killer | None = None
        self.window = -1
        self.barriers: list[Progress] = []
        self.troubles: Counter[str] = Counter()
        self._at: dict[int, str] = {}
        self._contexts = {} if disturbed is None else disturbed.troubles(disk)
        if disturbed is not None:
            self._draw(disturbed)

    @property
    def kills(self) -> Kills:
        return self._killer.kills if self._killer else Kills()

    def _draw(self, disturbed: Disturbance) -> None:
        """Choose the steps of troubles and the windows of kills."""
        chosen = random.Random(disturbed.seed)
        names = [name for name in self._contexts for _ in range(disturbed.rounds)]
        large = [number for number, step in enumerate(self._steps) if number and len(step.windows) > 2]
        self._at = dict(zip(chosen.sample(large, min(len(large), len(names))), names, strict=False))
        last = int(0.9 * self._total)
        begin, end = (int(part * self._total) for part in QUIET)
        allowed = [window for window in range(last) if not begin <= window < end]
        places = [chosen.choice(allowed) for _ in range(disturbed.kills)]
        reserve = list(range(last, self._total)) * 2 if disturbed.kills >= len(stages.STAGES) * 2 else []
        self._killer = Killer(self._supervisor, places, reserve, disturbed.expected_stages, disturbed.seed)

    def run(self) -> None:
        try:
            for number, step in enumerate(self._steps):
                self._land(number, step)
                self._wait(number)
                _say(f"{self.window + 1 - AHEAD:5} windows, step {number + 1} of {len(self._steps)}, "
                     f"{self.kills.total} kills, {self._supervisor.starts} starts")  # fmt: skip
            if self._killer is not None:
                self._killer.finish()
                self._wait(len(self._steps) - 1)
        finally:
            if self._killer is not None:
                self._killer.close()

    def _land(self, number: int, step: Step) -> None:
        with ExitStack() as stack:
            name = self._at.get(number, "")
            end = 0.0
            if name:
                wait_until("the first start", lambda: self._reader.look() is not None, PATIENCE)
                stack.enter_context(self._contexts[name]())
                self.troubles[name] += 1
                end = time.monotonic() + trouble.SECONDS[name]
            windows = list(step.windows)
            for place, actions in enumerate(step.actions):
                if windows:
                    self.window = windows[place]
                    if self._killer is not None:
                        self._killer.reached(self.window, _LAG)
                for action in actions:
                    action.apply(self._place.source, self._place.logs)
                time.sleep(_PACE)
            time.sleep(max(0.0, end - time.monotonic()))

    def _wait(self, number: int) -> None:
        if self._disturbed is None:
            self.barriers.append(self._settled())
            return
        expected = self._disturbed.barriers[number]
        end = time.monotonic() + PATIENCE
        while True:
            found = self._reader.look()
            if found is not None and found.state == expected.state:
                return
            if time.monotonic() > end:
                why = (
                    "the history cannot be read" if found is None else "\n".join(expected.differences(found))
                )
                raise SoakError(
                    f"step {number}: the disturbed run does not come to the state of the undisturbed one:\n"
                    f"{why}\n{self._supervisor.last_words(20)}"
                )
            time.sleep(0.1)

    def _settled(self) -> Progress:
        """The progress once the daemon has judged all that is due, and has found nothing new after it."""
        end = time.monotonic() + PATIENCE
        before: Progress | None = None
        while time.monotonic() < end:
            found = self._reader.look()
            if found is None or not self._is_indexed(found) or not self._is_judged(found):
                before = None
            elif before is None or before.state != found.state:
                before = found
            elif all(found.turns[name] >= before.turns[name] + _SETTLED for name in RECOMMENDERS):
                return found
            time.sleep(0.1)
        raise SoakError(f"the undisturbed run hangs: {found}\n{self._supervisor.last_words(20)}")

    def _is_indexed(self, found: Progress) -> bool:
        """Whether the index has the files that are there, as they are."""
        listed = {(row[0], row[1]) for row in found.files if row[3] != "unlisted"}
        unlisted = {row[0] for row in found.files if row[3] == "unlisted"}
        there = {
            (str(path), path.stat().st_size)
            for path in self._place.logs.glob("*/*/*.parquet")
            if not path.is_symlink()
        }
        there |= {(str(path), path.stat().st_size) for path in self._place.logs.glob("*/catalog.parquet")}
        loops = {str(path) for path in self._place.logs.glob("*/*/*.parquet") if path.is_symlink()}
        return listed == there and unlisted == loops

    def _is_judged(self, found: Progress) -> bool:
        """Whether every window was judged that has landed, but for the newest, which the log must pass."""
        waiting = {"exposures": 1, "feedback": AHEAD}
        return all(
            found.judged.get((name, part), 0) == self.window + 1 - waiting[part]
            for name in RECOMMENDERS
            for part in PARTS.values()
        )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
