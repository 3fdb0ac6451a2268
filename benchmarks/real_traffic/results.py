"""The sweeps that are kept in the repository, from which docs/real-traffic.md is written again.

`python -m benchmarks.real_traffic.results` writes the page without a run.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from benchmarks.real_traffic import page
from benchmarks.real_traffic.outcomes import Figures
from benchmarks.real_traffic.page import FALSE_ALARMS, Content, Made
from benchmarks.real_traffic.peers import Curve
from benchmarks.real_traffic.picture import DRAWN, Compared
from benchmarks.real_traffic.sweep import Swept
from benchmarks.real_traffic.traffic import SERIES, Hours
from benchmarks.scoreboard.jobs import digest

_KEPT: Final = TypeAdapter(Content)
RESULTS: Final = Path(__file__).with_name("results.jsonl.gz")
_CODE: Final = (
    "monitor",
    "rules/alerts",
    "benchmarks/real_traffic/draws.py",
    "benchmarks/real_traffic/watched.py",
)
POINTS: Final = tuple(sorted({*FALSE_ALARMS, *DRAWN}))
"""False alarms a week at which the methods are compared."""


def code() -> str:
    """A digest of what a sweep runs."""
    return digest(_CODE)


def content(swept: Swept, hours: Hours, curves: Mapping[str, Curve], made: Made) -> Content:
    """What the page shows of a sweep. The values of the series are not part of it."""
    compared = [_compared(method, one, false) for method, one in curves.items() for false in POINTS]
    return Content(Figures.of(swept, hours), compared, made)


def _compared(method: str, curve: Curve, false: float) -> Compared:
    place = curve.at_most(false)
    if place is None:
        return Compared(method, false, None)
    return Compared(method, false, {name: shares[place] for name, shares in curve.caught.items()})


def save(contents: Iterable[Content], path: Path = RESULTS) -> None:
    """Keep sweeps; one of the same weeks of a series gives way."""
    known = {one.figures.name: one for one in (*kept(path), *contents)}
    ordered = sorted(known.values(), key=_order)
    texts = [_KEPT.dump_json(one) for one in ordered]
    partial = path.with_name(f".{path.name}.part")
    partial.write_bytes(gzip.compress(b"\n".join(texts), mtime=0))
    partial.replace(path)


def _order(one: Content) -> tuple[int, float, float]:
    figures = one.figures
    return list(SERIES).index(figures.series), figures.sample.skip, figures.sample.false_alarms


def kept(path: Path = RESULTS) -> list[Content]:
    """The sweeps that are kept."""
    lines = gzip.decompress(path.read_bytes()).splitlines() if path.exists() else []
    return [_KEPT.validate_json(one) for one in lines]


def again(path: Path = RESULTS, target: Path = page.PAGE) -> str:
    """Write the page of what is kept; its text."""
    return page.write(kept(path), target)


if __name__ == "__main__":
    again()
