"""Recorded series as OpenMetrics text, a sample a minute, for Prometheus to make blocks of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from benchmarks.scoreboard.series import Recorded, Segment

JOB: Final = "recsys-monitor"
Lookback = Callable[[str, Mapping[str, str]], timedelta | None]


@dataclass(frozen=True, slots=True)
class Target:
    """One monitor as Prometheus sees it: its series from `first` to `last`, in minutes since 1970.

    Many runs share one Prometheus, so each has an `instance` and a recommender of its own name.
    """

    name: str
    recorded: Recorded
    first: int
    last: int


def write(path: Path, targets: Iterable[Target], lookback: Lookback) -> int:
    """Write the series that alerts read, as far back as they read them; returns the number of samples."""
    samples = 0
    with path.open("w", encoding="utf-8") as file:
        for target in targets:
            up = Segment(target.first, 1.0)
            samples += _series(file.write, "up", {}, target, [(target.first, target.last, up)])
            for name, labels in target.recorded.segments:
                back = lookback(name, dict(labels))
                if back is None:
                    continue
                since = target.first + int(-back // timedelta(minutes=1))
                spans = target.recorded.spans((name, labels), since, target.last)
                samples += _series(file.write, name, dict(labels), target, spans)
        file.write("# EOF\n")
    return samples


def write_firing(
    path: Path, alerts: Iterable[tuple[Target, Mapping[str, str], Iterable[tuple[int, int]]]]
) -> None:
    """Write `ALERTS` series of alerts that fire from the first to the last minute of their spans."""
    with path.open("w", encoding="utf-8") as file:
        for target, labels, fires in alerts:
            spans = [(first, last, Segment(first, 1.0)) for first, last in fires]
            _series(file.write, "ALERTS", {**labels, "alertstate": "firing"}, target, spans)
        file.write("# EOF\n")


def _series(
    write: Callable[[str], object],
    name: str,
    labels: dict[str, str],
    target: Target,
    spans: Iterable[tuple[int, int, Segment]],
) -> int:
    if "recommender" in labels:
        labels["recommender"] = target.name
    labels |= {"job": JOB, "instance": target.name}
    pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
    samples = 0
    for first, last, segment in spans:
        minutes = range(first, last + 1)
        samples += len(minutes)
        if segment.slope:
            lines = (f"{name}{{{pairs}}} {segment.at(minute)!r} {minute * 60}\n" for minute in minutes)
            write("".join(lines))
        else:  # a million lines a second, where a line at a time is a quarter of that
            begin = f"{name}{{{pairs}}} {segment.value!r} "
            write(begin + f"\n{begin}".join([str(minute * 60) for minute in minutes]) + "\n")
    return samples


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
