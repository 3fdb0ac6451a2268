from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from monitor.simulate.traffic import Batch, Simulator, Traffic

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
END = START + timedelta(minutes=5)


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(Traffic(), seed=7)


@pytest.fixture(scope="module")
def batch(simulator: Simulator) -> Batch:
    return simulator.batch(START, END, 20.0, np.random.default_rng(7))


@pytest.fixture(scope="module")
def shown(batch: Batch) -> pd.DataFrame:
    frame = batch.exposures.to_pandas()
    return frame[frame.item_id.notna()]


def test_the_same_seed_gives_the_same_rows_and_another_seed_gives_others(batch: Batch) -> None:
    again = Simulator(Traffic(), seed=7).batch(START, END, 20.0, np.random.default_rng(7))
    other = Simulator(Traffic(), seed=7).batch(START, END, 20.0, np.random.default_rng(8))
    assert again.exposures.equals(batch.exposures)
    assert again.feedback.equals(batch.feedback)
    assert not other.exposures.equals(batch.exposures)


def test_the_number_of_requests_is_about_rate_times_seconds(batch: Batch) -> None:
    frame = batch.exposures.to_pandas()
    assert frame.request_id.nunique() == pytest.approx(20 * 300, rel=0.05)
    assert frame.ts.min() >= pd.Timestamp("2026-03-01 12:00")
    assert frame.ts.max() < pd.Timestamp("2026-03-01 12:05")


def test_lists_hold_distinct_items_with_falling_scores_and_positions_from_one(shown: pd.DataFrame) -> None:
    assert shown.groupby("request_id").item_id.nunique().eq(10).all()
    assert shown.groupby("request_id").position.apply(list).map(lambda p: p == list(range(1, 11))).all()
    assert shown.score.between(0, 1, inclusive="neither").all()
    assert (shown.groupby("request_id").score.diff().dropna() < 0).all()


def test_a_request_that_returned_nothing_is_one_row_without_item_position_and_score(batch: Batch) -> None:
    frame = batch.exposures.to_pandas()
    empty = frame[frame.item_id.isna()]
    assert len(empty) == pytest.approx(0.005 * 6000, rel=0.6)
    assert empty[["position", "score"]].isna().all(axis=None)
    assert (frame[frame.request_id.isin(empty.request_id)].groupby("request_id").size() == 1).all()


def test_nothing_is_shown_that_is_blacklisted_expired_or_not_yet_available(
    simulator: Simulator, shown: pd.DataFrame
) -> None:
    catalog = simulator.catalog().to_pandas()
    merged = shown.merge(catalog, on="item_id", how="left")
    assert (merged.available_from <= merged.ts).all()
    assert (merged.available_until.isna() | (merged.available_until > merged.ts)).all()
    assert not shown.item_id.isin(simulator.blacklist).any()
    assert catalog.available_until.notna().sum() == 10
    assert len(simulator.blacklist) == 5


def test_a_leak_is_exactly_one_exposure_of_a_blacklisted_item(simulator: Simulator) -> None:
    for rate in (20.0, 0.0):
        rng = np.random.default_rng(1)
        leaked = simulator.batch(START, START + timedelta(seconds=2), rate, rng, blacklisted=True)
        frame = leaked.exposures.to_pandas()
        assert frame.item_id.isin(simulator.blacklist).sum() == 1
        assert not frame[frame.item_id.notna()].duplicated(["request_id", "item_id"]).any()


def test_few_items_and_users_take_much_of_the_traffic(shown: pd.DataFrame) -> None:
    items = shown.item_id.value_counts(normalize=True)
    assert items.head(40).sum() > 0.25
    users = shown.groupby("user_id").request_id.nunique().sort_values(ascending=False)
    assert users.head(500).sum() / users.sum() > 0.3


def test_users_with_different_tastes_see_different_categories(
    simulator: Simulator, shown: pd.DataFrame
) -> None:
    merged = shown.merge(simulator.catalog().to_pandas(), on="item_id")
    users = shown.user_id.value_counts().head(30).index
    shares = pd.crosstab(merged.user_id, merged.category, normalize="index").loc[users]
    assert shares.std().mean() > 0.05


def test_clicks_follow_exposures_and_fall_with_position(batch: Batch, shown: pd.DataFrame) -> None:
    clicks = batch.feedback.to_pandas()
    merged = clicks.merge(shown, on=["request_id", "user_id", "item_id"], suffixes=("", "_shown"))
    assert len(merged) == len(clicks) > 500
    assert (merged.ts >= merged.ts_shown).all()
    assert merged.ts.max() < pd.Timestamp("2026-03-01 12:05")
    by_position = merged.position.value_counts()
    assert by_position[1] > 2 * by_position[5] > 2 * by_position[10]


def test_settings_that_cannot_fill_a_list_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fill a list"):
        Traffic(items=25, length=10)
    with pytest.raises(ValueError, match="one share"):
        Traffic(scenes=("home",))
    old = Simulator(Traffic(), seed=1)
    with pytest.raises(ValueError, match="items are available"):
        old.batch(
            datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC), 1, np.random.default_rng(1)
        )
