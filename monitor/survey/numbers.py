"""From sums over users to results: means, shares, weighted means, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import plural
from monitor.metrics.family import round12
from monitor.settings.survey import QuestionSettings
from monitor.statistics.effects import Moments, RatioSums, effective_size, ratio_within, welch
from monitor.statistics.intervals import CONFIDENCE, Interval, bounded_mean, wilson

ANSWER_METRIC: Final = "survey_answer"
TOP_METRIC: Final = "survey_top_answers"
RATE_METRIC: Final = "survey_response_rate"
DIFFERENCE_METRIC: Final = "survey_answer_difference"
BIAS_METRIC: Final = "survey_respondents_difference"
VERSION: Final = "1"
NO_ANSWERS: Final = "no answer counts"

Row = Mapping[str, Any]
NOTHING: Final[Row] = {
    "users": 0, "answers": 0, "total": 0.0, "squares": 0.0, "top": 0.0, "top_squares": 0.0, "whole": 0
}  # fmt: skip


def result(
    metric: str,
    labels: Mapping[str, str],
    value: float | None,
    samples: int,
    interval: Interval | None = None,
    *,
    status: Status | None = None,
    detail: str = "",
    threshold: float | None = None,
) -> Result:
    """A result of a survey; without a value it is `no_data` unless a status is given."""
    lower, upper = (None, None) if interval is None else map(round12, interval)
    return Result(
        kind=ResultKind.METRIC,
        metric=metric,
        labels=labels,
        definition=VERSION,
        status=status or (Status.NO_DATA if value is None else Status.OK),
        value=None if value is None else round12(value),
        samples=samples,
        lower=lower,
        upper=upper,
        detail=detail,
        threshold=threshold,
        bound=None if threshold is None else "max",
    )


def too_few(users: int, least: int) -> str:
    """Why a number of respondents gives nothing; empty if they are enough."""
    if users == 0:
        return NO_ANSWERS
    return "" if users >= least else f"{plural(users, 'respondent')}, fewer than {least} (survey.least)"


def mean_answer(row: Row, question: QuestionSettings, labels: Mapping[str, str], least: int) -> Result:
    """The mean over users of each user's mean answer, with Wilson's interval of means on the scale."""
    users = int(row["users"])
    if why := too_few(users, least):
        return result(ANSWER_METRIC, labels, None, users, detail=why)
    total = float(row["total"])
    interval = bounded_mean(users, total, float(row["squares"]))
    return result(ANSWER_METRIC, labels, on_scale(total / users, question), users, _ends(interval, question))


def top_answers(row: Row, labels: Mapping[str, str], least: int) -> Result:
    """The share of top answers: by Wilson if each user's answers are all top or all not, else as a mean."""
    users, hits = int(row["users"]), float(row["top"])
    if why := too_few(users, least):
        return result(TOP_METRIC, labels, None, users, detail=why)
    if int(row["whole"]) == users:
        interval = wilson(round(hits), users)
    else:
        interval = bounded_mean(users, hits, float(row["top_squares"]))
    return result(TOP_METRIC, labels, hits / users, users, interval)


def response_rate(respondents: int, asked: int, labels: Mapping[str, str]) -> Result:
    """The share of the users asked who answered, with Wilson's interval."""
    if asked == 0:
        return result(RATE_METRIC, labels, None, 0, detail="nobody who was served was asked")
    return result(RATE_METRIC, labels, respondents / asked, asked, wilson(respondents, asked))


def weighted_answer(
    strata: Sequence[tuple[int, Row]], question: QuestionSettings, labels: Mapping[str, str], least: int
) -> Result:
    """The mean in which each group counts by its share of the users asked: weight N_h / n_h.

    Args:
        strata: for each group, the users asked and the sums over its respondents.
        question: with its scale.
        labels: of the result.
        least: the fewest respondents that give a number.
    """
    users = sum(int(row["users"]) for _, row in strata)
    if why := too_few(users, least):
        return result(ANSWER_METRIC, labels, None, users, detail=why)
    every = sum(asked for asked, _ in strata)
    silent = sum(asked for asked, row in strata if not row["users"])
    if silent:
        why = f"{100 * silent / every:.3g} % of the users asked are in groups without a respondent"
        return result(ANSWER_METRIC, labels, None, users, detail=why)
    sums = [0.0] * 5
    for asked, row in strata:
        n, total, squares = int(row["users"]), float(row["total"]), float(row["squares"])
        if not n:  # a group of nobody
            continue
        weight = asked / n
        parts = (weight * total, weight * n, weight**2 * squares, weight**2 * n, weight**2 * total)
        sums = [one + other for one, other in zip(sums, parts, strict=True)]
    interval = ratio_within(RatioSums(users, *sums))
    effective = effective_size(sums[1], sums[3])
    value, ends = on_scale(sums[0] / sums[1], question), _ends(interval, question)
    detail = f"worth {plural(round(effective), 'respondent')} of equal weight"
    return result(ANSWER_METRIC, labels, value, users, ends, detail=detail)


def difference(
    control: Row,
    arm: Row,
    question: QuestionSettings,
    labels: Mapping[str, str],
    least: int,
    comparisons: int,
) -> Result:
    """The mean of an arm less the control's, by Welch; the intervals of all comparisons hold together."""
    users = int(control["users"]) + int(arm["users"])
    for name, row in (("the control", control), ("the arm", arm)):
        if why := too_few(int(row["users"]), least):
            return result(DIFFERENCE_METRIC, labels, None, users, detail=f"{name}: {why}")
    one, other = (
        Moments.of_sums(int(row["users"]), float(row["total"]), float(row["squares"]))
        for row in (control, arm)
    )
    found = None
    if one is not None and other is not None:
        found = welch(one, other, 1 - (1 - CONFIDENCE) / max(1, comparisons))
    if found is None:
        why = "within each arm all answers are equal, so nobody knows what chance does"
        return result(DIFFERENCE_METRIC, labels, None, users, status=Status.UNDEFINED, detail=why)
    low, high = scale_of(question)
    lower, upper = (end * (high - low) for end in found.interval)
    return result(DIFFERENCE_METRIC, labels, found.difference * (high - low), users, Interval(lower, upper))


def scale_of(question: QuestionSettings) -> tuple[float, float]:
    """The scale, which `SurveySettings.question` has filled in."""
    assert question.scale is not None
    return question.scale


def on_scale(value: float, question: QuestionSettings) -> float:
    """A value from 0 to 1 as an answer."""
    low, high = scale_of(question)
    return low + (high - low) * value


def _ends(interval: Interval | None, question: QuestionSettings) -> Interval | None:
    if interval is None:
        return None
    return Interval(*(on_scale(end, question) for end in interval))
