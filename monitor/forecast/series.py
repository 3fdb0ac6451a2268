"""Which series predict, and which are predicted: names without the model that a value is of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from monitor.anomalies.past import SeriesName
from monitor.anomalies.series import DIMENSION, SLICE_VALUE
from monitor.anomalies.specs import BY_LABEL, METRIC_LABEL, OF_LABEL, written_of
from monitor.core.columns import MODEL, ONLINE, TEST
from monitor.core.text import VALUE_LENGTH, quoted
from monitor.metrics.catalogue import SPECS
from monitor.metrics.family import MODEL_LABEL, SPLIT_LABEL, Theme
from monitor.metrics.feedback.attribution_health import LOST, OTHER_EVENTS, WITHOUT_ITEM
from monitor.models.specs import MODEL_SPECS
from monitor.settings.forecast import SeriesSettings

_OFFLINE: Final = (Theme.LISTS, Theme.SCORES)
_OF_THE_JOIN: Final = frozenset((LOST.name, OTHER_EVENTS.name, WITHOUT_ITEM.name))
"""They have the theme of scores, but judge neither a list nor a score."""
_OF_DAY: Final = "sum"  # the value of `by` of a number that grows with the window


@dataclass(frozen=True, slots=True, order=True)
class ForecastSeries:
    """A metric and its labels, sorted, without the model."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: SettingsOrName) -> tuple[Self, str]:
        """The series, and the model that the values are of; empty for the whole."""
        labels, model = dict(name.labels), ""
        if SPLIT_LABEL in labels:
            model = labels.pop(MODEL_LABEL, "")
        elif labels.get(DIMENSION) == MODEL:
            model = labels.pop(SLICE_VALUE, "")
            del labels[DIMENSION]
        return cls(name.metric, tuple(sorted(labels.items()))), model

    @classmethod
    def asked(cls, settings: SeriesSettings) -> Self:
        """The series that the config names."""
        return cls(settings.metric, tuple(sorted(settings.labels.items())))

    @property
    def is_of_samples(self) -> bool:
        """Whether it is measured on the samples of a model, so that it stays while the model serves."""
        return SPLIT_LABEL in dict(self.labels)

    @property
    def is_offline(self) -> bool:
        """Whether it is tried if the config names no offline metrics."""
        labels = dict(self.labels)
        of_models = MODEL_SPECS.get(self.metric)
        if DIMENSION in labels or (of_models is not None and of_models.kind.is_of_models):
            return False
        if self.is_of_samples:
            return labels[SPLIT_LABEL] == TEST
        if self.metric not in SPECS or self.metric in _OF_THE_JOIN:
            return False
        return SPECS[self.metric].theme in _OFFLINE and "feedback" in self.needs

    @property
    def needs(self) -> tuple[str, ...]:
        """The logs that its metric needs."""
        return SPECS[self.metric].requires

    @property
    def is_online_rows(self) -> bool:
        """Whether it counts the online rows of a model."""
        return self.metric == "sample_rows" and dict(self.labels).get(SPLIT_LABEL) == ONLINE

    @property
    def adds_up(self) -> bool:
        """Whether it is a number that grows with the window: a count or a sum."""
        spec = SPECS.get(self.metric)
        return spec is not None and (spec.is_count or dict(self.labels).get(BY_LABEL) == _OF_DAY)

    def own_labels(self) -> dict[str, str]:
        """The labels of results on it: `metric`, `by` and `of`.

        >>> ForecastSeries("auc", (("split", "test"),)).own_labels()
        {'metric': 'auc', 'by': '', 'of': 'split=test'}
        """
        labels = dict(self.labels)
        return {
            METRIC_LABEL: self.metric, BY_LABEL: labels.get(BY_LABEL, ""), OF_LABEL: written_of(labels)
        }  # fmt: skip

    def title(self) -> str:
        """The series in words.

        >>> ForecastSeries("ndcg", (("k", "10"),)).title()
        'ndcg (k=10)'
        """
        own = self.own_labels()
        by = f" by {own[BY_LABEL]}" if own[BY_LABEL] else ""
        of = f" ({own[OF_LABEL].replace(',', ', ')})" if own[OF_LABEL] else ""
        labels = dict(self.labels)
        where = f" where {labels[DIMENSION]} is {labels.get(SLICE_VALUE, '')}" if DIMENSION in labels else ""
        return f"{self.metric}{by}{of}{where}"


SettingsOrName = SeriesName | SeriesSettings


def parse_values(texts: tuple[str, ...]) -> list[tuple[str, Mapping[str, str], float]]:
    """Values of a candidate, from METRIC[,LABEL=VALUE...]=NUMBER.

    >>> parse_values(("auc,split=test=0.71",))
    [('auc', {'split': 'test'}, 0.71)]

    Raises ValueError, with a sentence.
    """
    found: list[tuple[str, Mapping[str, str], float]] = []
    for text in texts:
        series, equals, number = text.rpartition("=")
        metric, *labels = series.split(",")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        pairs = [label.partition("=") for label in labels]
        named = all(name and of for name, _, of in pairs)
        if not (equals and metric and named and math.isfinite(value)):
            raise ValueError(
                f"{quoted(text, VALUE_LENGTH)} is no value; write it as auc=0.71, or with labels as "
                "ndcg,k=10=0.31"
            )
        found.append((metric, {name: of for name, _, of in pairs}, value))
    return found
