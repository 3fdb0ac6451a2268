"""The seasonal filter forecasts what is usual, sees what is not, and forgets no level step for weeks."""

import copy

import numpy as np
import pytest

from benchmarks.real_traffic.seasonal_filter import SPANS, Judgement, SeasonalFilter
from monitor.statistics.bands.scales import Scale

HOURS, WEEK = 24, 168
UNKNOWN = np.nan


def shop(weeks: int, requests: float, series: int, seed: int = 1) -> np.ndarray:
    """Poisson requests with the shape of a day and of a week: windows x series."""
    hour = np.arange(weeks * WEEK)
    mean = requests * (1 - 0.7 * np.cos(2 * np.pi * (hour % HOURS - 3) / HOURS))
    mean *= np.where(hour // HOURS % 7 >= 5, 1.2, 1.0)
    return np.random.default_rng(seed).poisson(mean[:, None], (len(hour), series)).astype(float)


def play(
    values: np.ndarray, scale: Scale = Scale.COUNT, samples: float = UNKNOWN
) -> tuple[SeasonalFilter, list[Judgement]]:
    model = SeasonalFilter([scale] * values.shape[1], HOURS)
    judgements = []
    for hour, row in enumerate(values):
        many = np.full(values.shape[1], samples)
        judgements.append(model.judge(row, many, hour % HOURS, hour // HOURS % 7))
        model.learn()
    return model, judgements


def deviations(judgements: list[Judgement], first: int) -> np.ndarray:
    """Windows x spans x series."""
    return np.array([one.deviations for one in judgements[first:]])


def test_one_slot_a_day_by_hand() -> None:
    model = SeasonalFilter([Scale.LEVEL], slots=1)
    first = model.judge([10.0], [UNKNOWN], 0, 0)
    model.learn()
    second = model.judge([10.5], [UNKNOWN], 0, 1)
    assert first.expected.tolist() == [10.0]
    assert second.expected.tolist() == [10.0]
    # The residual is 0.5, and so is the sd: nothing else is known of the noise yet.
    assert second.error[0] == pytest.approx(1)


def test_a_steady_shop_stays_within_five_standard_deviations() -> None:
    found = deviations(play(shop(7, 1000, 60))[1], 4 * WEEK)
    assert np.isfinite(found).all()
    assert (np.abs(found) > 5).mean() < 1e-5
    assert np.median(np.abs(found)) > 0.4  # 0.67 of an exact sd: the bands are not far too wide


@pytest.mark.parametrize(
    ("requests", "part", "windows", "least"),
    [(10_000, 0.5, 2, 0.99), (10_000, 0.7, 3, 0.95), (300, 0.5, 4, 0.99), (300, 0.7, 6, 0.95)],
)
def test_a_loss_is_seen_within_hours_although_the_level_has_moved(requests, part, windows, least) -> None:
    values = shop(6, requests, 100)
    begin = 5 * WEEK + 2 * HOURS + 13
    values[begin - 9 * HOURS :] = np.round(values[begin - 9 * HOURS :] * 0.75)  # nine days ago, and for good
    values[begin:] = np.round(values[begin:] * part)
    judged = deviations(play(values[: begin + windows])[1], begin)
    assert (judged[:, 1:].min(axis=(0, 1)) < -4.3).mean() >= least


def test_a_level_that_moved_is_expected_after_ten_days() -> None:
    values = shop(7, 5000, 20)
    step = 5 * WEEK
    values[step:] *= 0.7
    judgements = play(values)[1]
    expected = np.array([one.expected for one in judgements[step + 10 * HOURS :]])
    assert np.median(expected / values[step + 10 * HOURS :]) == pytest.approx(1, abs=0.05)


def test_a_single_wild_window_moves_no_longer_span_out_and_is_forgotten() -> None:
    values = shop(6, 5000, 20)
    wild = 5 * WEEK + 12
    values[wild] *= 6
    judgements = play(values)[1]
    assert (judgements[wild].deviations[0] > 20).all()
    after = deviations(judgements, wild)[: 2 * HOURS]
    assert (np.abs(after[:, 1:]) < 5).all()
    usual = np.array([one.expected for one in play(shop(6, 5000, 20))[1]])
    now = np.array([one.expected for one in judgements])
    assert np.abs(now / usual - 1)[wild + 1 : wild + HOURS].max() < 0.1


def test_a_series_is_judged_alike_alone_and_beside_others() -> None:
    values = shop(3, 500, 5)
    values[50:60, 2] = np.nan
    together = np.array([one.deviations for one in play(values)[1]])
    for number in range(5):
        alone = np.array([one.deviations for one in play(values[:, [number]])[1]])
        np.testing.assert_allclose(alone[:, :, 0], together[:, :, number], rtol=1e-9, atol=1e-9)


def test_a_missing_window_has_no_deviation_and_teaches_nothing() -> None:
    values = shop(3, 500, 1)
    model, _ = play(values)
    nothing = model.judge([np.nan], [UNKNOWN], 0, 0)
    model.learn()
    assert np.isnan(nothing.deviations[0]).all()
    assert np.isfinite(model.judge([500.0], [UNKNOWN], 1, 0).error).all()


def test_what_may_not_be_learned_moves_no_expected_value() -> None:
    taught, _ = play(shop(5, 1000, 1))
    untaught, alone = copy.deepcopy(taught), copy.deepcopy(taught)
    for hour in range(HOURS):
        for model in (taught, untaught):
            model.judge([100.0], [UNKNOWN], hour, 0)
        taught.learn()
        untaught.learn(allowed=False)
    low = taught.judge([1000.0], [UNKNOWN], 0, 1).expected[0]
    usual = untaught.judge([1000.0], [UNKNOWN], 0, 1).expected[0]
    assert low < 0.9 * usual
    assert usual == pytest.approx(alone.judge([1000.0], [UNKNOWN], 0, 1).expected[0], rel=0.05)


def test_a_share_of_few_samples_has_a_wide_band() -> None:
    rng = np.random.default_rng(3)
    many, few = (
        play(rng.binomial(n, 0.1, (4 * WEEK, 1)) / n, Scale.SHARE, samples=n)[0] for n in (10_000, 100)
    )
    halved = [model.judge([0.05], [n], 0, 0).error[0] for model, n in ((many, 10_000.0), (few, 100.0))]
    assert halved[0] < -15
    assert -3 < halved[1] < -1


def test_the_spans_appear_as_the_windows_come() -> None:
    judgements = play(shop(1, 100, 1)[:30])[1]
    known = [int(np.isfinite(one.deviations[:, 0]).sum()) for one in judgements]
    assert known[:3] == [1, 2, 3]
    assert known[-1] == len(SPANS)


@pytest.mark.parametrize(("values", "samples"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0])])
def test_arguments_of_another_length_are_refused(values, samples) -> None:
    with pytest.raises(ValueError, match="2 series"):
        SeasonalFilter([Scale.COUNT] * 2, HOURS).judge(values, samples, 0, 0)


def test_learning_without_a_judgement_is_refused() -> None:
    with pytest.raises(ValueError, match="judge a window"):
        SeasonalFilter([Scale.COUNT], HOURS).learn()
