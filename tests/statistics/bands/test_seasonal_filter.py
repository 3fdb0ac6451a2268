"""The seasonal filter forecasts what is usual, sees what is not, and forgets no level step for weeks."""

from __future__ import annotations

import numpy as np
import pytest

from monitor.statistics.bands.scales import Scale, sampling_sd, smallest_sd
from monitor.statistics.bands.seasonal_filter import Forecast, Moment, SeasonalFilter
from monitor.statistics.bands.spans import LONGEST, SPANS
from tests.statistics.bands.band_worlds import noise

HOURS, WEEK = 24, 168
UNKNOWN = np.nan


def moment(window: int, slots: int = HOURS, is_holiday: bool = False) -> Moment:
    """The first window is that of a Monday's midnight."""
    return Moment(window % slots, window // slots % 7, is_holiday)


def shop(weeks: int, requests: float, series: int, seed: int = 1, slots: int = HOURS) -> np.ndarray:
    """Poisson requests with the shape of a day and of a week: windows x series."""
    window = np.arange(weeks * 7 * slots)
    mean = requests * (1 - 0.7 * np.cos(2 * np.pi * (window % slots / slots - 1 / 8)))
    mean *= np.where(window // slots % 7 >= 5, 1.2, 1.0)
    return np.random.default_rng(seed).poisson(mean[:, None], (len(window), series)).astype(float)


def play(
    values: np.ndarray, scale: Scale = Scale.COUNT, samples: float = UNKNOWN, slots: int = HOURS
) -> tuple[SeasonalFilter, list[Forecast]]:
    """Judge and learn every window."""
    model = SeasonalFilter(slots)
    model.add_series([scale] * values.shape[1])
    forecasts = []
    for window, row in enumerate(values):
        forecasts.append(model.judge(row, np.full(values.shape[1], samples), moment(window, slots)))
        model.learn()
    return model, forecasts


def spans(forecasts: list[Forecast]) -> np.ndarray:
    """Windows x spans x series."""
    return np.array([one.deviations for one in forecasts])


def known_spans(forecast: Forecast) -> int:
    return int(np.isfinite(forecast.deviations[:, 0]).sum())


def flat(days: int, series: int = 1) -> np.ndarray:
    """A level of 100 that alternates by 2 from hour to hour: nothing of its noise lasts."""
    return np.tile(100 + 2.0 * (-1) ** np.arange(HOURS * days + 1), (series, 1)).T[: HOURS * days]


def test_one_slot_a_day_by_hand() -> None:
    model = SeasonalFilter(slots=1)
    model.add_series([Scale.LEVEL])
    first = model.judge([10.0], [UNKNOWN], Moment(0, 0))
    model.learn()
    second = model.judge([10.5], [UNKNOWN], Moment(0, 1))
    model.learn()
    third = model.judge([10.5], [UNKNOWN], Moment(0, 2))
    assert first.expected.tolist() == [10.0]
    assert second.expected.tolist() == [10.0]
    # The residual is 0.5, and so is the sd: nothing else is known of the noise yet.
    assert second.sd[0] == pytest.approx(0.5)
    assert second.deviations[0, 0] == pytest.approx(1)
    # The level moves by a quarter of 0.5, the profile of working days by a half: it is the mean of two days.
    assert third.expected[0] == pytest.approx(10.0 + 0.5 / 4 + 0.5 / 2)


def test_a_steady_shop_stays_within_five_standard_deviations() -> None:
    found = spans(play(shop(7, 1000, 60))[1])[4 * WEEK :]
    assert np.isfinite(found).all()
    assert (np.abs(found) > 5).mean() < 1e-5
    assert np.median(np.abs(found)) > 0.4  # 0.67 of an exact sd: the bands are not far too wide


@pytest.mark.parametrize("slots", [1, 288])
def test_days_and_windows_of_five_minutes_have_bands(slots: int) -> None:
    weeks, first = (30, 8 * 7) if slots == 1 else (3, 2 * 7 * slots)
    values = shop(weeks, 1000, 10, slots=slots)
    values[-1] *= 0.5
    forecasts = play(values, slots=slots)[1]
    found = spans(forecasts[first:])
    assert np.isfinite(found).all()
    assert (np.abs(found[:-1]) > 5.5).mean() < 1e-4
    assert (found[-1, 0] < -8).all()


def test_a_filter_without_series_can_be_asked() -> None:
    model = SeasonalFilter(HOURS)
    for hour in range(3):
        forecast = model.judge([], [], moment(hour))
        model.skip(2)
        model.learn()
    assert forecast.deviations.shape == (len(SPANS), 0)
    assert forecast.expected.shape == forecast.usual.shape == (0,)


@pytest.mark.parametrize(
    ("requests", "part", "windows", "least"),
    [(10_000, 0.5, 2, 0.95), (10_000, 0.7, 3, 0.98), (300, 0.5, 4, 0.99), (300, 0.7, 6, 0.91)],
)
def test_a_loss_is_seen_within_hours_although_the_level_has_moved(
    requests: float, part: float, windows: int, least: float
) -> None:
    values = shop(6, requests, 500)  # in 1,000 other series: 96, 99.5, 100 and 92.5 %
    begin = 5 * WEEK + 2 * HOURS + 13
    values[begin - 9 * HOURS :] = np.round(values[begin - 9 * HOURS :] * 0.75)  # nine days ago, and for good
    values[begin:] = np.round(values[begin:] * part)
    judged = spans(play(values[: begin + windows])[1])[begin:]
    assert (judged[:, 1:].min(axis=(0, 1)) < -4.3).mean() >= least


def test_a_level_that_moved_is_expected_after_ten_days() -> None:
    values = shop(7, 5000, 20)
    step = 5 * WEEK
    values[step:] *= 0.7
    forecasts = play(values)[1]
    expected = np.array([one.expected for one in forecasts[step + 10 * HOURS :]])
    assert np.median(expected / values[step + 10 * HOURS :]) == pytest.approx(1, abs=0.05)


def test_a_single_wild_window_moves_no_longer_span_out_and_is_forgotten() -> None:
    values = shop(6, 5000, 20)
    wild = 5 * WEEK + 12
    values[wild] *= 6
    forecasts = play(values)[1]
    assert (forecasts[wild].deviations[0] > 20).all()
    after = spans(forecasts)[wild : wild + 2 * HOURS]
    assert (np.abs(after[:, 1:]) < 5).all()
    found = forecasts[wild]
    times_of_two = (found.actual / found.planned)[1]
    assert (times_of_two > 3).all()  # the sentence and the floor have the window in full
    usual = np.array([one.expected for one in play(shop(6, 5000, 20))[1]])
    now = np.array([one.expected for one in forecasts])
    assert np.abs(now / usual - 1)[wild + 1 : wild + HOURS].max() < 0.1


def test_a_wild_first_day_does_not_decide() -> None:
    values = shop(2, 5000, 20)
    values[:HOURS] *= 6
    expected = np.array([one.expected for one in play(values)[1]])
    usual = np.array([one.expected for one in play(shop(2, 5000, 20))[1]])
    assert np.median((expected / usual)[4 * HOURS : 5 * HOURS]) < 2
    assert np.median((expected / usual)[11 * HOURS : 12 * HOURS]) < 1.25


def test_a_kind_of_day_that_was_not_seen_yet_has_a_wide_band() -> None:
    model, _ = play(shop(1, 1000, 1)[: 5 * HOURS])  # Monday to Friday
    saturday = model.judge([500.0], [UNKNOWN], Moment(0, 5))
    monday = model.judge([500.0], [UNKNOWN], Moment(0, 0))
    assert saturday.sd[0] > 15 > 4 * monday.sd[0]
    assert monday.deviations[0, 0] < -2 * abs(saturday.deviations[0, 0])
    # Until then it is like a working day.
    assert saturday.expected == pytest.approx(monday.expected, rel=0.02)


def test_a_holiday_has_a_wide_band_and_teaches_nothing_but_the_memory() -> None:
    values = 100 + 5 * noise(np.random.default_rng(5), (5 * WEEK, 1), serial=0.9)
    taught, untaught, holiday = (play(values, Scale.LEVEL)[0] for _ in range(3))
    usual = taught.judge([75.0], [UNKNOWN], Moment(0, 6))
    wide = holiday.judge([75.0], [UNKNOWN], Moment(0, 6, is_holiday=True))
    assert wide.sd == pytest.approx(2 * usual.sd)
    assert wide.expected.tolist() == usual.expected.tolist()
    for hour in range(HOURS):
        for model, is_holiday in ((taught, False), (untaught, False), (holiday, True)):
            model.judge([85.0], [UNKNOWN], Moment(hour, 6, is_holiday))
            model.learn(allowed=model is not untaught)
    # What the last hours of the holiday share is still there an hour later, and is over after some days.
    now = [model.judge([100.0], [UNKNOWN], Moment(0, 0)).expected[0] for model in (untaught, holiday)]
    assert now[1] < now[0] - 5
    for model in (taught, untaught, holiday):
        model.skip(40 * HOURS)
    low, *same = (model.judge([100.0], [UNKNOWN], Moment(5, 6)) for model in (taught, untaught, holiday))
    assert same[0].expected == pytest.approx(same[1].expected, rel=1e-9)
    assert same[0].sd == pytest.approx(same[1].sd, rel=1e-9)
    assert low.expected[0] < same[0].expected[0] - 1


def test_between_two_profiles_everything_is_expected_and_most_of_the_difference_is_learned() -> None:
    counts, shares = Scale.COUNT, Scale.SHARE
    model = SeasonalFilter(slots=1)
    model.add_series([counts, counts, shares, shares])
    steady = np.array([False, True, False, True])
    working, sunday = np.array([1000.0, 1000.0, 0.5, 0.5]), np.array([500.0, 500.0, 0.3, 0.3])
    samples = np.array([UNKNOWN, UNKNOWN, 1e6, 1e6])
    between = np.array([700.0, 700.0, 0.38, 0.38])

    def judged(values: np.ndarray, weekday: int, or_weekday: int | None = None) -> Forecast:
        return model.judge(values, samples, Moment(0, weekday, or_weekday=or_weekday), steady=steady)

    for day in range(42):
        chance = 1 + 0.02 * (-1) ** (day // 7 % 2)
        judged((sunday if day % 7 >= 5 else working) * chance, day % 7)
        model.learn()
    spread = model._spread.copy()
    found = judged(between, 0, or_weekday=6)
    assert np.abs(found.deviations[0]).max() < 0.01
    assert found.expected == pytest.approx(between, rel=0.01)
    assert np.abs(judged(between, 0).deviations[0]).min() > 4
    below = judged(0.6 * sunday, 0, or_weekday=6)
    assert below.deviations[0].max() < -4
    judged(between, 0, or_weekday=6)
    model.learn()
    np.testing.assert_equal(model._spread, spread)
    after = judged(working, 0).expected
    # A day moves its profile by 0.5 here, that of its weekday by 0.22 x 0.5 and the level by 0.2: by 0.81.
    assert after[:2] == pytest.approx(1000 * 0.7**0.81, rel=0.02)  # counts are judged by their logarithm
    assert after[2] == pytest.approx(0.5 - 0.81 * 0.12, abs=0.01)
    assert after[3] > 0.5 - 0.51 * 0.12  # what follows the requests learns no more than on other days


def test_a_series_is_judged_alike_alone_and_beside_others() -> None:
    values = shop(3, 500, 5)
    values[50:60, 2] = np.nan
    together = spans(play(values)[1])
    for number in range(5):
        alone = spans(play(values[:, [number]])[1])
        np.testing.assert_allclose(alone[:, :, 0], together[:, :, number], rtol=1e-9, atol=1e-9)


def test_a_series_that_comes_later_is_judged_as_if_it_were_alone() -> None:
    values = shop(2, 500, 2)
    model = SeasonalFilter(HOURS)
    model.add_series([Scale.COUNT])
    for hour in range(HOURS):
        model.judge(values[hour, :1], [UNKNOWN], moment(hour))
        model.learn()
    model.add_series([Scale.COUNT])
    late = []
    for hour in range(HOURS, 2 * WEEK):
        late.append(model.judge(values[hour], [UNKNOWN] * 2, moment(hour)).deviations[:, 1])
        model.learn()
    alone = SeasonalFilter(HOURS)
    alone.add_series([Scale.COUNT])
    for hour in range(HOURS, 2 * WEEK):
        forecast = alone.judge(values[hour, 1:], [UNKNOWN], moment(hour))
        alone.learn()
        np.testing.assert_allclose(late[hour - HOURS], forecast.deviations[:, 0], rtol=1e-9)


def test_a_missing_window_has_no_deviation_and_teaches_nothing() -> None:
    model, _ = play(shop(3, 500, 1))
    other = model.copy()
    nothing = model.judge([np.nan], [UNKNOWN], moment(0))
    model.learn()
    other.judge([500.0], [UNKNOWN], moment(0))
    other.learn(allowed=False)
    assert np.isnan(nothing.deviations).all()
    assert np.isfinite(nothing.expected).all()
    next_one, same = (one.judge([500.0], [UNKNOWN], moment(1)) for one in (model, other))
    assert np.isfinite(next_one.deviations[0]).all()
    assert np.isnan(next_one.deviations[1:]).all()
    assert next_one.expected.tolist() == same.expected.tolist()


def test_a_gap_is_as_if_its_windows_had_no_value() -> None:
    values = 100 + 5 * noise(np.random.default_rng(6), (4 * WEEK, 3), serial=0.8)
    skipped, _ = play(values, Scale.LEVEL)
    unmeasured, level = skipped.copy(), skipped.copy()
    begin = len(values)
    before = level.judge([100.0] * 3, [UNKNOWN] * 3, moment(begin))
    skipped.skip(5)
    for window in range(begin, begin + 5):
        unmeasured.judge([np.nan] * 3, [UNKNOWN] * 3, moment(window))
        unmeasured.learn()
    for window in range(begin + 5, begin + 20):
        found, same = (one.judge([100.0] * 3, [UNKNOWN] * 3, moment(window)) for one in (skipped, unmeasured))
        np.testing.assert_allclose(found.deviations, same.deviations, rtol=1e-9)
        windows = window - begin - 4
        assert known_spans(found) == sum(span <= windows for span in SPANS)
        for one in (skipped, unmeasured):
            one.learn(allowed=False)
        if windows == 1:
            assert (found.sd > 1.2 * before.sd).all()  # what lasted is forgotten


def test_a_gap_forgets_what_lasted() -> None:
    values = 100 + 5 * noise(np.random.default_rng(7), (4 * WEEK, 20), serial=0.9)
    values[-6:] = 95
    model, _ = play(values, Scale.LEVEL)
    soon, late = model.copy(), model.copy()
    late.skip(2 * WEEK)
    now, then = (one.judge([100.0] * 20, [UNKNOWN] * 20, moment(0)).expected for one in (soon, late))
    assert np.median(now) < 98
    assert np.median(then) > np.median(now) + 1


def test_skipping_more_than_the_longest_span_leaves_none_of_it() -> None:
    model, _ = play(shop(2, 500, 2))
    model.skip(10 * LONGEST)
    forecast = model.judge([300.0, 300.0], [UNKNOWN] * 2, moment(0))
    assert np.isfinite(forecast.deviations[0]).all()
    assert np.isnan(forecast.deviations[1:]).all()


@pytest.mark.parametrize("before_learning", [True, False])
def test_the_longer_spans_begin_anew_after_the_last_windows_are_forgotten(before_learning: bool) -> None:
    """An incident is over: its windows are in no span any more, but all that was learned stays."""
    model, _ = play(flat(21, 2), Scale.LEVEL)
    kept = model.copy()
    start = 21 * HOURS
    for one in (model, kept):
        one.judge([100.0] * 2, [UNKNOWN] * 2, moment(start))
        if one is model and before_learning:
            one.forget_last([True, False])
        one.learn()
        if one is model and not before_learning:
            one.forget_last([True, False])
    now, usual = (one.judge([100.0] * 2, [UNKNOWN] * 2, moment(start + 1)) for one in (model, kept))
    assert np.isfinite(now.deviations[:, 0]).sum() == 2  # the window of that moment begins the new spans
    assert np.isfinite(now.deviations[:, 1]).all()
    assert now.expected.tolist() == usual.expected.tolist()
    assert now.sd.tolist() == usual.sd.tolist()


def test_a_series_that_begins_anew_is_like_a_new_one_and_keeps_its_scale() -> None:
    values = shop(3, 500, 2)
    model, _ = play(values)
    other = model.copy()
    model.begin_anew([True, False])
    fresh = SeasonalFilter(HOURS)
    fresh.add_series([Scale.COUNT])
    assert model.windows.tolist() == [0.0, 3.0 * WEEK]
    assert model.scales.tolist() == [Scale.COUNT] * 2
    for hour in range(2 * HOURS):
        row = values[hour]
        found = model.judge(row, [UNKNOWN] * 2, moment(hour))
        again = fresh.judge(row[:1], [UNKNOWN], moment(hour))
        unmoved = other.judge(row, [UNKNOWN] * 2, moment(hour))
        np.testing.assert_allclose(found.deviations[:, 0], again.deviations[:, 0], rtol=1e-9)
        np.testing.assert_allclose(found.deviations[:, 1], unmoved.deviations[:, 1], rtol=1e-9)
        for one in (model, fresh, other):
            one.learn()


def test_what_may_not_be_learned_moves_no_expected_value() -> None:
    taught, _ = play(shop(5, 1000, 1))
    untaught, alone = taught.copy(), taught.copy()
    for hour in range(HOURS):
        for model in (taught, untaught):
            model.judge([100.0], [UNKNOWN], Moment(hour, 0))
        taught.learn()
        untaught.learn(allowed=False)
    low = taught.judge([1000.0], [UNKNOWN], Moment(0, 1)).expected[0]
    usual = untaught.judge([1000.0], [UNKNOWN], Moment(0, 1)).expected[0]
    assert low < 0.95 * usual
    assert usual == pytest.approx(alone.judge([1000.0], [UNKNOWN], Moment(0, 1)).expected[0], rel=0.05)


def test_only_the_series_that_may_learn_do() -> None:
    model, _ = play(shop(3, 1000, 2))
    before = model.windows.copy()
    model.judge([500.0, 500.0], [UNKNOWN] * 2, moment(0))
    model.learn([True, False])
    assert (model.windows - before).tolist() == [1.0, 0.0]


def test_the_memory_follows_a_shift_only_after_three_suspect_windows() -> None:
    values = 100 + 5 * noise(np.random.default_rng(8), (5 * WEEK, 30), serial=0.9)
    model, _ = play(values, Scale.LEVEL)
    usual = model.copy()
    gap = []
    for window in range(5 * WEEK, 5 * WEEK + 5):
        here = model.judge(np.full(30, 70.0), np.full(30, UNKNOWN), moment(window))
        there = usual.judge(np.full(30, np.nan), np.full(30, UNKNOWN), moment(window))
        gap.append(np.median(here.expected - there.expected))
        model.learn()
        usual.learn()
    assert min(gap[:4]) > -1
    assert gap[4] < -3


def test_a_share_of_few_samples_has_a_wide_band() -> None:
    rng = np.random.default_rng(3)
    many, few = (
        play(rng.binomial(n, 0.1, (4 * WEEK, 1)) / n, Scale.SHARE, samples=n)[0] for n in (10_000, 100)
    )
    halved = [
        model.judge([0.05], [n], moment(0)).deviations[0, 0] for model, n in ((many, 10_000.0), (few, 100.0))
    ]
    assert halved[0] < -15
    assert -3 < halved[1] < -1


def test_a_level_of_fewer_samples_than_usual_is_wider_by_the_root() -> None:
    model, _ = play(flat(21), Scale.LEVEL, samples=100.0)
    usual, few, more, unknown = (
        model.judge([90.0], [samples], moment(0)) for samples in (100.0, 24.625, 900.0, UNKNOWN)
    )
    assert few.sd == pytest.approx(2 * usual.sd)  # 100.5 / 25.125 = 4
    assert few.deviations == pytest.approx(
        np.where(np.array(SPANS)[:, None] == 1, few.means / few.sd, few.deviations)
    )
    assert more.sd.tolist() == unknown.sd.tolist() == usual.sd.tolist()
    assert unknown.samples == pytest.approx([100.0])


def test_a_share_of_fewer_samples_than_usual_has_their_chance_on_top() -> None:
    rng = np.random.default_rng(4)
    values = rng.binomial(400, 0.1, (4 * WEEK, 1)) / 400
    model, _ = play(values, Scale.SHARE, samples=400.0)
    usual, few = (model.judge([0.1], [samples], moment(0)) for samples in (400.0, 40.0))
    chance = [float(sampling_sd(np.array([n]), np.array([Scale.SHARE]))[0]) for n in (400.0, 40.0)]
    # The wider of what was learned and the window's own chance, and the difference of both chances on top.
    assert few.sd[0] == pytest.approx(
        np.hypot(max(usual.sd[0], chance[1]), np.sqrt(chance[1] ** 2 - chance[0] ** 2))
    )


def test_samples_of_counts_mean_nothing() -> None:
    model, _ = play(shop(3, 500, 1), samples=500.0)
    usual, few = (model.judge([300.0], [samples], moment(0)) for samples in (500.0, 5.0))
    assert few.sd.tolist() == usual.sd.tolist()


def test_the_mean_of_a_span_weighs_its_windows_by_their_precision() -> None:
    model, _ = play(flat(21), Scale.LEVEL, samples=100.0)
    first = model.judge([94.0], [24.625], moment(0))
    model.learn(allowed=False)
    second = model.judge([99.0], [100.0], moment(1))
    weight = np.array([first.sd[0], second.sd[0]]) ** -2.0
    assert weight[1] == pytest.approx(4 * weight[0], rel=0.15)
    away = np.array([first.means[0, 0], second.means[0, 0]])
    assert second.means[1, 0] == pytest.approx(weight @ away / weight.sum())


def test_what_is_usual_ignores_what_the_windows_before_were_like() -> None:
    values = 100 + 5 * noise(np.random.default_rng(9), (5 * WEEK, 20), serial=0.9)
    model, _ = play(values, Scale.LEVEL)
    for window in range(4 * LONGEST):
        forecast = model.judge(np.full(20, 85.0), np.full(20, UNKNOWN), moment(window))
        model.learn()
    # The windows before were as low, so they were planned; but usual they are not.
    assert np.median(forecast.actual[-1]) == pytest.approx(85)
    assert np.median(forecast.planned[-1]) < 90 < np.median(forecast.usual)


def test_a_known_standard_error_of_a_level_is_the_least_sd() -> None:
    model = SeasonalFilter(HOURS)
    model.add_series([Scale.LEVEL, Scale.LEVEL, Scale.COUNT])
    for hour in range(2 * WEEK):
        model.judge([100.0] * 3, [UNKNOWN] * 3, moment(hour))
        model.learn()
    plain = model.judge([110.0] * 3, [UNKNOWN] * 3, moment(0))
    known = model.judge([110.0] * 3, [UNKNOWN] * 3, moment(0), errors=[5.0, np.nan, 5.0])
    assert known.sd.tolist() == [5.0, *plain.sd[1:].tolist()]
    assert known.deviations[0, 0] == pytest.approx(2.0)


def test_a_series_that_never_moved_is_not_judged_on_dust() -> None:
    model, _ = play(np.full((3 * WEEK, 1), 50.0), Scale.LEVEL)
    forecast = model.judge([50.4], [UNKNOWN], moment(0))
    assert forecast.sd == pytest.approx(smallest_sd(np.array([50.0]), np.array([Scale.LEVEL])))
    assert forecast.deviations[0] == pytest.approx([0.8])


def test_the_spans_appear_as_the_windows_come() -> None:
    known = [known_spans(one) for one in play(shop(1, 100, 1)[:30])[1]]
    assert known[:12] == [1, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5]
    assert known[-1] == len(SPANS)


@pytest.mark.parametrize(("values", "samples"), [([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0])])
def test_arguments_of_another_length_are_refused(values: list[float], samples: list[float]) -> None:
    model = SeasonalFilter(HOURS)
    model.add_series([Scale.COUNT] * 2)
    with pytest.raises(ValueError, match="2 series"):
        model.judge(values, samples, moment(0))


def test_learning_twice_or_without_a_judgement_is_refused() -> None:
    model = SeasonalFilter(HOURS)
    model.add_series([Scale.COUNT])
    with pytest.raises(ValueError, match="judge a window"):
        model.learn()
    model.judge([1.0], [UNKNOWN], moment(0))
    model.learn()
    with pytest.raises(ValueError, match="judge a window"):
        model.learn()


def test_a_longer_span_is_no_surer_than_all_its_samples_together() -> None:
    """After a quiet morning a noon has many samples, but the half-day before it few."""
    model, hours = SeasonalFilter(HOURS), 3 * WEEK + 14
    model.add_series([Scale.SHARE])
    many = 100.0 * 1.3 ** np.minimum(np.arange(hours) % HOURS, 12)  # 100 at midnight, 2,330 at noon
    for window, samples in enumerate(many):
        value = 0.05 * (0.8 if window >= hours - 12 else 1.0)
        forecast = model.judge([value], [samples], moment(window))
        model.learn(allowed=window < hours - 12)
    together = 0.5 / np.sqrt(np.sum(many[-LONGEST:] + 0.5))
    assert together > 1.2 * 0.5 / np.sqrt(LONGEST * many[-1])
    shift = forecast.means[-1, 0]
    assert shift == pytest.approx(np.arcsin(np.sqrt(0.04)) - np.arcsin(np.sqrt(0.05)), rel=0.1)
    assert forecast.deviations[-1, 0] == pytest.approx(shift / together, rel=0.02)


def test_lists_that_another_night_brings_for_a_whole_day_are_no_anomaly_of_the_morning() -> None:
    """Each midnight moves a level. Three windows are not remembered, so those after them know no better."""
    rng = np.random.default_rng(3)
    luck = rng.normal(0, 0.025, (22, 60))
    luck[-1] = -3.5 * 0.025
    values = np.exp(np.repeat(luck, HOURS, axis=0) + rng.normal(0, 0.004, (22 * HOURS, 60)))
    found = np.abs(spans(play(values, Scale.LEVEL)[1]))
    assert found[-HOURS:].max() < 6.5
    assert found[-8 * HOURS : -HOURS].max() < 6.0


@pytest.mark.parametrize(("is_out", "gap", "expected"), [(False, 0, 50), (True, 0, 85), (False, 9, 85)])
def test_a_level_is_remembered_in_full_after_three_windows_in_a_row_in_the_band(
    is_out: bool, gap: int, expected: float
) -> None:
    """Half is gone. Where that is out of the band, or hours lie between, the filter follows slowly."""
    rng = np.random.default_rng(5)
    steps = rng.normal(0, 1.2, (3 * WEEK, 20))
    values = np.zeros_like(steps)
    for window, step in enumerate(steps):
        values[window] = 0.8 * values[window - 1] + step
    model, _ = play(100 + values, Scale.LEVEL)
    for lost in range(4):
        if lost == 2:
            model.skip(gap)
        window = moment(3 * WEEK + lost + gap * (lost >= 2))
        model.judge(np.full(20, 50.0), np.full(20, UNKNOWN), window)
        model.learn(True, 0, is_out)
    forecast = model.judge(np.full(20, 50.0), np.full(20, UNKNOWN), moment(3 * WEEK + 4 + gap))
    assert np.median(forecast.expected) == pytest.approx(expected, abs=15)


@pytest.mark.parametrize("begins", [0, 10, 15])
def test_a_loss_that_begins_at_any_hour_shows_in_its_second_window(begins: int) -> None:
    rng = np.random.default_rng(4)
    luck = np.repeat(rng.normal(0, 0.003, (22, 60)), HOURS, axis=0)
    values = np.exp(luck + rng.normal(0, 0.008, luck.shape))
    at = 20 * HOURS + begins
    values[at:] *= 0.8
    found = np.abs(spans(play(values, Scale.LEVEL)[1]))
    assert np.mean(found[at + 1].max(axis=0) > 6.5) > 0.95
