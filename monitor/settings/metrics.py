"""The settings of the metrics of one recommender."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from monitor.core.columns import CATEGORY, TAGS
from monitor.core.settings import PositiveDuration, Range, Settings
from monitor.settings.rating import RatingSettings


class EventSettings(Settings):
    """What one event of the feedback says about the item it is on."""

    grade: float = Field(
        1.0,
        ge=0,
        le=100,
        description="the relevance of the item; 0: the user judged the item as not relevant",
    )
    length: str | None = Field(
        None,
        description="the catalog column with the item's whole length, in the unit of the event's value; "
        "items without a number there are left out (completion)",
    )
    complete: float = Field(
        0.9,
        gt=0,
        le=1,
        description="an item counts as completed if the value reaches this share of its length",
    )


class MetricSettings(Settings):
    """The parameters of the metrics; every default is the definition in docs/metrics/README.md."""

    valid_list_length: Annotated[int, Field(ge=1)] = Field(
        1, description="a list with at least this many items counts as valid (coverage)"
    )
    score_range: Range | None = Field(
        None, description="the lowest and the highest valid score, both included (score_health)"
    )
    history: PositiveDuration = Field(
        timedelta(days=7), description="how far back shown items are remembered (novelty and related metrics)"
    )
    min_propensity: float = Field(
        0.01, gt=0, le=1, description="propensities below this are counted (low_propensity)"
    )
    similarity: Literal["category", "vector"] | None = Field(
        None,
        description="how the similarity of two items is computed (intra_list_diversity, serendipity); "
        "default: by vector if the catalog has that column, else by category",
    )
    popularity: Literal["exposures", "actions"] = Field(
        "exposures",
        description="an item's popularity is its number of exposures, or of actions (average_popularity)",
    )
    novelty: tuple[str, ...] = Field(
        (CATEGORY, TAGS), description="catalog columns for which novelty is measured, besides item and user"
    )
    action_events: tuple[str, ...] | None = Field(
        None,
        description="the feedback events that count as a user's own action (matthew_effect, serendipity); "
        "default: every event",
    )
    events: dict[Annotated[str, Field(min_length=1, max_length=60)], EventSettings] = Field(
        {"click": EventSettings()},
        min_length=1,
        max_length=20,
        description="the feedback events that are judged, each with its meaning; other events are only "
        "counted",
    )
    attribution: PositiveDuration = Field(
        timedelta(minutes=30), description="an action counts for a list shown at most this long before it"
    )
    max_unattributed: float | None = Field(
        0.7,
        gt=0,
        lt=1,
        description="the largest allowed share of actions that join no list; `unattributed` is violated if "
        "its whole interval is above it; `null`: never",
    )
    k: tuple[Annotated[int, Field(ge=1, le=1000)], ...] = Field(
        (5, 10),
        min_length=1,
        max_length=20,
        description="the cut-offs k of the list metrics; several values give a curve over k",
    )
    beta: float = Field(
        1.0, gt=0, le=100, description="the weight of recall relative to precision (f_score); 1 gives F1"
    )
    gain: Literal["exponential", "linear"] = Field(
        "exponential", description="the gain of an item of relevance rel: 2^rel - 1, or rel (ndcg)"
    )
    unrated: Literal["as_negative", "ignore", "liked_only"] = Field(
        "as_negative",
        description="how list metrics treat exposures without an action: `as_negative`: each is a miss and "
        "takes its place; `ignore`: they are removed from the list and the rest moves up; `liked_only`: "
        "items whose actions all have grade 0 are removed too",
    )
    seed_item: str | None = Field(
        None,
        description="the column of the exposures with the item on whose page the list was shown "
        "(item_to_item_recall)",
    )
    clip: float = Field(
        1e-15,
        ge=1e-15,
        lt=0.5,
        description="scores are clipped to the range from this to 1 - this before they count as "
        "probabilities (log_loss, calibration)",
    )
    rating: RatingSettings | None = Field(
        None,
        description="the event that is a rating, predicted by the scores (mae, rmse, nmae, nrmse, "
        "distortion)",
    )
    trim: float = Field(
        0.01,
        gt=0,
        le=0.5,
        description="this share of the users with an action is left out, those with the most actions "
        "(trimmed_action_rate)",
    )
    disable: tuple[str, ...] = Field((), description="the metrics that are not measured")

    @field_validator("k")
    @classmethod
    def _each_k_once(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError(f"must name each k once, got {list(value)}")
        return value

    @model_validator(mode="after")
    def _a_rating_is_an_event(self) -> MetricSettings:
        if self.rating is not None and self.rating.event not in self.events:
            raise ValueError(
                f"rating.event: {self.rating.event!r} is not one of `events` ({', '.join(self.events)})"
            )
        return self

    @field_validator("novelty")
    @classmethod
    def _each_label_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        taken = [one for one in value if one in ("item", "user")]
        if taken:
            raise ValueError(f"novelty by {' and by '.join(taken)} is measured anyway; rename the column")
        if TAGS in value and "tag" in value:
            raise ValueError("the columns tags and tag would both have the label by=tag; rename one of them")
        return value
