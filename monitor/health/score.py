"""The health score: one number of a window, made of the results of the other checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from monitor.core.columns import EXPOSURES, FEEDBACK
from monitor.core.digest import digest
from monitor.core.results import Result, Status
from monitor.health.specs import HEALTH_PART, HEALTH_SCORE
from monitor.logs.windows import Part
from monitor.metrics.catalogue import FEEDBACK_FAMILIES
from monitor.metrics.family import ResultBuilder
from monitor.settings.health import HealthPart, HealthSettings
from monitor.statistics.intervals import Interval
from monitor.window.check import HISTORY, Check, Recommender, ResultsJob

NAME = "health"
_NOT_MEASURED = "it was not measured in this window"
_LATER = frozenset(spec.name for family in FEEDBACK_FAMILIES for spec, _ in family.outputs)


class HealthCheck(Check[ResultsJob]):
    """The score of a window, from the results of all other checks."""

    name = NAME
    part = HISTORY

    def __init__(self, settings: HealthSettings) -> None:
        self._settings = settings

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        health = recommender.settings.health
        return [] if health is None else [cls(health)]

    @property
    def needs(self) -> frozenset[Part]:
        """The parts of a window that the score waits for."""
        late = any(part.metric in _LATER for part in self._settings.parts)
        return frozenset({EXPOSURES, FEEDBACK} if late else {EXPOSURES})

    def run(self, job: ResultsJob) -> list[Result]:
        return health(job.results, self._settings)


def health(results: Iterable[Result], settings: HealthSettings) -> list[Result]:
    """The score, then what each part is worth, from the results of one window.

    A part whose metric has no value (no data, late, failed, not measured) has none either and says so. The
    score is of the others, and is there only while they have `min_weight` of the weight: a recommender never
    gets better by what is missing.

    >>> part = HealthPart(metric="gini", zero=0.9, one=0.5)
    >>> gini = Result(metric="gini", status=Status.OK, value=0.6, definition="1")
    >>> [(one.metric, one.value) for one in health([gini], HealthSettings(parts=(part,)))]
    [('health_score', 0.75), ('health_part', 0.75)]
    """
    measured = {_series(one.metric, one.labels): one for one in results}
    whole = sum(part.weight for part in settings.parts)
    shares = [
        _Share(part, part.weight / whole, measured.get(_series(part.metric, part.labels)))
        for part in settings.parts
    ]
    return [_score(shares, settings), *(share.result() for share in shares)]


@dataclass(frozen=True, slots=True)
class _Share:
    """A part with its share of the whole weight, and the result that it rests on, if there is one."""

    part: HealthPart
    weight: float
    measured: Result | None

    def worth(self, value: float) -> float:
        part = self.part
        # Halved, so that no difference of two numbers is beyond what a number can hold.
        reached = (value / 2 - part.zero / 2) / (part.one / 2 - part.zero / 2)
        return min(1.0, max(0.0, reached))

    @property
    def value(self) -> float | None:
        found = self.measured
        if found is None or found.value is None or found.status not in (Status.OK, Status.VIOLATED):
            return None
        return self.worth(found.value)

    def result(self) -> Result:
        part, found, value = self.part, self.measured, self.value
        builder = ResultBuilder(
            HEALTH_PART,
            f"{HEALTH_PART.version};zero={part.zero:g};one={part.one:g}",
            {"part": part.title},
        )
        if found is None:
            return builder.no_data(_NOT_MEASURED)
        if value is None or found.value is None:
            missing = builder.no_data(found.detail or f"{found.metric} is {found.status}")
            return replace(missing, status=found.status) if found.status in _KEPT else missing
        interval = None
        if found.lower is not None and found.upper is not None:
            interval = Interval(*sorted((self.worth(found.lower), self.worth(found.upper))))
        return builder.value(
            value,
            found.samples or 0,
            interval,
            detail=f"{found.metric} is {found.value:.6g}; worth 0 at {part.zero:g}, 1 at {part.one:g}; "
            f"{self.weight:.0%} of the score",
        )


_KEPT = (Status.LATE, Status.ERROR)  # what else has no value is `no_data`: undefined is no verdict


def _score(shares: Sequence[_Share], settings: HealthSettings) -> Result:
    builder = ResultBuilder(HEALTH_SCORE, f"{HEALTH_SCORE.version};of={settings_digest(settings)}")
    there = [(share.weight, share.value) for share in shares if share.value is not None]
    weight = sum(share for share, _ in there)
    missing = [f"{share.part.title} ({_why(share.measured)})" for share in shares if share.value is None]
    left_out = f"without {', '.join(missing)}" if missing else ""
    if not there or weight < settings.min_weight - 1e-12:
        return builder.no_data(
            f"{_percent(weight)} of the weight has a value, but {_percent(settings.min_weight)} is needed; "
            f"{left_out}",
            samples=len(there),
        )
    return builder.value(sum(w * value for w, value in there) / weight, len(there), detail=left_out)


def _percent(share: float) -> str:
    """Precise enough to tell a share from the one that it just misses."""
    return f"{100 * share:.4g}%"


def _why(measured: Result | None) -> str:
    return "not measured" if measured is None else measured.status.value.replace("_", " ")


def settings_digest(settings: HealthSettings) -> str:
    """Changes with whatever changes the score, so that two scores never make one series."""
    content = settings.model_dump_json(exclude={"parts": {"__all__": {"name"}}})
    return digest(content, 12)


def _series(metric: str, labels: Mapping[str, str]) -> tuple[str, tuple[tuple[str, str], ...]]:
    return metric, tuple(sorted(labels.items()))
