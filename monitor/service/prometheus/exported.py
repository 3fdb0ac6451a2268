"""The declaration of one exported family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

RECOMMENDER: Final = "recommender"


@dataclass(frozen=True, slots=True)
class ExportedFamily:
    """One exported family. `name` is the full name of its samples, with `_total` or `_info`."""

    name: str
    help: str
    labels: tuple[str, ...] = (RECOMMENDER,)
    unit: Literal["", "ratio", "seconds", "bits", "bytes"] = ""
    kind: Literal["gauge", "counter", "info"] = "gauge"
