"""A series that stands out of its band: what anomalies are read from, and their evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["above", "below"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A series that stands out of its band in a window."""

    metric: str
    by: str
    of: str
    measured: float
    expected: float
    lower: float
    upper: float
    deviation: float  # robust standard deviations, with its sign
    dimension: str = ""
    value: str = ""

    @property
    def side(self) -> Side:
        return "above" if self.deviation > 0 else "below"

    def title(self) -> str:
        """What a person calls the series.

        >>> Departure(metric="failure", by="pv", of="", measured=0.5, expected=0.01, lower=0, upper=0.02,
        ...           deviation=50.0, dimension="scene", value="search").title()
        'failure by pv where scene is search'
        """
        by = f" by {self.by}" if self.by else ""
        of = f" ({self.of.replace(',', ', ')})" if self.of else ""
        where = f" where {self.dimension} is {self.value}" if self.dimension else ""
        return f"{self.metric}{by}{of}{where}"
