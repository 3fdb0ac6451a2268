"""An incident: its name and sizes, its change of each stage, and the alerts that should fire."""

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
SOON: Final = 2  # windows within which an incident must be caught


@dataclass(frozen=True, slots=True)
class StruckHour:
    """One hour of a simulation with an incident.

    `sim` is the healthy simulation, `since` the first hour of the incident, `hour` the current one, `size`
    the number of the knob, and `rng` is seeded by the world, the incident, the stage and the hour.
    """

    sim: Simulation
    since: datetime
    hour: datetime
    size: float
    rng: np.random.Generator

    @property
    def age(self) -> timedelta:
        """Time since the incident began, at the start of the hour; negative before it."""
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
        """The labels that the alert must have, without its name."""
        names = ("rule", "cause", "metric", "feature", "fault")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with these labels, including `alertname`, matches."""
        return labels.get("alertname") == self.alert and all(
            labels.get(name) == value for name, value in self.labels.items()
        )

    def __str__(self) -> str:
        labels = ", ".join(f"{name}={value}" for name, value in self.labels.items())
        return f"{self.alert} ({labels})" if labels else self.alert


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A fault in three sizes.

    Attributes:
        knob: what the number of a size means.
        caught_by: any of these alerts counts.
        hard: a single row is enough, so the small size must be caught too.
        unseen: size -> why it cannot be seen.
        lists, feedback, samples, catalog, search, deliver: pure functions that change a stage from the first
            hour of the incident on; `deliver` also changes earlier hours, whose last files have not arrived
            yet.
        operation: what is done to the monitor itself instead.
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
    search: TableStage | None = field(default=None, repr=False)
    deliver: DeliverStage | None = field(default=None, repr=False)
    operation: Operation | None = None

    @property
    def is_share(self) -> bool:
        """Whether the knob is a share, from 0 to 1."""
        return "share" in self.knob


def sizes(small: float, middle: float, large: float) -> dict[Size, float]:
    """The number of the knob at each size.

    >>> sizes(1, 5, 100)
    {'small': 1, 'middle': 5, 'large': 100}
    """
    return {"small": small, "middle": middle, "large": large}
