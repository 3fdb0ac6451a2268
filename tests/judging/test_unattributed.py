"""Actions that join no list are a violation with its reason, and healthy logs are none; as `check` judges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from monitor.cli.judge import judge
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED
from monitor.core.results import Result, Status
from monitor.metrics.catalogue import SPECS
from monitor.metrics.feedback.attribution_health import ATTRIBUTION, LOST

START = datetime(2026, 3, 1)
DAYS = 2


def logs(
    folder: Path,
    *,
    shift: float = 0,
    delay: float = 120,
    requests: int = 3000,
    users: int = 400,
    seed: int = 1,
):
    """Two days of lists of five items and the clicks on them, whose clock is wrong by `shift` hours."""
    draw = np.random.default_rng(seed)
    user = draw.integers(0, users, requests)
    at = pd.Timestamp(START) + pd.to_timedelta(draw.integers(0, DAYS * 86_400, requests), unit="s")
    five = [np.repeat(one, 5) for one in (np.arange(requests), user, at)]
    shown = pd.DataFrame({"request_id": five[0], "user_id": five[1], "ts": five[2]})
    shown["user_id"] = "User" + shown.user_id.astype(str)
    shown["item_id"] = "item" + pd.Series(draw.integers(0, 300, len(shown))).astype(str)
    acted = shown[draw.random(len(shown)) < 0.05][["user_id", "item_id", "ts"]].copy()
    late = draw.exponential(delay, len(acted)) + 3600 * shift
    acted["ts"] += pd.to_timedelta(late.astype("int64"), unit="s")
    acted["event"] = "click"
    return shown, acted


OTHERS = [name for name in SPECS if name not in (LOST.name, ATTRIBUTION.name)]


def check(
    folder: Path,
    shown: pd.DataFrame,
    acted: pd.DataFrame,
    code: int | None = None,
    disable: Sequence[str] = OTHERS,
    **settings,
) -> list[Result]:
    """The results on `unattributed`, a window each, and that the command ended with this code."""
    settings["metrics"] = {"disable": list(disable), **settings.get("metrics", {})}
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in (("exposures", shown), ("feedback", acted)):
        frame.sort_values("ts").to_parquet(folder / f"{name}.parquet", index=False)
    shop = {
        "name": "shop",
        "window": "1d",
        "logs": {name: {"path": f"{name}.parquet"} for name in ("exposures", "feedback")},
        **settings,
    }
    config = folder / "monitor.yaml"
    config.write_text(yaml.safe_dump({"state": str(folder / "state"), "recommenders": [shop]}))
    found, ended = judge(config, None, None, None)
    if code is not None:
        assert ended == code
    return [one.result for one in found if one.result.metric == "unattributed"]


@pytest.mark.parametrize(("shift", "said", "zone"), [(8, "-8 h", "UTC+8"), (-5.5, "+5:30 h", "UTC-5:30")])
def test_a_wrong_time_zone_is_a_violation_that_names_the_shift(tmp_path, shift, said, zone):
    found = check(tmp_path, *logs(tmp_path, shift=shift), VIOLATED)
    assert {one.status for one in found} == {Status.VIOLATED}
    for one in found:
        assert one.threshold == 0.7
        assert f"shifted by {said}, 100% would join" in one.detail
        assert f"correct logs.feedback.timezone (a zone of {zone})" in one.detail


def test_a_wrong_time_zone_is_found_where_every_user_has_a_list_at_any_time(tmp_path):
    found = check(tmp_path, *logs(tmp_path, shift=8, users=12), VIOLATED)
    assert {one.status for one in found} == {Status.VIOLATED}
    for one in found:
        assert one.value < 0.2, "nearly every action joins a list, by chance"
        assert "actions join no list that showed their item" in one.detail
        assert "shifted by -8 h, 100% would join the item that was shown" in one.detail
    assert (
        check(tmp_path / "off", *logs(tmp_path, shift=8, users=12), metrics={"max_unattributed": None})[
            0
        ].status
        is Status.OK
    )


def test_a_wrong_time_zone_is_found_without_the_metric_attribution(tmp_path):
    without = [*OTHERS, ATTRIBUTION.name]
    found = check(tmp_path, *logs(tmp_path, shift=8, users=12), VIOLATED, disable=without)
    assert {one.status for one in found} == {Status.VIOLATED}
    healthy = check(tmp_path / "healthy", *logs(tmp_path, users=12), OK, disable=without)
    assert {one.status for one in healthy} == {Status.OK}


def test_actions_of_busy_users_that_start_elsewhere_are_no_violation(tmp_path):
    shown, acted = logs(tmp_path, users=12)
    acted["item_id"] = "found" + acted.item_id
    found = check(tmp_path, shown, acted, OK)
    assert {one.status for one in found} == {Status.OK}


def test_the_suggested_timezone_ends_the_violation(tmp_path):
    shown, acted = logs(tmp_path, shift=8)
    there = {"exposures": {"path": "exposures.parquet"}}
    there["feedback"] = {"path": "feedback.parquet", "timezone": "Asia/Singapore"}
    found = check(tmp_path, shown, acted, OK, logs=there)
    assert {one.status for one in found} == {Status.OK}
    assert max(one.value for one in found) < 0.05


def test_a_healthy_log_is_ok_from_its_first_window_on(tmp_path):
    found = check(tmp_path, *logs(tmp_path), OK, disable=())
    assert [one.status for one in found] == [Status.OK, Status.OK]
    assert [(one.threshold, one.bound) for one in found] == [(0.7, "max")] * 2


def test_ids_in_another_case_are_named(tmp_path):
    shown, acted = logs(tmp_path)
    acted["user_id"] = acted.user_id.str.upper()
    found = check(tmp_path, shown, acted, VIOLATED)
    assert "the user ids differ in case or in blanks" in found[0].detail
    assert "no time shift of up to 14 h helps" in found[0].detail


def test_ids_of_another_system_are_named(tmp_path):
    shown, acted = logs(tmp_path)
    acted["user_id"] = "c-" + acted.user_id
    found = check(tmp_path, shown, acted, VIOLATED)
    assert (
        "0% of the actions have a user of the exposures: the user ids may be of another type"
        in found[0].detail
    )


def test_an_attribution_that_is_too_short_is_named(tmp_path):
    found = check(tmp_path, *logs(tmp_path, delay=3 * 3600), VIOLATED, metrics={"attribution": "5m"})
    assert "come later than metrics.attribution (5m)" in found[0].detail
    assert "raise metrics.attribution" in found[0].detail


def test_actions_that_start_elsewhere_are_reported_as_such(tmp_path):
    shown, acted = logs(tmp_path)
    acted["item_id"] = np.random.default_rng(2).permutation(acted.item_id)
    acted["ts"] = pd.Timestamp(START) + pd.to_timedelta(
        np.random.default_rng(3).integers(0, DAYS * 86_400, len(acted)), unit="s"
    )
    found = check(tmp_path, shown, acted, VIOLATED)
    assert "the actions may start elsewhere (search, another scene)" in found[0].detail


def test_half_of_the_actions_from_a_search_box_are_no_violation(tmp_path):
    shown, acted = logs(tmp_path)
    other = acted.copy()
    other["user_id"] = "visitor" + pd.Series(range(len(other)), index=other.index).astype(str)
    found = check(tmp_path, shown, pd.concat([acted, other]), OK)
    assert all(0.4 < one.value < 0.6 for one in found)


def test_the_bound_can_be_set_and_switched_off(tmp_path):
    shown, acted = logs(tmp_path)
    other = pd.concat([acted.assign(user_id="visitor" + acted.user_id + str(i)) for i in range(3)])
    both = pd.concat([acted, other])
    assert check(tmp_path / "a", shown, both, VIOLATED)[0].threshold == 0.7
    assert check(tmp_path / "b", shown, both, OK, metrics={"max_unattributed": 0.9})[0].threshold == 0.9
    without = check(tmp_path / "c", shown, both, NOT_JUDGED, metrics={"max_unattributed": None})
    assert without[0].threshold is None


def test_a_small_bound_is_not_rounded(tmp_path):
    shown, acted = logs(tmp_path)
    acted.loc[acted.index[::6], "user_id"] = "visitor" + acted.item_id + acted.ts.astype(str)
    found = check(tmp_path, shown, acted, VIOLATED, metrics={"max_unattributed": 0.065})
    assert "metrics.max_unattributed allows 6.5%" in found[0].detail


def test_an_objective_of_the_team_replaces_the_bound_and_gets_the_reason(tmp_path):
    objectives = [{"metric": "unattributed", "max": 0.95}]
    found = check(tmp_path / "a", *logs(tmp_path, shift=8), OK, objectives=objectives)
    assert [one.threshold for one in found] == [0.95, 0.95]
    strict = [{"metric": "unattributed", "max": 0.1}]
    found = check(tmp_path / "b", *logs(tmp_path, shift=8), VIOLATED, objectives=strict)
    assert "shifted by -8 h" in found[0].detail


def test_a_window_without_actions_is_undefined_and_no_violation(tmp_path):
    shown, acted = logs(tmp_path)
    acted = acted[acted.ts >= START + timedelta(days=1, hours=1)]
    found = check(tmp_path, shown, acted, OK)
    assert [one.status for one in found] == [Status.UNDEFINED, Status.OK]


def test_four_lost_actions_prove_nothing(tmp_path):
    shown, acted = logs(tmp_path)
    few = acted[acted.ts >= START + timedelta(hours=2)].head(4).assign(user_id=["w", "x", "y", "z"])
    found = check(tmp_path, shown, few, OK)
    assert (found[0].value, found[0].status) == (1.0, Status.OK)


def test_one_busy_machine_that_no_list_was_shown_to_is_no_violation(tmp_path):
    shown, acted = logs(tmp_path)
    robot = pd.concat([acted.assign(user_id="robot")] * 9)
    found = check(tmp_path, shown, pd.concat([acted, robot]), OK)
    assert found[0].value > 0.85


def test_actions_on_lists_from_before_the_log_begins_are_no_violation(tmp_path):
    shown, acted = logs(tmp_path)
    begin = START + timedelta(hours=23)
    shown = shown[shown.ts >= begin]
    found = check(tmp_path / "a", shown, acted, OK)
    assert found[0].value > 0.8  # 23 hours of actions whose lists are not in the log
    # Of a log whose last minutes alone are there, nothing can be said.
    shown = shown[shown.ts >= START + timedelta(hours=23, minutes=40)]
    assert check(tmp_path / "b", shown, acted, OK)[0].status is Status.UNDEFINED


@pytest.mark.parametrize("name", ["ebnerd", "obd"])
def test_the_public_logs_raise_no_alarm(tmp_path, shared, name):
    frames = [
        pd.read_csv(shared / "data" / name / f"{log}.csv.gz", parse_dates=["ts"])
        for log in ("exposures", "feedback")
    ]
    found = check(tmp_path, *frames, disable=())
    judged = [one for one in found if one.value is not None]
    assert judged
    assert {one.status for one in judged} <= {Status.OK, Status.LATE}
    assert max(one.value for one in judged) < 0.2
