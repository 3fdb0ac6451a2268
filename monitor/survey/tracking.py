"""Which metrics of single users track their answers: rank correlations, corrected for their number."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from monitor.core.results import Status
from monitor.core.text import plural
from monitor.metrics.catalogue import SPECS
from monitor.settings.survey import SurveySettings
from monitor.statistics.effects import Moments, welch
from monitor.statistics.intervals import CONFIDENCE, Interval, normal_mean
from monitor.statistics.rank_correlation import (
    RankCorrelation,
    holm,
    interval_of,
    pairs_needed,
    partial_spearman,
    spearman,
)
from monitor.survey.findings import GroupDifference, Tracked, Verdict
from monitor.survey.numbers import BIAS_METRIC, result
from monitor.survey.user_metrics import SeriesKey, UserValues

ALPHA: Final = 1 - CONFIDENCE
_HELD: Final[tuple[SeriesKey, ...]] = (("volume", (("by", "requests"),)), ("list_length", ()))
"""Many metrics depend on how many lists a user has, and how long they are."""
_ORDER: Final = tuple(Verdict)


def tracked(
    metrics: UserValues,
    answers: Mapping[str, float],
    settings: SurveySettings,
    wanted: Collection[str] = tuple(SPECS),
) -> list[Tracked]:
    """Each metric against the answers of the same users, those that track them first.

    Args:
        metrics: of single users.
        answers: user id as text -> the user's mean answer.
        settings: the fewest users, and which correlation is negligible.
        wanted: the metrics that are tested; the others are only held equal.
    """
    found: dict[SeriesKey, RankCorrelation] = {}
    tested = {series: values for series, values in metrics.values.items() if series[0] in wanted}
    without = {series: why for series, why in metrics.without.items() if series[0] in wanted}
    means: dict[SeriesKey, tuple[float, Interval | None]] = {}
    partial: dict[SeriesKey, RankCorrelation | None] = {}
    if len(set(answers.values())) == 1:
        return [
            Tracked(series, Verdict.NOT_MEASURED, why="all users gave the same answer")
            for series in sorted({*tested, *without})
        ]
    for series, values in tested.items():
        both = sorted(values.keys() & answers.keys())
        if len(both) < settings.least:
            without[series] = _few(len(both), "respondent", settings)
            continue
        own = [values[user] for user in both]
        one = spearman(own, [answers[user] for user in both])
        if one is None:
            same = "have the same value" if len(set(own)) == 1 else "with a value gave the same answer"
            without[series] = f"all respondents {same}"
            continue
        found[series] = one
        means[series] = _mean(own)
        partial[series] = _partial(series, metrics, answers, both)
        without.pop(series, None)
    adjusted = dict(zip(found, holm([one.p for one in found.values()]), strict=True)) if found else {}
    every = [
        replace(
            _judged(series, one, adjusted[series], len(found), means[series], settings),
            partial=partial[series],
        )
        for series, one in found.items()
    ]
    every += [Tracked(series, Verdict.NOT_MEASURED, why=why) for series, why in without.items()]
    return sorted(every, key=_rank)


def _judged(
    series: SeriesKey,
    one: RankCorrelation,
    p: float,
    tests: int,
    mean: tuple[float, Interval | None],
    settings: SurveySettings,
) -> Tracked:
    confidence = 1 - ALPHA / tests
    together = interval_of(one.rho, one.n, confidence)
    needed, why = None, ""
    if p < ALPHA:
        better = SPECS[series[0]].better
        is_against = (better == "higher" and one.rho < 0) or (better == "lower" and one.rho > 0)
        verdict = Verdict.AGAINST if is_against else Verdict.TRACKS
    elif -settings.negligible < together.lower and together.upper < settings.negligible:
        verdict = Verdict.DOES_NOT_TRACK
    else:
        verdict = Verdict.UNKNOWN
        needed = pairs_needed(one.rho, settings.negligible, confidence)
        why = "chance alone may make such a correlation"
    return Tracked(series, verdict, one, p, together, needed, mean, why)


def _partial(
    series: SeriesKey, metrics: UserValues, answers: Mapping[str, float], users: Sequence[str]
) -> RankCorrelation | None:
    """The correlation among users with equally many and equally long lists, as far as these are measured."""
    held = [metrics.values[one] for one in _HELD if one != series and one in metrics.values]
    users = [user for user in users if all(user in values for values in held)]
    if not held or not users:
        return None
    own = metrics.values[series]
    return partial_spearman(
        [own[user] for user in users],
        [answers[user] for user in users],
        [[values[user] for user in users] for values in held],
    )


def _rank(one: Tracked) -> tuple[int, float, SeriesKey]:
    return _ORDER.index(one.verdict), -abs(one.correlation.rho if one.correlation else 0.0), one.series


def _mean(values: list[float]) -> tuple[float, Interval | None]:
    total, squares = sum(values), sum(value * value for value in values)
    return total / len(values), normal_mean(len(values), total, squares)


def compared(respondents: UserValues, others: UserValues, settings: SurveySettings) -> list[GroupDifference]:
    """Each metric of respondents and of the others, the largest differences first.

    The difference is that of the means in standard deviations (the root of the mean of both variances), with
    Welch's interval, so wide that all intervals hold together.
    """
    series = list(dict.fromkeys([*respondents.values, *others.values]))
    pairs: dict[SeriesKey, tuple[Moments, Moments]] = {}
    found: list[GroupDifference] = []
    for one in series:
        sides = [list(side.values.get(one, {}).values()) for side in (respondents, others)]
        names = zip(("respondent", "other"), sides, strict=True)
        if few := [_few(len(side), name, settings) for name, side in names if len(side) < settings.least]:
            found.append(_without(one, Status.NO_DATA, "; ".join(few)))
            continue
        moments = [
            Moments.of_sums(len(side), sum(side), sum(value * value for value in side)) for side in sides
        ]
        if moments[0] is None or moments[1] is None:
            found.append(_without(one, Status.UNDEFINED, "the sums are not finite"))
            continue
        pairs[one] = (moments[0], moments[1])
    found += [_difference(one, *both, len(pairs), settings) for one, both in pairs.items()]
    return sorted(found, key=lambda one: -abs(one.difference.value or 0.0))


def _difference(
    series: SeriesKey, respondents: Moments, others: Moments, tests: int, settings: SurveySettings
) -> GroupDifference:
    samples = respondents.n + others.n
    spread = ((respondents.variance + others.variance) / 2) ** 0.5
    found = welch(others, respondents, 1 - ALPHA / tests)
    if found is None or spread == 0:
        same = respondents.mean == others.mean
        status = Status.OK if same else Status.UNDEFINED
        why = "" if same else "neither group has any spread"
        one = result(
            BIAS_METRIC, labels_of(series), 0.0 if same else None, samples, status=status, detail=why
        )
        return GroupDifference(series, respondents.mean, others.mean, one)
    value = found.difference / spread
    ends = Interval(found.interval.lower / spread, found.interval.upper / spread)
    is_large = abs(value) >= settings.large_difference and not ends.lower <= 0 <= ends.upper
    one = result(
        BIAS_METRIC,
        labels_of(series),
        value,
        samples,
        ends,
        status=Status.VIOLATED if is_large else Status.OK,
        detail="respondents clearly differ from the others" if is_large else "",
        threshold=settings.large_difference,
    )
    return GroupDifference(series, respondents.mean, others.mean, one)


def _few(count: int, who: str, settings: SurveySettings) -> str:
    has = "has" if count == 1 else "have"
    return f"{plural(count, who)} {has} a value, fewer than {settings.least} (survey.least)"


def _without(series: SeriesKey, status: Status, why: str) -> GroupDifference:
    return GroupDifference(
        series, None, None, result(BIAS_METRIC, labels_of(series), None, 0, status=status, detail=why)
    )


def labels_of(series: SeriesKey) -> dict[str, str]:
    """The labels of a difference: the metric and its own labels."""
    return {"metric": series[0], **dict(series[1])}
