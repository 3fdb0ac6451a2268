"""Are the causes of AUC gaps named right, and are their shares close to the true ones?

About 180 small worlds with interactions, categories, rare positives and real features. In each one thing
is broken. The true share comes from the deployed model itself; see tests/models/diagnosis/interactions.py.
The exit code is 1 where a healthy world has a cause, or where fewer than 95 of 100 gaps have the right name
first.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from statistics import median
from typing import Any, NamedTuple

from benchmarks import page
from monitor.models.diagnosis.diagnose import diagnose
from monitor.statistics.auc import auc_gap, auc_sums
from tests.models.diagnosis.interactions import World, sweep

ASSERTED = 0.01
RIGHT = 0.95


class Seen(NamedTuple):
    """What one world showed."""

    world: World
    gap: bool
    causes: tuple[Any, ...]
    seconds: float

    @property
    def right(self) -> bool:
        return bool(self.causes) and self.causes[0].cause == self.world.cause

    @property
    def error(self) -> float | None:
        """The share given less the true one; None where one of them is unknown."""
        if not self.right or self.causes[0].share is None or self.world.share is None:
            return None
        return float(self.causes[0].share - self.world.share)


def look(world: World) -> Seen:
    """Diagnose one world."""
    sides = [auc_sums(one.scores, one.labels) for one in (world.better, world.worse)]
    gap = auc_gap(*sides)  # type: ignore[arg-type]
    began = time.perf_counter()
    causes = diagnose(world.pair, world.better, world.worse, train=world.train, pairs=world.pairs)  # type: ignore[arg-type]
    taken = time.perf_counter() - began
    return Seen(world, gap is not None and gap.interval.lower > ASSERTED, causes, taken)


def table(found: list[Seen]) -> str:
    """A row a kind of world, then one a kind of model."""
    lines = [
        "| what is broken | worlds | gap asserted | right cause first | share off, median | worst below "
        "| worst above | share unknown |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    names = list(dict.fromkeys(one.world.name for one in found))
    models = list(dict.fromkeys(one.world.model for one in found))
    broken = [one for one in found if one.world.cause is not None]
    groups = [(name, [one for one in found if one.world.name == name]) for name in names]
    groups += [(f"*all of {model}*", [one for one in broken if one.world.model == model]) for model in models]
    for name, own in groups:
        gaps = [one for one in own if one.gap]
        right = [one for one in gaps if one.right]
        errors = [one.error for one in right if one.error is not None]
        shown = (
            [f"{value:+.2f}" for value in (median(errors), min(errors), max(errors))] if errors else [""] * 3
        )
        unknown = sum(one.causes[0].share is None for one in right)
        if all(one.world.cause is None for one in own):
            named = sum(bool(one.causes) for one in own)
            lines.append(f"| {name} | {len(own)} | {len(gaps)} | {named} named | | | | |")
            continue
        cells = [name, len(own), len(gaps), f"{len(right)} of {len(gaps)}", *shown, unknown]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(
        [*lines, "", f"Seconds of a diagnosis: median {median(one.seconds for one in found):.2f}."]
    )


def kept(found: list[Seen]) -> bool:
    """Whether the names are right often enough, and no healthy world has a cause."""
    gaps = [one for one in found if one.gap and one.world.cause is not None]
    alarms = [one for one in found if one.world.cause is None and one.causes]
    return not alarms and sum(one.right for one in gaps) >= RIGHT * len(gaps)


def main(arguments: list[str] | None = None) -> int:
    """Look at every world and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    chosen = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", module="sklearn")
    worlds = sweep(range(chosen.seeds), chosen.rows)  # type: ignore[no-untyped-call]
    found = [look(make(*given)) for make, given in worlds]
    text = table(found)
    print(text)
    if chosen.keep:
        page.keep("bench-diagnosis", f"{page.machine()}\n\n{text}")
    return int(not kept(found))


if __name__ == "__main__":
    sys.exit(main())
