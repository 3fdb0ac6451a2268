"""Can an objective be judged? Its metric, its labels, its bound, and the logs that it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from monitor.config.problems import Problem, nearest
from monitor.core.columns import CATALOG, CATEGORY, FEEDBACK, POSITION, TAGS
from monitor.core.text import quoted
from monitor.metrics.catalogue import SPECS, adds_up
from monitor.metrics.family import MetricSpec
from monitor.settings.recommender import ROLLUP, Objective, RecommenderSettings

_SETTING = {"event": "metrics.events", "k": "metrics.k"}
_BY, _DIMENSION, _VALUE = "by", "dimension", "value"


def check_objectives(where: str, settings: RecommenderSettings) -> Iterator[Problem]:
    """A problem for each objective that can never be judged."""
    seen: dict[tuple[object, ...], int] = {}
    for number, one in enumerate(settings.objectives):
        place = f"{where}[{number}]"
        yield from check_series(place, one.metric, one.labels, settings)
        if one.metric in SPECS:
            yield from _bound(place, SPECS[one.metric], one)
        yield from _clear(place, one)
        side = "min" if one.min is not None else "max"
        key = (one.metric, tuple(sorted(one.labels.items())), side)
        if key in seen:
            yield Problem(place, f"{where}[{seen[key]}] already bounds this series on the same side")
        seen.setdefault(key, number)


def check_series(
    place: str, metric: str, labels: Mapping[str, str], settings: RecommenderSettings
) -> Iterator[Problem]:
    """The reasons why a series, named by metric and labels, can never have a value."""
    spec = SPECS.get(metric)
    if spec is None:
        yield unknown_metric(f"{place}.metric", metric)
        return
    if metric in settings.metrics.disable:
        yield Problem(f"{place}.metric", f"{metric} is not measured: metrics.disable names it")
    if labels.get(_DIMENSION) == POSITION and spec.sliced and not spec.of_rows:
        yield needs_whole_lists(f"{place}.labels", metric)
    yield from _labels(f"{place}.labels", spec, labels, settings)
    yield from _needs(f"{place}.metric", spec, labels, settings)


def unknown_metric(place: str, name: str) -> Problem:
    """The problem of a name that no metric has."""
    close = nearest(name, SPECS)
    hint = f"did you mean {close}?" if close else "docs/metrics/README.md lists them"
    return Problem(place, f"no metric is called {quoted(name)}; {hint}")


def needs_whole_lists(place: str, metric: str) -> Problem:
    """The problem of a slice by position of a metric that no single row has."""
    return Problem(place, f"{metric} cannot be sliced by position: it needs whole lists or users")


def _labels(
    place: str, spec: MetricSpec, labels: Mapping[str, str], settings: RecommenderSettings
) -> Iterator[Problem]:
    own = [*([_BY] if spec.by or spec.by_help else []), *spec.labels]
    measured = {"event": set(settings.metrics.events), "k": {str(one) for one in settings.metrics.k}}
    rolled_up = labels.get(_DIMENSION) == ROLLUP
    if rolled_up:
        yield from _rollup(place, spec, labels, settings)
    elif _DIMENSION in labels and not spec.sliced:
        yield Problem(place, f"{spec.name} is never sliced")
    elif _DIMENSION in labels and settings.slices.metrics and spec.name not in settings.slices.metrics:
        yield Problem(place, f"slices.metrics does not name {spec.name}, so it is not measured by slice")
    for name in labels:
        if name not in (*own, _DIMENSION, _VALUE):
            hint = f"; it has {', '.join(own)}" if own else ""
            yield Problem(place, f"{spec.name} has no label {quoted(name)}{hint}")
    for name in spec.labels:
        if name not in labels:
            yield Problem(place, f"{spec.name} is measured for each {name}: name one, as {{{name}: ...}}")
        elif name in measured and labels[name] not in measured[name]:
            yield Problem(
                place, f"{spec.name} is not measured for {name} {quoted(labels[name])}; see {_SETTING[name]}"
            )
    by = labels.get(_BY)
    further = [one for one in settings.metrics.novelty if one not in (CATEGORY, TAGS)] if spec.by_help else []
    known = [*spec.by, *further]
    if known and by is None:
        yield Problem(
            place, f"{spec.name} is measured by {', '.join(known)}: name one, as {{by: {known[0]}}}"
        )
    elif known and by not in known:
        close = nearest(str(by), known)
        hint = f"did you mean {close}?" if close else f"there are {', '.join(known)}"
        yield Problem(place, f"{spec.name} is not measured by {quoted(by)}; {hint}")
    if (_DIMENSION in labels) != (_VALUE in labels):
        yield Problem(place, "a slice needs both dimension and value")
    elif (
        _DIMENSION in labels
        and spec.sliced
        and not rolled_up
        and labels[_DIMENSION] not in settings.slices.by
    ):
        yield Problem(place, f"slices.by does not name {quoted(labels[_DIMENSION])}")


def _rollup(
    place: str, spec: MetricSpec, labels: Mapping[str, str], settings: RecommenderSettings
) -> Iterator[Problem]:
    if adds_up(spec.name, labels.get(_BY, "")) is None:
        yield Problem(place, f"{spec.name} does not add up over windows, so it has no roll-up")
    lengths = [f"{one.days}d" for one in settings.rollups]
    if labels.get(_VALUE) not in lengths:
        given = f"it has {', '.join(lengths)}" if lengths else "there is no `rollups`"
        yield Problem(place, f"rollups does not name {quoted(labels.get(_VALUE, ''))}; {given}")


def _bound(place: str, spec: MetricSpec, one: Objective) -> Iterator[Problem]:
    low, high = spec.bounds
    kind = "ratio" if spec.unit == "ratio" else "number"
    values = f"a {kind} from {low:g} to {high:g}" if math.isfinite(high) else f"never below {low:g}"
    for side, bound in (("min", one.min), ("max", one.max), ("clear", one.clear)):
        if bound is not None and not low <= bound <= high:
            percent = f"; for {bound:g} % write {bound / 100:g}" if high < bound <= 100 else ""
            text = f"{spec.name} is {values}, so {bound:.15g} is out of range{percent}"
            yield Problem(f"{place}.{side}", text)


def _clear(place: str, one: Objective) -> Iterator[Problem]:
    """The bound that ends a violation must be harder to meet than the one that begins it."""
    side, bound, words = ("min", one.min, "least") if one.min is not None else ("max", one.max, "most")
    if bound is None or one.clear is None:
        return
    if one.clear < bound if side == "min" else one.clear > bound:
        yield Problem(
            f"{place}.clear",
            f"a violation begins {'below' if side == 'min' else 'above'} {bound:.15g} and would end before "
            f"the metric is back there; write at {words} {bound:.15g}, or leave it out",
        )


def _needs(
    place: str, spec: MetricSpec, labels: Mapping[str, str], settings: RecommenderSettings
) -> Iterator[Problem]:
    present = settings.logs.named()
    for log in (CATALOG, FEEDBACK):
        for need in spec.requires:
            name, _, only_by = need.partition(" (")  # "catalog (item)": only if `by` is item
            applies = not only_by or labels.get(_BY, "") in only_by.rstrip(")").split(", ")
            if name.split(".")[0] == log and applies and log not in present:
                yield Problem(place, f"{spec.name} needs logs.{log}, which is not given")
                return
