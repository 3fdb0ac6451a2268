"""The check of an experiment's split, on windows of logs and on simulated experiments of known truth."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Status
from monitor.experiments import split_check as experiments
from monitor.experiments.split_check import Split
from monitor.metrics.catalogue import SPECS
from monitor.settings.experiments import ExperimentSettings
from tests.shop import Shop, hour, one

EXPERIMENT: dict[str, Any] = {"name": "rank", "split": {"old": 1, "new": 1}}


def log(number: int, users: pd.DataFrame) -> pd.DataFrame:
    """One list of one item for each row of users, in the hour of this number."""
    ts = hour(number).start.replace(tzinfo=None) + timedelta(minutes=1)
    ids = {"request_id": [f"{number}-{i}" for i in range(len(users))], "ts": ts, "item_id": "x"}
    return users.reset_index(drop=True).assign(**ids)


def people(
    count: int, arms: str | list[str] | None = None, prefix: str = "u", **columns: Any
) -> pd.DataFrame:
    """So many users, in turn in each arm unless told."""
    arm = [("old", "new")[i % 2] for i in range(count)] if arms is None else arms
    return pd.DataFrame({"user_id": [f"{prefix}{i}" for i in range(count)], "arm": arm, **columns})


def prepared(shop: Shop, *hours: pd.DataFrame, **changes: Any) -> Shop:
    shop.config |= {"experiments": [EXPERIMENT | changes], "metrics": {"disable": sorted(SPECS)}}
    for number, users in enumerate(hours):
        shop.write(f"logs/{number}.parquet", log(number, users))
    return shop


def users_of(results: Any, experiment: str = "rank") -> dict[str, float | None]:
    return {
        r.labels["arm"]: r.value
        for r in results.results
        if r.metric == "experiment_users" and r.labels["experiment"] == experiment
    }


def p_of(results: Any, by: str = "anytime") -> Any:
    return one(results, "experiment_split_p_value", experiment="rank", by=by)


def test_without_experiments_the_check_does_not_run(shop: Shop) -> None:
    shop.write("logs/0.parquet", log(0, people(4)))
    assert experiments.NAME not in {run.check for run in shop.judge(hour(0)).runs}


def test_a_user_counts_once_over_all_windows(shop: Shop) -> None:
    prepared(shop, people(10), people(20), people(6, prefix="v"))
    assert [run.check for run in shop.judge(hour(0)).runs].count(experiments.NAME) == 1
    assert users_of(shop.judge(hour(1))) == {"old": 10, "new": 10}
    last = shop.judge(hour(2))
    assert users_of(last) == {"old": 13, "new": 13}
    share = one(last, "experiment_share", experiment="rank", arm="old")
    assert (share.value, share.samples) == (0.5, 26)
    assert share.lower < 0.5 < share.upper
    assert (p_of(last).value, p_of(last).status, p_of(last).threshold) == (1.0, Status.OK, 0.001)
    assert p_of(last, "chi_square").value == 1.0
    assert p_of(last, "chi_square").threshold is None


@pytest.mark.parametrize("column", ["arm", "variant"])  # a column that the monitor knows, and another one
def test_numeric_arms_are_the_same_in_windows_with_and_without_gaps(shop: Shop, column: str) -> None:
    whole = people(10, [i % 2 for i in range(10)]).rename(columns={"arm": column})
    gaps = whole.copy()
    gaps[column] = gaps[column].astype(float).where(gaps.user_id != "u9")  # as pandas reads a missing arm
    prepared(shop, whole, gaps, column=column, split={"0": 1, "1": 1})
    for number in range(2):
        judged = shop.judge(hour(number))
        assert users_of(judged) == {"0": 5, "1": 5}
        assert one(judged, "experiment_unknown_arm_users", experiment="rank").value == 0
        assert one(judged, "experiment_mixed_users", experiment="rank").value == 0


def test_the_order_of_judging_makes_no_difference(another_shop: Any) -> None:
    found = []
    random = np.random.default_rng(5)
    hours = [
        people(60, [str(a) for a in random.choice(["old", "new"], 60, p=[0.8, 0.2])], prefix=f"{n % 3}-")
        for n in range(6)
    ]
    for name, order in (("quiet", range(6)), ("back", reversed(range(6))), ("newest", [5, 5, 2, 2])):
        shop = prepared(another_shop(name), *hours)
        judged = {n: shop.judge(hour(n)) for n in order}
        found.append(
            {
                n: [run.results for run in one.runs if run.check == experiments.NAME]
                for n, one in judged.items()
            }
        )
    assert found[0] == found[1]
    assert all(found[2][n] == found[0][n] for n in (2, 5))


def test_a_lost_arm_is_violated_and_stays_so(shop: Shop) -> None:
    prepared(shop, people(200, ["old"] * 200), people(200, ["new"] * 200, prefix="v"))
    first = p_of(shop.judge(hour(0)))
    assert (first.status, first.bound, first.samples) == (Status.VIOLATED, "min", 200)
    assert "'old' has 200 users, 100.0000% instead of 50.0000%; 'new' has 0" in first.detail
    second = shop.judge(hour(1))  # as many in each by now, but it was broken on the way
    assert p_of(second).value == first.value < 1e-6
    assert p_of(second, "chi_square").value == 1.0


def test_late_rows_count_once_when_a_window_is_judged_again(shop: Shop) -> None:
    prepared(shop, people(10), people(10))
    shop.judge(hour(0))
    assert users_of(shop.judge(hour(1))) == {"old": 5, "new": 5}
    shop.write("logs/late.parquet", log(0, people(4, prefix="late")))
    assert users_of(shop.judge(hour(0))) == {"old": 7, "new": 7}
    assert users_of(shop.judge(hour(0))) == {"old": 7, "new": 7}
    assert users_of(shop.judge(hour(1))) == {"old": 7, "new": 7}
    (shop.folder / "logs/late.parquet").unlink()
    shop.judge(hour(0))
    assert users_of(shop.judge(hour(1))) == {"old": 5, "new": 5}


def test_stored_users_outlive_their_log(shop: Shop) -> None:
    prepared(shop, people(10), people(4, prefix="v"))
    shop.judge(hour(0))
    (shop.folder / "logs/0.parquet").unlink()
    assert users_of(shop.judge(hour(1))) == {"old": 7, "new": 7}


def test_users_in_two_arms_are_counted_and_left_out(shop: Shop) -> None:
    moved = people(4, ["new", "old", "new", "old"])
    prepared(shop, people(10), moved)
    first, second = shop.judge(hour(0)), shop.judge(hour(1))
    assert one(first, "experiment_mixed_users", experiment="rank").value == 0
    mixed = one(second, "experiment_mixed_users", experiment="rank")
    assert (mixed.value, mixed.samples, mixed.status) == (4, 10, Status.OK)
    assert users_of(second) == {"old": 3, "new": 3}


def test_unnamed_arms_break_the_split(shop: Shop) -> None:
    strange = 'it\'s "<script>"\n\u202e' + 60 * "x"
    prepared(shop, people(10), people(3, [strange, "third", "third"], prefix="s"))
    assert one(shop.judge(hour(0)), "experiment_unknown_arm_users", experiment="rank").status is Status.OK
    found = one(shop.judge(hour(1)), "experiment_unknown_arm_users", experiment="rank")
    assert (found.status, found.value, found.threshold, found.bound) == (Status.VIOLATED, 3, 0, "max")
    assert found.detail.startswith("the largest: 'third' 2, ")
    assert found.detail.isprintable()
    assert len(found.detail) < 120


def test_an_empty_arm_is_violated_and_not_an_error(shop: Shop) -> None:
    found = prepared(shop, people(300, ["old"] * 300)).judge(hour(0))
    assert users_of(found) == {"old": 300, "new": 0}
    assert p_of(found).status is Status.VIOLATED
    share = one(found, "experiment_share", experiment="rank", arm="new")
    assert (share.value, share.lower) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("users", "why"),
    [
        (people(4, [None] * 4), "no user of the experiment was seen"),
        (people(4).assign(user_id=None), "no user of the experiment was seen"),
        (people(4).drop(columns="arm"), "the exposures have no column 'arm'"),
    ],
    ids=["no arm", "no user", "no column"],
)
def test_an_experiment_without_users_is_no_data(shop: Shop, users: pd.DataFrame, why: str) -> None:
    found = [r for r in prepared(shop, users).judge(hour(0)).results if r.metric.startswith("experiment_")]
    assert {(r.status, r.detail, r.value) for r in found} == {(Status.NO_DATA, why, None)}
    assert len(found) == 8


def test_a_window_without_rows_is_no_data(shop: Shop) -> None:
    prepared(shop, people(10))
    shop.judge(hour(0))
    empty = p_of(shop.judge(hour(1)))
    assert (empty.status, empty.detail) == (Status.NO_DATA, "the window holds no exposures")


def test_users_count_from_the_first_window_that_begins_at_the_start_or_later(shop: Shop) -> None:
    prepared(shop, people(10), people(4, prefix="v"), people(2, prefix="w"), start="2026-03-01T00:30:00Z")
    before = p_of(shop.judge(hour(0)))
    assert (before.status, before.detail) == (Status.NO_DATA, "the experiment begins at 2026-03-01 01:00:00Z")
    assert users_of(shop.judge(hour(2))) == {"old": 3, "new": 3}


def test_users_seen_only_before_the_start_do_not_count(shop: Shop) -> None:
    prepared(shop, people(10, ["old"] * 10), people(10, ["new"] * 10), start=hour(1).start)
    assert users_of(shop.judge(hour(1))) == {"old": 0, "new": 10}  # nor are they mixed


def test_only_the_anytime_test_is_judged_and_by_alpha(shop: Shop) -> None:
    shop = prepared(shop, people(300, ["old"] * 130 + ["new"] * 170), alpha=0.3)
    found = shop.judge(hour(0))
    assert p_of(found, "chi_square").value < 0.03
    assert p_of(found, "chi_square").status is Status.OK
    assert (p_of(found).threshold, p_of(found).status) == (0.3, Status.OK)  # too few users to be sure


def test_a_late_window_keeps_its_values(shop: Shop) -> None:
    prepared(shop, people(10))
    found = p_of(shop.judge(hour(0), "the log has stopped"))
    assert (found.status, found.value, found.detail) == (Status.LATE, 1.0, "the log has stopped")


def test_a_changed_split_changes_the_definition(another_shop: Any) -> None:
    definitions = set()
    for name, changes in (("a", {}), ("b", {"split": {"old": 9, "new": 1}}), ("c", {"start": hour(0).start})):
        shop = prepared(another_shop(name), people(10), **changes)
        definitions.add(p_of(shop.judge(hour(0))).definition)
    assert len(definitions) == 3
    assert "1;column=arm;split=old:1,new:1" in definitions


def test_a_numeric_arm_is_read_as_text(shop: Shop) -> None:
    prepared(shop, people(4, [0, 1, 0, 1]), people(4, ["0", "1", "0", "1"]), split={"0": 1, "1": 1})
    shop.judge(hour(0))
    assert users_of(shop.judge(hour(1))) == {"0": 2, "1": 2}


def split(counts: list[int], **fields: Any) -> Split:
    given = {"users": sum(counts), "mixed": 0, "unknown": 0, "names": "", "anytime": 1.0, "chi_square": None}
    return Split(ExperimentSettings.model_validate(EXPERIMENT), tuple(counts), **(given | fields))


def test_a_split_says_why_it_is_broken() -> None:
    assert split([5, 5]).broken is None
    assert split([5, 5], mixed=3).broken is None
    assert "anytime-valid p = 1e-05, below 0.001" in (split([50, 5], anytime=1e-5).broken or "")
    assert "2 of 10 users were in arms that it does not name ('c' 2)" in (
        split([5, 5], unknown=2, names="'c' 2").broken or ""
    )
