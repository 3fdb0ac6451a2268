"""The arms of an experiment beside each other: values with their intervals, in the pixels of an SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from monitor.core.columns import ARM
from monitor.core.results import Result
from monitor.core.text import visible
from monitor.experiments.specs import DIFFERENCE, EXPERIMENT
from monitor.history.snapshot import Series
from monitor.report import rows
from monitor.report.scale import part

WIDTH: Final = 520
ROW: Final = 28  # the height of an arm
_MARGIN: Final = 8


@dataclass(frozen=True, slots=True)
class ArmRow:
    """An arm: where its value and the ends of its interval lie, and the same in words."""

    x: float
    left: float
    right: float
    y: float
    said: str


@dataclass(frozen=True, slots=True)
class ArmsPicture:
    """One metric by arm. `zero` is where no difference lies, if that is within the picture."""

    name: str
    rows: tuple[ArmRow, ...]
    height: int
    zero: float | None


def arms_pictures(series: Iterable[Series], experiment: str) -> tuple[ArmsPicture, ...]:
    """A picture of each metric that the arms have with intervals in the newest window."""
    grouped: dict[tuple[str, tuple[tuple[str, str], ...]], list[Result]] = {}
    for one in series:
        result = one.result
        if result.labels.get(EXPERIMENT) != experiment or ARM not in result.labels:
            continue
        if _ends(result) is not None:
            others = {name: text for name, text in result.labels.items() if name not in (EXPERIMENT, ARM)}
            grouped.setdefault((result.metric, tuple(sorted(others.items()))), []).append(result)
    return tuple(_picture(metric, dict(labels), own) for (metric, labels), own in grouped.items())


def _ends(result: Result) -> tuple[float, float, float] | None:
    """Lower end, value and upper end, None if one is missing."""
    ends = (result.lower, result.value, result.upper)
    known = [one for one in ends if one is not None and math.isfinite(one)]
    return (known[0], known[1], known[2]) if len(known) == len(ends) else None


def _picture(metric: str, labels: Mapping[str, str], results: list[Result]) -> ArmsPicture:
    known = [(one, ends) for one in results if (ends := _ends(one)) is not None]
    edges = [edge for _, ends in known for edge in ends] + ([0.0] if metric == DIFFERENCE.name else [])
    low, high = min(edges), max(edges)
    show = rows.shower_of(results[0])

    def x(value: float) -> float:
        return round(_MARGIN + part(value, low, high) * (WIDTH - 2 * _MARGIN), 1)

    return ArmsPicture(
        name=visible(" ".join([metric, *(f"{name}={text}" for name, text in labels.items())])),
        rows=tuple(
            ArmRow(
                x=x(value),
                left=x(lower),
                right=x(upper),
                y=ROW * (place + 0.7),
                said=f"{visible(one.labels[ARM])}: {show(value)} ({show(lower)} to {show(upper)})",
            )
            for place, (one, (lower, value, upper)) in enumerate(known)
        ),
        height=ROW * len(known) + 6,
        zero=x(0.0) if low <= 0 <= high else None,
    )
