"""The families of the metrics: each metric of the catalogue gives its own, and all of them again by slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from monitor.metrics.family import MetricSpec
from monitor.service.prometheus.family import PREFIX, RECOMMENDER, SLICE_LABELS, Family, Part


def metric_family_name(spec: MetricSpec, part: Part = "", *, sliced: bool = False) -> str:
    """The name of one of the families that a metric of the catalogue gives.

    >>> from monitor.metrics.catalogue import SPECS
    >>> metric_family_name(SPECS["coverage"])
    'recsys_coverage_ratio'
    >>> metric_family_name(SPECS["coverage"], "lower", sliced=True)
    'recsys_slice_coverage_lower_ratio'
    >>> metric_family_name(SPECS["gini"], "samples")
    'recsys_gini_samples'
    """
    # promtool takes `_bits` for a size of data and asks for bytes, so information goes without a suffix.
    unit = "ratio" if spec.unit == "ratio" and part != "samples" else ""
    words = ("slice" if sliced else "", spec.name, part, unit)
    return PREFIX + "_".join(word for word in words if word)


def metric_families(specs: Iterable[MetricSpec]) -> Iterator[Family]:
    """The families of these metrics: value, bounds where it has an interval, samples; then all by slice."""
    for spec in specs:
        own = (*(("by",) if spec.by or spec.by_help else ()), *spec.labels, *spec.of_samples)
        parts: tuple[tuple[Part, str], ...] = (("", spec.help),)
        if spec.interval:
            around = "band around" if spec.interval == "band" else f"interval ({spec.interval}) of"
            parts += (
                ("lower", f"Lower bound of the {around} {spec.name}."),
                ("upper", f"Upper bound of the {around} {spec.name}."),
            )
        if spec.counted:
            parts += (
                ("samples", f"What {spec.name} rests on: {spec.samples or 'the count under its ratio'}."),
            )
        for sliced in (False, True)[: 1 + spec.sliced]:
            labels = (RECOMMENDER, *own, *(SLICE_LABELS if sliced else ()))
            for part, text in parts:
                yield Family(
                    metric_family_name(spec, part, sliced=sliced),
                    "gauge",
                    f"{text.rstrip('.')}, by slice." if sliced else text,
                    labels,
                    spec.unit if part != "samples" else "",
                )
