"""Scores that are NaN, infinite, constant, at the edge of their range, or not sorted."""

from __future__ import annotations

from typing import Final

import numpy as np

from monitor.simulate.incidents.incident import Caught, Incident, ListsStage, StruckHour, sizes
from monitor.simulate.incidents.picks import Ints, changed, filled, share_of, some
from monitor.simulate.lists import Lists

DENOMINATOR: Final = "impressions"
DEFAULT: Final = 0.5  # the score if the model is not loaded
_SHRUNK: Final = 1e-312  # times a score in (0, 1): below the smallest normal number, and above 0
_NOT_FINITE = Caught("RecsysNumericRuleViolated", rule="score_not_finite")
_CHANGED = Caught("RecsysAnomaly", cause="scores_changed")


def _all_become(value: float) -> ListsStage:
    """A stage that sets all scores of some lists to this number."""

    def stage(lists: Lists, moment: StruckHour) -> Lists:
        rows = share_of(filled(lists), moment.size, moment.rng)
        return changed(lists, rows, scores=np.where(lists.shown[rows], value, 0.0))

    return stage


def constant(lists: Lists, moment: StruckHour) -> Lists:
    """All scores of some lists become the default, and their items are shuffled, as ties leave them."""
    rows = share_of(filled(lists), moment.size, moment.rng)
    ties = np.where(lists.shown[rows], DEFAULT, 0.0)
    return changed(_in_any_order(lists, rows, moment.rng), rows, scores=ties)


def saturated(lists: Lists, moment: StruckHour) -> Lists:
    """The largest scores of the hour become exactly 1; `size` is their share."""
    shown = lists.scores[lists.shown]
    if not len(shown) or moment.size <= 0.0:
        return lists
    edge = np.quantile(shown, max(0.0, 1.0 - moment.size))
    every = np.arange(len(lists))
    return changed(lists, every, scores=np.where(lists.shown & (lists.scores >= edge), 1.0, lists.scores))


def underflown(lists: Lists, moment: StruckHour) -> Lists:
    """The scores of some lists become denormal numbers, which have lost digits."""
    rows = share_of(filled(lists), moment.size, moment.rng)
    return changed(lists, rows, scores=lists.scores[rows] * _SHRUNK)


def shuffled(lists: Lists, moment: StruckHour) -> Lists:
    """Some lists are shuffled; each item keeps its score and its extra columns."""
    return _in_any_order(lists, share_of(filled(lists), moment.size, moment.rng), moment.rng)


def _in_any_order(lists: Lists, rows: Ints, rng: np.random.Generator) -> Lists:
    keys = np.where(lists.shown[rows], rng.random((len(rows), lists.items.shape[1])), np.inf)
    order = np.argsort(keys, axis=1, kind="stable")
    columns = {"items": lists.items, "scores": lists.scores, **lists.extra}
    moved = {name: np.take_along_axis(values[rows], order, axis=1) for name, values in columns.items()}
    return changed(lists, rows, **moved)


def zero_denominators(lists: Lists, moment: StruckHour) -> Lists:
    """The denominator becomes 0 at some places of the hour."""
    cells = some(np.flatnonzero(lists.shown), int(moment.size), moment.rng)
    counts = lists.extra[DENOMINATOR].copy()
    counts.ravel()[cells] = 0.0
    return changed(lists, np.arange(len(lists)), **{DENOMINATOR: counts})


INCIDENTS: Final = (
    Incident(
        name="score_nan",
        title="Scores are NaN",
        says="A missing feature makes the model's sum NaN, and the list is served with NaN scores.",
        knob="share of the lists whose scores are NaN",
        sizes=sizes(0.001, 0.05, 1.0),
        caught_by=(_NOT_FINITE, _CHANGED),
        lists=_all_become(np.nan),
    ),
    Incident(
        name="score_infinite",
        title="Scores are infinite",
        says="An exponent overflows, and scores become infinite.",
        knob="share of the lists whose scores are infinite",
        sizes=sizes(0.001, 0.05, 1.0),
        caught_by=(_NOT_FINITE, _CHANGED),
        lists=_all_become(np.inf),
    ),
    Incident(
        name="score_constant",
        title="Scores are constant",
        says="The model is not loaded, and every score is a default: nothing is ranked, and items are in "
        "random order.",
        knob="share of the lists whose scores are all the same number",
        sizes=sizes(0.02, 0.2, 1.0),
        caught_by=(Caught("RecsysSoftRuleViolated", rule="scores_all_equal"), _CHANGED),
        lists=constant,
    ),
    Incident(
        name="score_saturated",
        title="Scores are saturated",
        says="Logits are so large that the best items all score exactly 1: the scores no longer tell which "
        "of them is better. Lists keep their order.",
        knob="share of the scores that are exactly 1",
        sizes=sizes(0.02, 0.2, 0.8),
        caught_by=(Caught("RecsysSoftRuleViolated", rule="score_saturated"), _CHANGED),
        lists=saturated,
    ),
    Incident(
        name="score_underflown",
        title="Scores underflow",
        says="A product of many small factors is so close to 0 that it loses most of its digits.",
        knob="share of the lists whose scores are below the smallest normal number",
        sizes=sizes(0.001, 0.05, 1.0),
        caught_by=(Caught("RecsysNumericRuleViolated", rule="denormal"), _CHANGED),
        lists=underflown,
    ),
    Incident(
        name="order_broken",
        title="The order of scores is broken",
        says="Lists are assembled in parallel and no longer sorted by score.",
        knob="share of the lists in random order",
        sizes=sizes(0.02, 0.2, 1.0),
        caught_by=(Caught("RecsysSoftRuleViolated", rule="score_not_falling"),),
        lists=shuffled,
    ),
    Incident(
        name="zero_denominators",
        title="Zero denominators",
        says="A count by which scores are divided is logged as 0: the next division gives infinity or NaN.",
        knob="exposures with this 0 in an hour",
        sizes=sizes(1, 10, 1000),
        caught_by=(Caught("RecsysNumericRuleViolated", rule="zero_denominator"),),
        hard=True,
        lists=zero_denominators,
    ),
)
