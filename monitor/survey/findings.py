"""What a survey found: the answers to each question, who answered, and which metrics track the answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from monitor.core.results import Result, Status, Window
from monitor.settings.survey import Asks
from monitor.statistics.intervals import Interval
from monitor.statistics.rank_correlation import RankCorrelation
from monitor.survey.user_metrics import SeriesKey


class Verdict(StrEnum):
    """What the correlation of a metric with an answer says."""

    TRACKS = "tracks"
    """They surely move together, in the direction that the metric's spec calls better, if it has one."""
    AGAINST = "against"
    """They surely move together, but the better the metric, the worse the answer."""
    DOES_NOT_TRACK = "does_not_track"
    """The correlation is surely negligible."""
    UNKNOWN = "unknown"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True)
class Tracked:
    """A metric of single users against their answers to one question.

    Attributes:
        series: the metric and its labels.
        verdict: what the correlation says.
        correlation: across users, with its own interval of 95 %; None if there is none.
        p: of no correlation, adjusted for all metrics of the question (Holm).
        together: the interval that holds together with those of all metrics of the question.
        needed: how many respondents decide, if the correlation stays as it is.
        mean: the mean of the metric over these users, with its interval.
        why: why there is no verdict.
        partial: the correlation among users with equally many and equally long lists; None without one.
    """

    series: SeriesKey
    verdict: Verdict
    correlation: RankCorrelation | None = None
    p: float | None = None
    together: Interval | None = None
    needed: int | None = None
    mean: tuple[float, Interval | None] | None = None
    why: str = ""
    partial: RankCorrelation | None = None


@dataclass(frozen=True, slots=True)
class ArmAnswers:
    """The answers of one arm, and their difference from those of the baseline, which itself has None."""

    experiment: str
    arm: str
    baseline: str
    answer: Result
    difference: Result | None


@dataclass(frozen=True, slots=True)
class QuestionFound:
    """One question.

    Attributes:
        rate: respondents of those who were asked.
        answer: the mean over respondents.
        top: the share of top answers.
        weighted: the mean with the weights of `weighting`; None if none was asked for.
        splits: the mean by slice.
        arms: the mean by arm of an experiment.
        tracked: the metrics against the answers, those that track them first.
    """

    name: str
    asks: Asks
    scale: tuple[float, float]
    rate: Result
    answer: Result
    top: Result
    weighted: Result | None = None
    splits: Sequence[Result] = ()
    arms: Sequence[ArmAnswers] = ()
    tracked: Sequence[Tracked] = ()


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A metric of respondents and of the others who were asked.

    `difference` is in standard deviations, respondents less others, with an interval that holds together with
    those of all metrics. It is `violated` if it is clear and large.
    """

    series: SeriesKey
    respondents: float | None
    others: float | None
    difference: Result


@dataclass(frozen=True, slots=True)
class SurveyFound:
    """A survey over a span.

    Attributes:
        span: the time of the answers.
        shown: the time of the lists that count: the span, and the attribution before it.
        rows: all rows of the log.
        counted: the answers that count.
        faults: why the others do not, and how many.
        served: the users with a list.
        asked: those of them who were asked.
        asked_by: how that is known.
        respondents: the users with an answer that counts.
        questions: each question.
        bias: respondents against the others.
        notes: what a reader must know.
        negligible, large: the settings by which correlations and differences were judged.
    """

    recommender: str
    span: Window
    shown: Window
    rows: int
    counted: int
    faults: Mapping[str, int]
    served: int
    asked: int
    asked_by: str
    respondents: int
    questions: Sequence[QuestionFound]
    bias: Sequence[GroupDifference]
    notes: Sequence[str] = field(default_factory=tuple)
    negligible: float = 0.1
    large: float = 0.2

    @property
    def warnings(self) -> list[GroupDifference]:
        """The metrics in which respondents clearly and largely differ from the others."""
        return [one for one in self.bias if one.difference.status is Status.VIOLATED]
