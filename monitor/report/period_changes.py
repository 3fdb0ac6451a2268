"""What changed in a period: models, rules and their lists, objectives, definitions, and what was declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from itertools import pairwise
from typing import Final

from monitor.anomalies.series import DIMENSION, SLICE_VALUE
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import NAME_LENGTH, visible
from monitor.history.reads import StoredResult
from monitor.metrics.feedback.attribution_health import LOST
from monitor.report.changes import counts_a_model, most_served
from monitor.report.judged import title
from monitor.report.numbers import moment, number
from monitor.settings.recommender import RecommenderSettings

LIST_VERSION: Final = "list_version"


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A change, and when it was first seen; `kind` is `model`, `list`, `config` or `declared`."""

    at: datetime
    kind: str
    text: str


def changes_of(results: Sequence[StoredResult], settings: RecommenderSettings, span: Window) -> list[Change]:
    """The changes in a span, oldest first.

    Args:
        results: of the span, in the order of time.
        settings: what the config declares.
        span: the period, with the one before it.
    """
    found = {*_models(results), *_lists(results), *_config(results), *_declared(settings)}
    return sorted(one for one in found if span.start <= one.at < span.end)


def _models(results: Iterable[StoredResult]) -> Iterator[Change]:
    """Each window from which another model serves most requests; it needs `model` in `slices.by`."""
    requests: dict[Window, dict[str, float]] = {}
    for one in results:
        if counts_a_model(one.result.metric, one.result.labels):
            model = one.result.labels[SLICE_VALUE]
            requests.setdefault(one.window, {})[model] = one.result.value or 0.0
    for window, most, before in most_served(requests):
        yield Change(window.start, "model", f"model {_name(most)} serves most, before it {_name(before)}")


def _lists(results: Iterable[StoredResult]) -> Iterator[Change]:
    """Each violated window whose list of ids is another one than that of the violated window before."""
    versions: dict[str, str] = {}
    for one in results:
        if one.result.kind is not ResultKind.RULE or not one.result.evidence:
            continue
        version = str(one.result.evidence[0].get(LIST_VERSION) or "")
        rule = one.result.labels["rule"]
        known = versions.get(rule)
        if version and known is not None and known != version:
            text = f"the list of rule {_name(rule)} is version {_name(version)}, before it {_name(known)}"
            yield Change(one.window.start, "list", text)
        if version:
            versions[rule] = version


def _config(results: Sequence[StoredResult]) -> Iterator[Change]:
    """New and removed rules and objectives, other bounds, other definitions."""
    series: dict[str, list[StoredResult]] = {}
    windows: dict[str, list[Window]] = {}  # of each check, in the order of time
    for one in results:
        if one.result.kind in (ResultKind.RULE, ResultKind.METRIC) and DIMENSION not in one.result.labels:
            series.setdefault(f"{one.check} {title(one.result)}", []).append(one)
            if not (known := windows.setdefault(one.check, [])) or known[-1] != one.window:
                known.append(one.window)
    for of_series in series.values():
        yield from _of_series(of_series, windows[of_series[0].check])


def _of_series(results: Sequence[StoredResult], windows: Sequence[Window]) -> Iterator[Change]:
    name = visible(title(results[0].result))
    is_rule = results[0].result.kind is ResultKind.RULE
    if is_rule and results[0].window != windows[0]:
        yield Change(results[0].window.start, "config", f"{name} is new")
    for before, after in pairwise(results):
        if is_rule and before.result.definition != after.result.definition:
            yield Change(after.window.start, "config", f"{name} was changed")
        elif not is_rule and before.result.definition != after.result.definition:
            old, new = visible(before.result.definition), visible(after.result.definition)
            # Named by the metric: one line for all of its series, which have one definition.
            text = f"{visible(after.result.metric)} has another definition: {new}, before it {old}"
            yield Change(after.window.start, "config", text)
    for before, after in pairwise(one for one in results if not is_rule and _has_its_bound(one.result)):
        old, new = _bound(before.result), _bound(after.result)
        if old != new:
            text = f"the objective on {name} is {new}, before it {old}" if old and new else ""
            text = text or (f"the objective on {name} is new: {new}" if new else "")
            yield Change(after.window.start, "config", text or f"the objective on {name} was removed: {old}")
    if is_rule and results[-1].window != windows[-1]:
        gone = windows[windows.index(results[-1].window) + 1]
        yield Change(gone.start, "config", f"{name} was removed")


def _has_its_bound(result: Result) -> bool:
    """Whether the result has the bound that the config says, or none because the config says none.

    A window that was not judged may lack it, and so does the share of lost actions where none can be joined.
    """
    if result.metric == LOST.name and result.threshold is None:
        return False
    return result.status in (Status.OK, Status.VIOLATED)


def _bound(result: Result) -> str:
    if result.threshold is None:
        return ""
    return f"{result.bound or 'max'} {number(result.threshold)}"


def _declared(settings: RecommenderSettings) -> Iterator[Change]:
    """Known changes and seasons of the bands, and maintenance."""
    for span in settings.maintenance:
        why = f": {visible(span.reason)}" if span.reason else ""
        yield Change(span.begins, "declared", f"maintenance until {moment(span.until)}{why}")
    if settings.bands is None:
        return
    for change in settings.bands.changes:
        of = f" (of {', '.join(change.metrics)})" if change.metrics else ""
        yield Change(change.at.astimezone(UTC), "declared", f"{visible(change.what)}{of}")
    for season in settings.bands.seasons:
        begins = datetime.combine(season.first, time(), settings.bands.zone).astimezone(UTC)
        yield Change(begins, "declared", f"season until {season.last}: {visible(season.what)}")


def _name(text: str) -> str:
    return visible(text, NAME_LENGTH) or "(no name)"


KINDS: Final[Mapping[str, str]] = {
    "model": "Models", "list": "Lists", "config": "Config", "declared": "Declared"
}  # fmt: skip
