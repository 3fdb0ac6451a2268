"""The results of one window as the history stores them: one list for each field.

A row for each result would take four times the space: most of a row are texts and ids that it shares with
the rows beside it. Side by side, equal values compress to almost nothing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final

FIELDS: Final = (
    "definition", "status", "value", "samples", "lower", "upper", "detail", "violations", "threshold",
    "bound", "clear", "severity",
)  # fmt: skip
"""The fields of a result that are stored by window; metric, labels and kind are those of its series."""
SIGNAL: Final = "signal"
_SERIES: Final = "series"

Packed = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class WindowResults:
    """The results of a window: the ids of their series, sorted, and the values of each field beside them."""

    series: list[int]
    fields: Packed

    def column(self, name: str) -> list[Any]:
        """The values of a field, or of `signal`, in the order of the series."""
        return self.fields.get(name) or [None] * len(self.series)

    def of(self, series: Container[int]) -> WindowResults:
        """The results of these series alone."""
        places = [place for place, one in enumerate(self.series) if one in series]
        fields = {name: [column[place] for place in places] for name, column in self.fields.items()}
        return WindowResults([self.series[place] for place in places], fields)


def pack(results: Mapping[int, Mapping[str, Any]]) -> Packed:
    """Series id -> signal and fields, as they are stored. A field that no result has is left out.

    >>> pack({7: {"value": 0.5}, 4: {"value": 1.0}})
    {'series': [4, 3], 'value': [1.0, 0.5]}
    """
    series = sorted(results)
    columns = {name: [results[one].get(name) for one in series] for name in (SIGNAL, *FIELDS)}
    packed = {name: column for name, column in columns.items() if any(one is not None for one in column)}
    # Ids that follow each other are all 1: that costs nothing.
    return {_SERIES: [*series[:1], *(later - one for one, later in pairwise(series))], **packed}


def unpack(packed: Packed) -> WindowResults:
    """The other way round.

    >>> unpack({'series': [4, 3], 'value': [1.0, 0.5]}).series
    [4, 7]
    """
    fields = {name: column for name, column in packed.items() if name != _SERIES}
    return WindowResults(list(accumulate(packed[_SERIES])), fields)
