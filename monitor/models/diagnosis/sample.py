"""What a diagnosis is made from: bounded samples of two splits of one model, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.statistics.counts import Floats

Values = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of one split of one model, arrays of one length.

    A numeric feature is float64 with NaN where it is missing, one of text an object array with None. Rows
    whose score is NaN or whose label is neither 0 nor 1 are left out of a diagnosis.

    >>> len(Sample(np.array([0.2, 0.9]), np.array([0, 1]), {"age": np.array([30.0, np.nan])}))
    2

    Raises ValueError where an array has another length than the scores.
    """

    scores: Floats
    labels: Values
    features: Mapping[str, Values]
    times: Floats | None = None
    """Of the labelled event, seconds since 1970, NaN where unknown."""
    feature_times: Mapping[str, Floats] = field(default_factory=dict)
    """What time a feature's value is of, where the log says so."""
    slices: Mapping[str, Values] = field(default_factory=dict)
    """Columns of text by which the population is cut, such as the scene."""
    ids: Values | None = None
    """What a row is called in evidence."""
    entities: Mapping[str, Values] = field(default_factory=dict)
    """Whose the feature values are (user, item), already hashed: tells a stale value from a wrong one."""

    def __post_init__(self) -> None:
        lengths = {
            "labels": self.labels,
            **{f"feature {name!r}": values for name, values in self.features.items()},
            **{f"times of {name!r}": values for name, values in self.feature_times.items()},
            **{f"slice {name!r}": values for name, values in self.slices.items()},
            **{f"entity {name!r}": values for name, values in self.entities.items()},
        }
        lengths |= {what: one for what, one in (("times", self.times), ("ids", self.ids)) if one is not None}
        for what, values in lengths.items():
            if np.shape(values) != (len(self),):
                raise ValueError(f"{len(self)} scores, but {what} of shape {np.shape(values)}")

    def __len__(self) -> int:
        return len(self.scores)

    def usable(self) -> NDArray[np.bool_]:
        """The rows with a score and a label."""
        labels = np.asarray(self.labels, np.float64)
        return np.asarray(~np.isnan(np.asarray(self.scores, np.float64)) & ((labels == 0) | (labels == 1)))

    def take(self, rows: NDArray[np.bool_]) -> Sample:
        """The sample of these rows alone."""
        if bool(rows.all()):
            return self
        return replace(
            self,
            scores=np.asarray(self.scores)[rows],
            labels=np.asarray(self.labels)[rows],
            features=_take(self.features, rows),
            times=None if self.times is None else np.asarray(self.times)[rows],
            feature_times=_take(self.feature_times, rows),
            slices=_take(self.slices, rows),
            ids=None if self.ids is None else np.asarray(self.ids)[rows],
            entities=_take(self.entities, rows),
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """The same requests' rows: as served online, and their features as joined offline.

    Raises ValueError where an offline array has another length than the online scores.
    """

    online: Sample
    offline: Mapping[str, Values]
    """Feature: its values, row by row beside those of `online`."""
    offline_times: Mapping[str, Floats] = field(default_factory=dict)
    """What time the offline value is of, where the log says so."""

    def __post_init__(self) -> None:
        for name, values in (*self.offline.items(), *self.offline_times.items()):
            if np.shape(values) != (len(self.online),):
                raise ValueError(f"{len(self.online)} pairs, but {name!r} of shape {np.shape(values)}")

    def usable(self) -> Pairs:
        """The pairs whose online row has a score and a label."""
        rows = self.online.usable()
        return Pairs(self.online.take(rows), _take(self.offline, rows), _take(self.offline_times, rows))


def _take(columns: Mapping[str, Values], rows: NDArray[np.bool_]) -> dict[str, Values]:
    return {name: np.asarray(values)[rows] for name, values in columns.items()}
