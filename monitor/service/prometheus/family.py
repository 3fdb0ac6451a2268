"""What one exported family is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Part = Literal["", "lower", "upper", "samples"]

PREFIX: Final = "recsys_"
RECOMMENDER: Final = "recommender"
SLICE_LABELS: Final = ("dimension", "value")


@dataclass(frozen=True, slots=True)
class Family:
    """One exported family. `name` is the name of its samples, with `_total` or `_info` and all."""

    name: str
    kind: Literal["gauge", "counter", "info"]
    help: str
    labels: tuple[str, ...] = (RECOMMENDER,)
    unit: Literal["", "ratio", "seconds", "bits"] = ""
