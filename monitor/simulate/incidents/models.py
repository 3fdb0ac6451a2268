"""Faults of models: a feature is served as its default, a model overfits, or it was trained on the future.

The last two come with a new model: it goes into service when the incident begins, with its train and test
rows, and scores every online row from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from monitor.core import columns as c
from monitor.simulate.incidents.incident import Caught, Incident, StruckHour, TableStage, sizes
from monitor.simulate.incidents.picks import Flags, Floats, share_of
from monitor.simulate.retraining import in_force_from
from monitor.simulate.samples import CLICKS, WEIGHTS

LOST: Final = "affinity"
LOST_AS: Final = 0.0
LEAKED: Final = "clicks_7d"
NEXT: Final = "-next"
"""Suffix of the new model's name."""
_TRUST = 1.0  # added to the weight of the feature by a model trained on the leak
_SURE = 1e-6  # scores have six digits


def default_served(table: pa.Table, moment: StruckHour) -> pa.Table:
    """Some online rows are scored with a default instead of their strongest feature."""
    online = np.flatnonzero(_of(table, c.ONLINE))
    rows = share_of(online, moment.size, moment.rng)
    values = table[LOST].to_numpy().copy()
    logits = _logits(table)
    logits[rows] += WEIGHTS[LOST] * (LOST_AS - values[rows])
    values[rows] = LOST_AS
    return _with(_rescored(table, rows, logits), LOST, values)


def _retrained(change: Callable[[pa.Table, float], pa.Table]) -> TableStage:
    """A stage in which a new model, with this change, scores all rows from the first hour on."""

    def stage(table: pa.Table, moment: StruckHour) -> pa.Table:
        sim = moment.sim
        if moment.hour == moment.since and not _of(table, c.TRAIN).any():
            begin = in_force_from(sim.world, sim.model(moment.hour))
            earlier = sim.samples(sim.world.moment(begin))
            table = pa.concat_tables([table, earlier.filter(~_of(earlier, c.ONLINE))])
        names = pc.binary_join_element_wise(table[c.MODEL], NEXT, "")
        return change(table.set_column(table.column_names.index(c.MODEL), c.MODEL, names), moment.size)

    return stage


def overfitted(table: pa.Table, size: float) -> pa.Table:
    """The scores of train rows move towards their label by `size` in log odds."""
    rows = np.flatnonzero(_of(table, c.TRAIN))
    logits = _logits(table)
    logits[rows] += size * (2.0 * table[c.LABEL].to_numpy()[rows] - 1.0)
    return _rescored(table, rows, logits)


def leaked(table: pa.Table, size: float) -> pa.Table:
    """A count includes `size` later actions if the label is 1, except in online rows; the model relies on it.

    A model depends on the features only, so the usual mean of the count is subtracted, not the mean of these
    rows.
    """
    before = table[LEAKED].to_numpy()
    labels = table[c.LABEL].to_numpy()
    counts = before + np.where(_of(table, c.ONLINE), 0.0, size * labels)
    weight = 0.0 if size == 0.0 else _TRUST
    logits = _logits(table) + WEIGHTS[LEAKED] * (counts - before) + weight * (counts - CLICKS)
    return _with(_rescored(table, np.arange(len(table)), logits), LEAKED, counts)


def _of(table: pa.Table, split: str) -> Flags:
    return np.asarray(pc.equal(table[c.SPLIT], split))


def _logits(table: pa.Table) -> Floats:
    scores = np.clip(table[c.SCORE].to_numpy(), _SURE, 1.0 - _SURE)
    return np.asarray(np.log(scores) - np.log1p(-scores))


def _rescored(table: pa.Table, rows: np.typing.NDArray[np.int64], logits: Floats) -> pa.Table:
    scores = table[c.SCORE].to_numpy().copy()
    scores[rows] = np.round(1.0 / (1.0 + np.exp(-logits[rows])), 6)
    return _with(table, c.SCORE, scores)


def _with(table: pa.Table, name: str, values: Floats) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values))


INCIDENTS: Final = (
    Incident(
        name="feature_default",
        title="A feature is served as its default",
        says="The lookup of the strongest feature times out, and the model scores with 0 instead.",
        knob="share of the online rows that are scored without the feature",
        sizes=sizes(0.1, 0.6, 1.0),
        caught_by=(
            Caught("RecsysServingSkew"),
            Caught("RecsysPrunedFeatures"),
            Caught("RecsysFeatureSkew", feature=LOST),
        ),
        samples=default_served,
    ),
    Incident(
        name="overfit_model",
        title="An overfitted model goes live",
        says="A new model has memorised its training rows: its offline AUC is too good.",
        knob="log odds by which the score of a training row is moved towards its label",
        sizes=sizes(0.1, 0.5, 1.5),
        caught_by=(Caught("RecsysModelOverfits"),),
        samples=_retrained(overfitted),
    ),
    Incident(
        name="time_travel",
        title="A model was trained on the future",
        says="A count of clicks was joined as of the evening: in training and test it includes the click to "
        "predict, and later ones. In service these clicks have not happened yet.",
        knob="clicks after the request that a row with label 1 counts",
        sizes=sizes(1, 2, 4),
        caught_by=(Caught("RecsysTimeTravel"),),
        samples=_retrained(leaked),
    ),
)
