"""What is drawn of a window against the real checks on the same window as logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real_traffic.draws import NO_CHANGE, SCENE, SCENES, Change, config, draw, settings
from monitor.core.results import Result, Window
from monitor.judging.runtime import Runtime
from monitor.metrics.catalogue import EXPOSURE_CHECK, FEEDBACK_CHECK
from tests.shop import DAY, HOUR, Shop, runtime

__all__ = ["runtime"]


def named(results: Sequence[Result]) -> dict[tuple[str, tuple[tuple[str, str], ...]], Result]:
    return {(one.metric, tuple(sorted(one.labels.items()))): one for one in results}


@pytest.mark.parametrize(
    ("rate", "change"),
    [(60.0, NO_CHANGE), (900.0, NO_CHANGE), (300.0, Change(requests=0.5, clicks=0.3, lost="search"))],
)
def test_a_drawn_window_has_the_results_of_the_real_checks(
    tmp_path: Path, runtime: Runtime, rate: float, change: Change
) -> None:
    shop = Shop(tmp_path, runtime)
    shop.config = config(tmp_path / "logs")
    window = Window(DAY + 5 * HOUR, DAY + 6 * HOUR)
    drawn = draw(rate, rate, np.random.default_rng(3), change)
    exposures, feedback = drawn.frames(window.start)
    shop.write("logs/exposures/1.parquet", exposures)
    shop.write("logs/feedback/1.parquet", feedback)

    of_exposures, of_feedback = drawn.results(settings(tmp_path / "logs"))
    for part, check, mine in (
        ("exposures", EXPOSURE_CHECK, of_exposures),
        ("feedback", FEEDBACK_CHECK, of_feedback),
    ):
        (run,) = [one for one in shop.judge(window, part=part).runs if one.check == check]
        real, ours = named(run.results), named(mine)
        assert ours.keys() == real.keys()
        for name, result in real.items():
            got = ours[name]
            assert (got.status, got.definition, got.kind, got.samples) == (
                result.status, result.definition, result.kind, result.samples,
            ), name  # fmt: skip
            for mine_is, real_is in (
                (got.value, result.value), (got.lower, result.lower), (got.upper, result.upper),
            ):  # fmt: skip
                assert (mine_is is None) == (real_is is None), name
                assert mine_is is None or mine_is == pytest.approx(real_is, rel=1e-9, abs=1e-12), name


def test_a_change_takes_requests_clicks_and_a_scene() -> None:
    def drawn(change: Change) -> tuple[int, float, set[int]]:
        one = draw(2000.0, 2000.0, np.random.default_rng(1), change)
        return one.requests, one.clicked.sum() / one.length.sum(), set(one.scene.tolist())

    requests, rate, scenes = drawn(NO_CHANGE)
    assert drawn(Change(requests=0.5))[0] == pytest.approx(requests / 2, rel=0.1)
    assert drawn(Change(clicks=0.5))[1] == pytest.approx(rate / 2, rel=0.1)
    assert scenes - drawn(Change(lost="cart"))[2] == {list(SCENES).index("cart")}


def test_a_window_without_requests_has_counts_of_zero(tmp_path: Path) -> None:
    of_exposures, of_feedback = draw(0.0, 100.0, np.random.default_rng(1)).results(settings(tmp_path))
    counts = [one.value for one in of_exposures + of_feedback if one.metric in ("volume", "action_volume")]
    assert counts == [0.0] * 5
    assert not any(SCENE in one.labels.values() for one in of_exposures)


def test_the_log_of_a_window_lies_in_its_hour() -> None:
    exposures, feedback = draw(50.0, 50.0, np.random.default_rng(1)).frames(DAY)
    start = DAY.replace(tzinfo=None)
    for frame in (exposures, feedback):
        assert frame["ts"].min() >= start
        assert frame["ts"].max() < start + timedelta(hours=1)
