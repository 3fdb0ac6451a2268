"""What an incident is: a name, sizes, what it does to each stage of the traffic, and what should catch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from monitor.simulate.delivery import Delivery
from monitor.simulate.lists import Lists
from monitor.simulate.simulation import Simulation

Size = Literal["small", "middle", "large"]
Operation = Literal["history_full", "rule_file_broken"]
SIZES: Final[tuple[Size, ...]] = ("small", "middle", "large")
SOON: Final = 2  # windows within which an incident has to be caught


@dataclass(frozen=True, slots=True)
class StruckHour:
    """Where an incident strikes: one hour of one simulation.

    `sim` is the healthy simulation, `since` the hour in which the incident began, `hour` the one in hand,
    `size` the knob's number, and `rng` is seeded by the world, the incident, the stage and the hour.
    """

    sim: Simulation
    since: datetime
    hour: datetime
    size: float
    rng: np.random.Generator

    @property
    def age(self) -> timedelta:
        """How long the incident has lasted when the hour begins; 0 in its first, negative before it."""
        return self.hour - self.since


ListsStage = Callable[[Lists, StruckHour], Lists]
TableStage = Callable[[pa.Table, StruckHour], pa.Table]
FeedbackStage = Callable[[pa.Table, Lists, StruckHour], pa.Table]
DeliverStage = Callable[[Sequence[Delivery], StruckHour], list[Delivery]]


@dataclass(frozen=True, slots=True)
class Caught:
    """An alert that catches an incident: its name, and the labels that it must carry.

    >>> Caught("RecsysAnomaly", cause="lists_empty").fits({"alertname": "RecsysAnomaly", "cause": "other"})
    False
    """

    alert: str
    rule: str | None = None
    cause: str | None = None
    metric: str | None = None
    feature: str | None = None
    fault: str | None = None

    @property
    def labels(self) -> dict[str, str]:
        """The labels that are asked for, beside the name."""
        names = ("rule", "cause", "metric", "feature", "fault")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with these labels (`alertname` among them) is the one meant."""
        return labels.get("alertname") == self.alert and all(
            labels.get(name) == value for name, value in self.labels.items()
        )

    def __str__(self) -> str:
        labels = ", ".join(f"{name}={value}" for name, value in self.labels.items())
        return f"{self.alert} ({labels})" if labels else self.alert


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A thing that goes wrong in life, at three sizes.

    `knob` says in words what the number of a size means. Any one of `caught_by` counts. `hard`: a single row
    is enough, so the small size has to be caught as well. `unseen` says why a size cannot be seen, where that
    is so. Each stage is a pure function, asked from the hour on in which the incident begins; `deliver` also
    of the hours before it, whose last files are still on their way. `operation` names what is done to the
    monitor itself instead.
    """

    name: str
    title: str
    says: str
    knob: str
    sizes: Mapping[Size, float]
    caught_by: tuple[Caught, ...]
    windows: int = SOON
    hard: bool = False
    unseen: Mapping[Size, str] = field(default_factory=dict)
    lists: ListsStage | None = field(default=None, repr=False)
    feedback: FeedbackStage | None = field(default=None, repr=False)
    samples: TableStage | None = field(default=None, repr=False)
    catalog: TableStage | None = field(default=None, repr=False)
    deliver: DeliverStage | None = field(default=None, repr=False)
    operation: Operation | None = None


def sizes(small: float, middle: float, large: float) -> dict[Size, float]:
    """The knob's number at each size.

    >>> sizes(1, 5, 100)
    {'small': 1, 'middle': 5, 'large': 100}
    """
    return {"small": small, "middle": middle, "large": large}
