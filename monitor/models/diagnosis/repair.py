"""What AUC the worse split wins where a cause is repaired: the one measure that shares are ranked by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.models.diagnosis.case import Case


class Struck(NamedTuple):
    """Rows of `worse` whose features have lost their values."""

    values: Mapping[str, float]
    """The value that each feature got in the place of its own."""
    rows: NDArray[np.bool_]


def with_offline(case: Case, names: Sequence[str]) -> tuple[float, float]:
    """What AUC of the pairs wins with the values joined offline, and the error of that."""
    offline = {name: case.columns[name].sides["offline"] for name in names}
    lost, error = case.lost("online", [case.scoring.changed("online", offline)], [1.0])
    return -lost, error


def from_donors(case: Case, struck: Sequence[Struck], share: float = 1.0) -> tuple[float, float]:
    """What AUC of `worse` wins where its struck rows get back what the features tell in `better`.

    The right values are not known. So the rows of `better` are struck alike, and what that takes from the
    score of a row is given to the row of `worse` with the same label and the same place among the struck
    scores. The features then tell as much of the label, beside all others, as they did in `better`.

    Args:
        case: the gap.
        struck: rows and what happened to them; no row is in two of them.
        share: of the struck rows, those that have the value by the fault and not by nature.
    """
    served, whole = case.scoring.base("worse"), case.scoring.base("better")
    repaired = served.copy()
    for values, rows in struck:
        broken = case.scoring.changed(
            "better", {name: np.full(len(case.better), value) for name, value in values.items()}
        )
        for label in (0.0, 1.0):
            donors = np.flatnonzero(case.better.labels == label)
            hit = np.flatnonzero(rows & (case.worse.labels == label))
            if not donors.size or not hit.size:
                continue
            donors = donors[np.lexsort((whole[donors], broken[donors]))]
            hit = hit[np.argsort(served[hit], kind="stable")]
            at = donors[((np.arange(len(hit)) + 0.5) * len(donors) / len(hit)).astype(np.int64)]
            repaired[hit] += whole[at] - broken[at]
    lost, error = case.lost("worse", [served, repaired], [1 - share, share])
    return -lost, error
