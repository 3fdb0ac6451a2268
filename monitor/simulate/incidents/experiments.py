"""Experiments: one arm loses users to the other, or the hash that sorts users into buckets is broken."""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.simulate.incidents.incident import Caught, Incident, Moment, sizes
from monitor.simulate.incidents.picks import changed, of_users
from monitor.simulate.lists import Lists


def fallen_back(lists: Lists, moment: Moment) -> Lists:
    """Some users of the other arms are served, and logged, as the first arm."""
    struck = of_users(lists.users, moment.size, moment.sim.world.seed)
    rows = np.flatnonzero(struck & (lists.arms > 0))
    return changed(lists, rows, arms=np.zeros(len(rows), np.int64))


INCIDENTS: Final = (
    Incident(
        name="sample_ratio_mismatch",
        title="Sample ratio mismatch",
        says="The service of an experiment's treatment fails, and its users fall back to the control.",
        knob="share of the treatment's users who get the control",
        sizes=sizes(0.1, 0.5, 1.0),
        caught_by=(Caught("RecsysSampleRatioMismatch"),),
        lists=fallen_back,
    ),
)
