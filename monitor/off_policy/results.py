"""The shape of the results of an off-policy estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from monitor.core.results import Result, Status
from monitor.off_policy import queries
from monitor.statistics.effects import Estimate, RatioSums

POLICY_VALUE: Final = "policy_value"
POLICY_OVERLAP: Final = "policy_overlap"
CLICKED: Final = (0.0, 1.0)
TOO_FEW: Final = "fewer than two users (a request without a user counts as one)"
OUT_OF_RANGE: Final = "the sums ran out of the range of float64"
NOT_1: Final = (
    "1 is expected: the propensities or the target's probabilities are wrong, or the target shows items that "
    "the log cannot show"
)


@dataclass(frozen=True, slots=True)
class Question:
    """What is estimated.

    Attributes:
        event: the event that is the reward.
        target: the column of the exposures with the target's probability, or the name of the recommender
            whose log shows it.
        cap: where `clipped_ips` cuts weights.
        context: columns of the exposures that the model of the reward reads.
    """

    event: str
    target: str
    cap: float
    context: tuple[str, ...] = ()


def why_none(sums: RatioSums) -> str:
    """Why sums over users give no estimate."""
    return TOO_FEW if sums.n < 2 else OUT_OF_RANGE


def value_of(
    question: Question, name: str, found: Estimate | None, samples: int, reason: str, detail: str = ""
) -> Result:
    """The value by an estimator; `no_data` with the reason if there is none."""
    if found is None:
        return result_of(question, POLICY_VALUE, name, None, samples=samples, detail=reason)
    lower, upper = found.interval
    return result_of(
        question, POLICY_VALUE, name, found.value, samples=samples, lower=lower, upper=upper, detail=detail
    )


def result_of(
    question: Question,
    metric: str,
    by: str,
    value: float | None,
    *,
    samples: int,
    lower: float | None = None,
    upper: float | None = None,
    detail: str = "",
) -> Result:
    """A result of this question."""
    definition = f"1;cap={question.cap:g}" if by == queries.CLIPPED else "1"
    return Result(
        metric=metric,
        status=Status.NO_DATA if value is None else Status.OK,
        definition=definition,
        labels={"by": by, "target": question.target, "event": question.event},
        value=value,
        samples=samples,
        lower=lower,
        upper=upper,
        detail=detail,
    )
