"""The settings of a survey: its questions, its scale, who was asked, and which lists an answer is about."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, model_validator

from monitor.core.settings import PositiveDuration, Range, Settings
from monitor.core.text import quoted

Asks = Literal["satisfaction", "novelty", "serendipity"]
Weighting = Literal["none", "inverse_response"]

_Question = Annotated[str, Field(min_length=1, max_length=200)]
_Column = Annotated[str, Field(min_length=1, max_length=100)]


class QuestionSettings(Settings):
    """One question of the survey."""

    asks: Asks = Field(
        "satisfaction",
        description="what the answer is about; perceived novelty and serendipity are shown beside the "
        "measured ones",
    )
    scale: Range | None = Field(
        None, description="the lowest and the highest answer; default: that of the survey"
    )
    top: float | None = Field(
        None, allow_inf_nan=False, description="answers from this on count as top; default: the highest"
    )

    @model_validator(mode="after")
    def _top_is_on_the_scale(self) -> QuestionSettings:
        if self.top is not None and self.scale is not None and not self.scale[0] < self.top <= self.scale[1]:
            low, high = self.scale
            raise ValueError(f"top: {self.top:g} is not above {low:g} and up to {high:g}")
        return self


class SurveySettings(Settings):
    """How the answers in logs.survey are read, see docs/survey.md."""

    scale: Range = Field((1.0, 5.0), description="the lowest and the highest answer")
    questions: dict[_Question, QuestionSettings] = Field(
        default_factory=dict,
        max_length=50,
        description="the questions by their text or id in the log; default: the 20 questions with the most "
        "answers, all about satisfaction",
    )
    invited: _Column | None = Field(
        None,
        description="who was asked: `survey` for everybody with a row in logs.survey, answered or not, a "
        "column of the exposures, or of the users as users.asked; default: all users served",
    )
    attribution: PositiveDuration = Field(
        timedelta(days=7),
        description="an answer without a request id is about the lists shown at most this long before it",
    )
    by: tuple[_Column, ...] = Field(
        (), max_length=10, description="columns of logs.survey by which the answers are split as well"
    )
    weighting: Weighting = Field(
        "none",
        description="`inverse_response` adds means in which each group of users counts by its share of the "
        "users who were asked; the groups are of equal activity, and of equal `weight_by`",
    )
    weight_by: tuple[_Column, ...] = Field(
        (), max_length=3, description="slices, written as in slices.by, that divide these groups further"
    )
    least: int = Field(
        20, ge=10, le=100_000, description="with fewer respondents a number is no_data, in each arm and slice"
    )
    metrics: tuple[str, ...] = Field(
        (),
        description="the metrics that are tested against satisfaction; fewer are tested more sharply; "
        "default: those that say something of one user",
    )
    negligible: float = Field(
        0.1,
        gt=0,
        lt=1,
        description="a metric does not track an answer if its correlation is surely within this of 0",
    )
    large_difference: float = Field(
        0.2,
        gt=0,
        le=10,
        description="a difference between respondents and the others is reported from this on, in standard "
        "deviations",
    )

    @model_validator(mode="after")
    def _tops_are_on_the_scale(self) -> SurveySettings:
        for name, one in self.questions.items():
            if one.scale is None and one.top is not None and not self.scale[0] < one.top <= self.scale[1]:
                low, high = self.scale
                raise ValueError(
                    f"questions: {quoted(name)}: top: {one.top:g} is not above {low:g} and up to {high:g}"
                )
        return self

    def question(self, name: str) -> QuestionSettings:
        """The settings of a question, with its scale and its top filled in.

        >>> SurveySettings().question("how was it?").top
        5.0
        """
        given = self.questions.get(name, QuestionSettings())
        scale = given.scale or self.scale
        return given.model_copy(update={"scale": scale, "top": scale[1] if given.top is None else given.top})
