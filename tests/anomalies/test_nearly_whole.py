"""A slice that holds nearly all rows is judged as the whole, which has a longer past."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from monitor.anomalies.band_state import Step
from monitor.anomalies.past import SeriesName
from monitor.anomalies.series_traits import NEARLY_WHOLE
from tests.anomalies.stepped import WEEK, Values, stepped

MODEL = {"dimension": "model", "value": "m2"}
NAMES = {
    0: SeriesName("volume", {"by": "requests"}),
    1: SeriesName("list_length", {}),
    2: SeriesName("coverage", {"by": "item"}),
    3: SeriesName("list_length", MODEL),
    4: SeriesName("coverage", {"by": "item"} | MODEL),
}
LENGTH, OF_MODEL = 1, 3
BEGINS = 5 * WEEK  # a new model serves since Monday
THURSDAY = BEGINS + 3 * 24
CATALOG = 3_000.0  # the samples of coverage by item, in every slice


def shop(part: float, lost: float = 1.0, lost_from: int = THURSDAY) -> Values:
    """The length of lists varies by day, but not in the first three days of a model.

    The model serves so large a part of all requests.
    """

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        by_hour, by_day = (np.random.default_rng([7, one]).normal() for one in (number, number // 24))
        of_day = 0.0 if BEGINS <= number < THURSDAY else -0.1 if number >= THURSDAY else 0.07 * by_day
        length = 10.0 * (1 + of_day + 0.002 * by_hour) * (lost if number >= lost_from else 1.0)
        whole = {0: (4000.0 + 40 * by_hour, 4000.0), 1: (length, 4000.0), 2: (0.9, CATALOG)}
        if number < BEGINS:
            return whole
        return whole | {3: (length, 4000.0 * part), 4: (0.9, CATALOG)}

    return values


def steps(values: Values, count: int) -> list[Step]:
    return stepped(values, count, NAMES, {})[0]


@pytest.mark.parametrize(("part", "departs"), [(1.0, False), (0.95, False), (0.5, True)])
def test_a_young_slice_with_nearly_all_rows_is_in_its_band_if_the_whole_is(
    part: float, departs: bool
) -> None:
    assert (part >= NEARLY_WHOLE) is not departs
    thursday = steps(shop(part), THURSDAY + 24)[THURSDAY:]
    assert all(step.has_band[[LENGTH, OF_MODEL]].all() for step in thursday)
    assert not any(step.departed[LENGTH] for step in thursday)
    assert any(step.departed[OF_MODEL] for step in thursday) is departs


def test_it_leaves_its_band_with_the_whole() -> None:
    lost = THURSDAY + 12
    step = steps(shop(1.0, 0.3, lost), lost + 2)[-1]
    assert step.departed[[LENGTH, OF_MODEL]].all()


def test_its_loss_is_reported_while_the_whole_has_all_its_requests() -> None:
    """A slice that was nearly all and has no row now holds nothing of the window."""
    scene = SeriesName("volume", {"by": "requests", "dimension": "scene", "value": "home"})
    gone = 5 * WEEK

    def values(number: int) -> Mapping[int, tuple[float, float]]:
        requests = 4000.0 + 40 * np.random.default_rng([7, number]).normal()
        whole = {0: (requests, requests)}
        return whole if number >= gone else whole | {1: (0.95 * requests, 0.95 * requests)}

    step = stepped(values, gone + 2, {0: NAMES[0], 1: scene}, {})[0][-1]
    assert step.departed.tolist() == [False, True]
