"""The one list of the causes of a gap. To add a cause: its file, and an entry here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from monitor.models.diagnosis import overfitting, population, pruned, score_shift, skew, time_travel
from monitor.models.diagnosis.case import Case, Claim
from monitor.models.diagnosis.spikes import spikes
from monitor.models.diagnosis.swaps import swapped

Look = Callable[[Case, frozenset[str]], Claim]
"""Judges a gap by one sign of a cause. It may not claim the features of the set: earlier causes own them."""
Rest = Callable[[Case, float], Claim]
"""Judges what is left of a gap if the other causes explain so much AUC."""


@dataclass(frozen=True, slots=True)
class GapCause:
    """A cause of a gap, and the functions that look for it.

    Attributes:
        name: the label `cause` of its findings.
        runbook: the name of its alert, which is also that of its page in `docs/runbooks/`.
        swaps: look at whole columns, before all causes look at the values of features.
        features: look at the values of features, in the order of the list.
        rows: look at rows and scores, when every cause has claimed its features.
        rest: looks at what nothing else explains.
    """

    name: str
    runbook: str
    swaps: tuple[Look, ...] = ()
    features: tuple[Look, ...] = ()
    rows: tuple[Look, ...] = ()
    rest: Rest | None = None


GAP_CAUSES: Final = (
    GapCause(
        time_travel.CAUSE,
        "RecsysTimeTravel",
        features=(time_travel.from_the_future,),
        rows=(lambda case, _: time_travel.older_test_rows(case),),
    ),
    GapCause(pruned.CAUSE, "RecsysPrunedFeatures", features=(pruned.pruned_features,)),
    GapCause(skew.CAUSE, "RecsysServingSkew", swaps=(swapped,), features=(skew.serving_skew, spikes)),
    GapCause(score_shift.CAUSE, "RecsysScoreShift", rows=(lambda case, _: score_shift.score_shift(case),)),
    GapCause(population.CAUSE, "RecsysPopulationShift", rows=(population.population_shift,)),
    GapCause(overfitting.CAUSE, "RecsysModelOverfits", rest=overfitting.overfitting),
)
CAUSES: Final = tuple(one.name for one in GAP_CAUSES)
RUNBOOKS: Final = {one.name: one.runbook for one in GAP_CAUSES}
LOOKS: Final[tuple[Look, ...]] = (
    *(look for one in GAP_CAUSES for look in one.swaps),
    *(look for one in GAP_CAUSES for look in one.features),
    # From the last cause to the first: findings of equal or unknown share are given in this order.
    *(look for one in reversed(GAP_CAUSES) for look in one.rows),
)
"""In the order in which they judge a gap."""
RESTS: Final[tuple[Rest, ...]] = tuple(one.rest for one in GAP_CAUSES if one.rest is not None)
