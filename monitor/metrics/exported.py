"""How a family of /metrics is declared, and the families that follow from a metric's spec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from monitor.metrics.family import MetricSpec

Suffix = Literal["", "lower", "upper", "samples"]

PREFIX: Final = "recsys_"
RECOMMENDER: Final = "recommender"
SLICE_LABELS: Final = ("dimension", "value")


@dataclass(frozen=True, slots=True)
class ExportedFamily:
    """One exported family. `name` is the full name of its samples, with `_total` or `_info`."""

    name: str
    help: str
    labels: tuple[str, ...] = (RECOMMENDER,)
    unit: Literal["", "ratio", "seconds", "bits", "bytes"] = ""
    kind: Literal["gauge", "counter", "info"] = "gauge"

    @property
    def is_sliced(self) -> bool:
        return set(SLICE_LABELS) <= set(self.labels)


def metric_family_name(spec: MetricSpec, part: Suffix = "", *, sliced: bool = False) -> str:
    """The name of one of the families of a metric.

    >>> from monitor.metrics.catalogue import SPECS
    >>> metric_family_name(SPECS["coverage"])
    'recsys_coverage_ratio'
    >>> metric_family_name(SPECS["coverage"], "lower", sliced=True)
    'recsys_slice_coverage_lower_ratio'
    >>> metric_family_name(SPECS["gini"], "samples")
    'recsys_gini_samples'
    """
    # No `_bits`: promtool takes that for a size of data and asks for bytes.
    unit = spec.unit if spec.unit in ("ratio", "seconds") and part != "samples" else ""
    words = ("slice" if sliced else "", spec.name, part, unit)
    return PREFIX + "_".join(word for word in words if word)


def metric_families(specs: Iterable[MetricSpec]) -> Iterator[ExportedFamily]:
    """The families of these metrics: value, bounds (if there is an interval), samples; then all by slice."""
    for spec in specs:
        own = (*(("by",) if spec.by or spec.by_help else ()), *spec.labels, *spec.of_samples)
        parts: tuple[tuple[Suffix, str], ...] = (("", spec.help),)
        if spec.interval:
            around = "band around" if spec.interval == "band" else f"interval ({spec.interval}) of"
            parts += (
                ("lower", f"Lower bound of the {around} {spec.name}."),
                ("upper", f"Upper bound of the {around} {spec.name}."),
            )
        if spec.counted:
            count = spec.samples or "the count under its ratio"
            parts += (("samples", f"Sample size of {spec.name}: {count}."),)
        for sliced in (False, True)[: 1 + spec.sliced]:
            labels = (RECOMMENDER, *own, *(SLICE_LABELS if sliced else ()))
            for part, text in parts:
                yield ExportedFamily(
                    metric_family_name(spec, part, sliced=sliced),
                    f"{text.rstrip('.')}, by slice." if sliced else text,
                    labels,
                    spec.unit if part != "samples" else "",
                )
