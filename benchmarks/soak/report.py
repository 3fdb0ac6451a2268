"""What a whole soak found: two runs, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.soak.comparison import differences
from benchmarks.soak.killer import FEWEST
from benchmarks.soak.plan import EVENTS, Step
from benchmarks.soak.run import Outcome
from benchmarks.soak.samples import Growth, growth


@dataclass(frozen=True, slots=True)
class Report:
    """Two runs of one plan.

    Attributes:
        windows: of each recommender that were judged.
        events: what happened to the files, with its count.
        left_out: the troubles that this machine does not allow.
        stages: the stages in which a kill could come.
        is_proven: whether there were so many kills that every stage needs some.
    """

    history: str
    windows: int
    events: dict[str, str]
    left_out: Sequence[str]
    stages: Sequence[str]
    undisturbed: Outcome
    disturbed: Outcome
    differences: list[str]
    quiet_growth: Growth
    disturbed_growth: Growth
    is_proven: bool

    @property
    def problems(self) -> list[str]:
        """Why the soak failed, one line each; empty if it passed."""
        found = []
        if self.differences:
            found.append(f"{len(self.differences):,} rows of the histories differ")
        if left := self.disturbed.kills.left:
            found.append(f"{len(left)} processes outlived their daemon")
        missing = self.disturbed.kills.without(self.stages, FEWEST)
        if self.is_proven and missing:
            found.append(f"fewer than {FEWEST} kills fell into: {', '.join(missing)}")
        for name, one in (("undisturbed", self.quiet_growth), ("disturbed", self.disturbed_growth)):
            if not one.is_flat:
                found.append(
                    f"the {name} daemon grows: {one.memory.growth:+.1f} MiB, {one.files.growth:+.1f} files"
                )
        return found


def report(
    steps: Sequence[Step],
    undisturbed: Outcome,
    disturbed: Outcome,
    *,
    history: str,
    windows: int,
    left_out: Sequence[str],
    stages: Sequence[str],
    is_proven: bool,
) -> Report:
    """Compare the two runs."""
    counted = Counter(step.event for step in steps)
    return Report(
        history=history,
        windows=windows,
        events={name: str(counted[name]) for name in EVENTS},
        left_out=left_out,
        stages=stages,
        undisturbed=undisturbed,
        disturbed=disturbed,
        differences=differences(undisturbed.history, disturbed.history),
        quiet_growth=growth(undisturbed.samples),
        disturbed_growth=growth(disturbed.samples),
        is_proven=is_proven,
    )
