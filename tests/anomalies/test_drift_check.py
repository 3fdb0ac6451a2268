"""The check of drift on days of measured hours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from monitor.anomalies.drift_check import NAME, DriftCheck
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.settings.bands import BandSettings
from tests.anomalies.banded import HOUR, SHOP, START, hour, measured, result_of, run_of

DAY = timedelta(days=1)
HALF = DAY / 2  # long windows make the same days in less time
REQUESTS = 200_000  # a window; chance moves a share of 5 % by less than 1 % in two of them


def day(number: int) -> Window:
    return Window(START + number * DAY, START + (number + 1) * DAY)


def share_of(number: int, slope: float = 0.0, since: int = 20) -> float:
    """A failure share of a day with 1 % of noise that slides by `slope` a day."""
    noise = np.random.default_rng([3, number]).normal(0, 0.01)
    return 0.05 * (1 + noise) * (1 + slope * max(0, number - since + 1))


def put_day(
    store: Store,
    number: int,
    share: float,
    hours: int = 24,
    length: timedelta = HOUR,
    definition: str = "1",
    more: Iterable[Result] = (),
) -> None:
    failure = replace(measured("failure", share, REQUESTS, by="pv"), definition=definition)
    run = CheckRun(check="exposure", results=[failure, measured("gini", 0.6, 400), *more], outcome="ok")
    for place in range(hours * HOUR // length):
        start = START + number * DAY + place * length
        window = Window(start, start + length)
        store.record_window(
            SHOP, window, [run], fingerprint=f"{definition} {share}", rows=1, evaluated_at=window.end
        )


def judge_day(store: Store, check: DriftCheck, number: int) -> CheckRun:
    run = run_of(check, store, day(number))
    store.record_window(SHOP, day(number), [run], fingerprint="", rows=0, evaluated_at=day(number).end)
    return run


def a_check(length: timedelta = HOUR, **settings: object) -> DriftCheck:
    return DriftCheck(SHOP, NAME, BandSettings.model_validate(settings), length)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "history.db") as store:
        yield store


def days_of(store, check, values, length=HOUR):
    runs = []
    for number, value in enumerate(values):
        put_day(store, number, value, length=length)
        runs.append(judge_day(store, check, number))
    return runs


def test_a_fall_of_three_percent_a_day_is_reported_on_the_third_day(store):
    check = a_check()
    runs = days_of(store, check, [share_of(number, -0.03) for number in range(24)])
    statuses = [result_of(run, "drift", metric="failure").status for run in runs]
    assert Status.VIOLATED not in statuses[:20]
    assert statuses.index(Status.VIOLATED) <= 22
    slides = result_of(runs[23], "drift", metric="failure")
    assert slides.status is Status.VIOLATED
    assert slides.detail.startswith("fell from 0.0")
    assert runs[23].status is Status.VIOLATED
    assert (slides.bound, slides.value < slides.threshold < slides.clear) == ("min", True)
    assert result_of(runs[23], "drift", metric="gini").status is Status.OK


def slid(number: int, back: int = 99) -> float:
    """A share that falls by 3 % a day on five days, stays there, and is back later."""
    return share_of(min(number, 24) if number < back else 0, -0.03)


def test_a_drift_is_violated_until_the_level_is_back(store):
    runs = days_of(store, a_check(HALF), [slid(number, back=62) for number in range(66)], length=HALF)
    found = [result_of(run, "drift", metric="failure") for run in runs]
    first = [one.status for one in found].index(Status.VIOLATED)
    assert first <= 22
    assert {one.status for one in found[first:62]} == {Status.VIOLATED}
    assert {one.status for one in found[64:]} == {Status.OK}
    assert found[61].detail.startswith("fell from 0.05")
    assert found[61].detail.endswith(f"away for {61 - first + 1} days")
    for one in found[first:62]:
        before, now = (float(part) for part in one.detail.split(",")[0].split()[2::2])
        assert now <= 0.97 * before
    assert {result_of(run, "drift", metric="gini").status for run in runs[first:]} == {Status.OK}


def test_a_known_change_ends_a_drift(store):
    change = {"at": START + 30 * DAY, "what": "a new list", "metrics": ["failure"]}
    days_of(store, a_check(HALF), [slid(number) for number in range(30)], length=HALF)
    check = a_check(HALF, changes=[change])
    for number in range(30, 44):
        put_day(store, number, slid(number), length=HALF)
        found = result_of(judge_day(store, check, number), "drift", metric="failure")
        assert found.status is (Status.NO_DATA if number < 41 else Status.OK)


def test_a_drift_continues_over_days_without_a_judgement(store):
    check = a_check(HALF)
    days_of(store, check, [slid(number) for number in range(26)], length=HALF)
    put_day(store, 26, slid(26), hours=0, length=HALF)  # a day without a value
    assert result_of(run_of(check, store, day(25)), "drift", metric="failure").status is Status.VIOLATED
    for number in range(27, 31):
        put_day(store, number, slid(number), length=HALF)
        found = result_of(judge_day(store, check, number), "drift", metric="failure")
    assert found.status is Status.VIOLATED


def test_a_drift_at_one_hour_of_the_day_continues_at_the_next(store):
    """Judged every six hours, a day is not far enough by itself from the days that begin at its hour."""
    check = a_check()
    for number in range(24):
        put_day(store, number, share_of(number, -0.03))
        judge_day(store, check, number)
    assert result_of(run_of(check, store, day(23)), "drift", metric="failure").status is Status.VIOLATED
    put_day(store, 24, 0.955 * share_of(24))  # far less than on the day before, but not back yet
    later = [Window(START + 23 * DAY + place * 6 * HOUR, START + 24 * DAY + place * 6 * HOUR)
             for place in (1, 2, 3)]  # fmt: skip
    for number in range(2, 23):  # the days that begin at these hours
        for place in (1, 2, 3):
            moved = Window(day(number).start + place * 6 * HOUR, day(number).end + place * 6 * HOUR)
            store.record_window(
                SHOP, moved, [run_of(check, store, moved)], fingerprint="", rows=0, evaluated_at=moved.end
            )
    for one in later:
        run = run_of(check, store, one)
        store.record_window(SHOP, one, [run], fingerprint="", rows=0, evaluated_at=one.end)
        found = result_of(run, "drift", metric="failure")
        assert found.status is Status.VIOLATED
        assert found.detail.endswith("days")


def test_a_drift_lasts_since_it_began_last(store):
    def slides(number):
        return share_of(number, -0.03, since=20) if number < 24 else share_of(number, -0.03, since=34)

    runs = days_of(store, a_check(HALF), [slides(number) for number in range(40)], length=HALF)
    statuses = [result_of(run, "drift", metric="failure").status for run in runs]
    first = statuses.index(Status.VIOLATED)
    back = statuses.index(Status.OK, first)
    second = statuses.index(Status.VIOLATED, back)
    details = [result_of(run, "drift", metric="failure").detail for run in runs]
    assert second > 34
    assert details[second].endswith("over three days")
    assert details[39].endswith(f"away for {39 - second + 1} days")


def counts(number: int, requests: float = 1.0, users: float = 1.0, clicks: float = 1.0) -> list[Result]:
    """What a mean hour has on a day, with 1 % of noise that all counts share."""
    noise = 1 + np.random.default_rng([4, number]).normal(0, 0.01)
    return [
        measured("volume", 1000.0 * noise * requests, 1000, by="requests"),
        measured("volume", 800.0 * noise * users, 1000, by="users"),
        measured("top_user_share", 0.02 / noise * clicks, REQUESTS, by="top_user", event="click"),
    ]


def counted(store, made, days=25):
    """The verdicts of the last day, and their details, by metric and by."""
    check = a_check(HALF)
    for number in range(days):
        put_day(store, number, share_of(number), length=HALF, more=made(number))
        run = judge_day(store, check, number)
    drifts = [one for one in run.results if one.metric == "drift"]
    return {(one.labels["metric"], one.labels["by"]): (one.status, one.detail) for one in drifts}


def slides_to(number: int, pace: float) -> float:
    return (1 + pace) ** max(0, number - 20)


def test_what_follows_the_requests_is_no_drift_of_its_own(store):
    found = counted(
        store,
        lambda number: counts(
            number, slides_to(number, 0.06), slides_to(number, 0.05), slides_to(number, -0.06)
        ),
    )
    status, detail = found["volume", "requests"]
    assert status is Status.VIOLATED
    assert detail.startswith("rose from ")
    for one in (("volume", "users"), ("top_user_share", "top_user")):
        status, detail = found[one]
        assert status is Status.OK
        assert detail.startswith("rose" if one[0] == "volume" else "fell")
        assert detail.endswith(", as the requests rose")


def test_what_moves_much_farther_than_the_requests_drifts(store):
    found = counted(store, lambda number: counts(number, slides_to(number, 0.01), slides_to(number, 0.06)))
    assert found["volume", "users"][0] is Status.VIOLATED


def test_what_moves_against_the_requests_drifts(store):
    found = counted(
        store,
        lambda number: counts(
            number, slides_to(number, 0.06), slides_to(number, -0.06), slides_to(number, 0.06)
        ),
    )
    assert found["volume", "users"][0] is Status.VIOLATED
    assert found["top_user_share", "top_user"][0] is Status.VIOLATED


def test_without_a_count_of_the_requests_each_count_drifts_by_itself(store):
    found = counted(store, lambda number: counts(number, users=slides_to(number, 0.06))[1:])
    assert found["volume", "users"][0] is Status.VIOLATED


def test_days_of_a_season_are_no_past_of_days_outside_it(store):
    season = {"from": f"{START + 10 * DAY:%Y-%m-%d}", "to": f"{START + 19 * DAY:%Y-%m-%d}", "what": "sale"}

    def value(number):
        return share_of(number) * (1.3 if 10 <= number < 20 else 1.0)

    values = [value(number) for number in range(30)]
    check = a_check(HALF, seasons=[season])
    statuses = [
        result_of(run, "drift", metric="failure").status for run in days_of(store, check, values, HALF)
    ]
    assert Status.VIOLATED in statuses[10:20]  # days of a season are judged
    assert set(statuses[20:23]) == {Status.NO_DATA}  # one of the last four days lies in it
    assert set(statuses[23:]) == {Status.OK}


def test_a_steady_series_learns_first_and_does_not_drift(store):
    runs = days_of(store, a_check(), [share_of(number) for number in range(16)])
    first = result_of(runs[0], "drift", metric="failure")
    assert (first.status, first.detail) == (
        Status.NO_DATA,
        "0 days before can be used, and 8 are needed",
    )
    assert [run.status for run in runs] == [Status.NO_DATA] * 11 + [Status.OK] * 5
    assert result_of(runs[0], "daily", metric="failure").value == pytest.approx(share_of(0))
    assert result_of(runs[0], "daily", metric="failure").samples == 24 * REQUESTS
    assert {result_of(run, "drift", metric="failure").status for run in runs[12:]} == {Status.OK}


def test_the_first_hit_after_weeks_is_no_drift_for_a_share_or_a_count(store):
    check = a_check(HALF)
    for number in range(28):
        hits = 1.0 if number == 27 else 0.0
        put_day(store, number, hits / REQUESTS, length=HALF, more=[measured("catalog_items", hits)])
        run = judge_day(store, check, number)
    for metric in ("failure", "catalog_items"):
        found = result_of(run, "drift", metric=metric)
        assert (found.status, 0 < found.value < 2) == (Status.OK, True)


def test_a_day_with_less_than_half_of_its_hours_has_no_value(store):
    put_day(store, 0, 0.05, hours=11)
    run = judge_day(store, a_check(), 0)
    daily = result_of(run, "daily", metric="failure")
    assert (daily.status, daily.detail) == (Status.NO_DATA, "11 of the day's windows have a value")
    put_day(store, 3, 0.05, hours=1)
    daily = result_of(judge_day(store, a_check(), 3), "daily", metric="failure")
    assert daily.detail == "1 of the day's windows has a value"
    put_day(store, 1, 0.05, hours=12)
    assert result_of(judge_day(store, a_check(), 1), "daily", metric="failure").status is Status.OK


def failed_window(store: Store, window: Window) -> None:
    run = CheckRun(check="exposure", results=[], status=Status.ERROR, outcome="error")
    store.record_window(SHOP, window, [run], fingerprint="", rows=1, evaluated_at=window.end)


def test_a_day_whose_last_window_failed_has_the_values_of_its_other_windows(store):
    runs = days_of(store, a_check(HALF), [share_of(number) for number in range(14)], length=HALF)
    failed_window(store, Window(day(12).start + HALF, day(12).end))
    judged = [*runs[:12], *(judge_day(store, a_check(HALF), number) for number in (12, 13))]
    assert result_of(judged[12], "daily", metric="failure").samples == REQUESTS
    for metric in ("failure", "gini"):
        assert [result_of(run, "drift", metric=metric).status for run in judged[11:]] == [Status.OK] * 3
    failed_window(store, Window(day(13).start + HALF, day(13).end))
    failed_window(store, Window(day(13).start, day(13).start + HALF))
    assert judge_day(store, a_check(HALF), 13).results == []


def test_only_the_windows_of_the_newest_definition_count(store):
    put_day(store, 0, 0.05, length=HALF)
    put_day(store, 0, 0.04, hours=12, length=HALF, definition="0")  # the first of the two windows
    found = result_of(judge_day(store, a_check(HALF), 0), "daily", metric="failure")
    assert (found.value, found.samples) == (pytest.approx(0.05), REQUESTS)


def test_a_series_has_no_value_for_a_day_in_which_it_left_its_band(store):
    put_day(store, 0, 0.05)
    labels = {"metric": "failure", "by": "pv", "of": ""}
    out = Result(
        kind=ResultKind.BAND, metric="deviation", labels=labels, definition="1", status=Status.VIOLATED,
        value=9.0,
    )  # fmt: skip
    run = CheckRun(check="bands", results=[out])
    store.record_window(SHOP, hour(7), [run], fingerprint="7", rows=1, evaluated_at=hour(7).end)
    judged = judge_day(store, a_check(), 0)
    assert result_of(judged, "daily", metric="failure").detail == "it left its band that day"
    assert result_of(judged, "daily", metric="gini").status is Status.OK


def test_shares_are_weighted_by_samples_and_levels_are_not(store):
    for at, (share, requests, gini) in enumerate([(0.1, 100, 0.5), (0.3, 300, 0.7)] * 12):
        results = [measured("failure", share, requests, by="pv"), measured("gini", gini, requests)]
        run = CheckRun(check="exposure", results=results, outcome="ok")
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)
    judged = judge_day(store, a_check(), 0)
    assert result_of(judged, "daily", metric="failure").value == pytest.approx((0.1 * 100 + 0.3 * 300) / 400)
    assert {(one.metric, one.kind) for one in judged.results} == {
        ("daily", ResultKind.BAND),
        ("drift", ResultKind.DRIFT),
    }
    assert result_of(judged, "daily", metric="gini").value == pytest.approx(0.6)


def test_slices_and_excluded_metrics_are_left_out(store):
    results = [
        measured("failure", 0.1, 100, by="pv"),
        measured("failure", 0.1, 100, by="pv", dimension="scene", value="home"),
        measured("gini", 0.1, 100),
    ]
    for at in range(24):
        run = CheckRun(check="exposure", results=results, outcome="ok")
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)
    judged = judge_day(store, a_check(without=["gini"]), 0)
    assert [(one.metric, one.labels["metric"]) for one in judged.results] == [
        ("daily", "failure"),
        ("drift", "failure"),
    ]


def test_a_day_without_any_window_is_not_judged(store):
    run = judge_day(store, a_check(), 3)
    assert (run.results, run.status) == ([], Status.NO_DATA)


def stepped(number: int) -> float:
    return share_of(number) * (1.3 if number >= 20 else 1.0)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (None, Status.VIOLATED),
        ({"metrics": []}, Status.NO_DATA),
        ({"metrics": ["failure"]}, Status.NO_DATA),
        ({"metrics": ["gini"]}, Status.VIOLATED),
        ({"at": START + timedelta(days=40)}, Status.VIOLATED),  # not in effect yet
    ],
)
def test_the_step_of_a_known_change_is_no_drift(store, change, status):
    known = {"at": START + 20 * DAY, "what": "new home page"} | (change or {})
    check = a_check(HALF, changes=[known] if change else [])
    runs = days_of(store, check, [stepped(number) for number in range(23)], length=HALF)
    found = result_of(runs[-1], "drift", metric="failure")
    assert found.status is status
    assert result_of(runs[-1], "daily", metric="failure").status is Status.OK
    if status is Status.NO_DATA:
        assert found.detail == "0 days before can be used, and 8 are needed"


def test_a_series_is_judged_again_twelve_days_after_a_known_change(store):
    change = {"at": START + 5 * DAY + HOUR, "what": "new home page"}
    check = a_check(HALF, changes=[change])
    values = [share_of(number) * (1.3 if number >= 5 else 1.0) for number in range(18)]
    statuses = [
        result_of(run, "drift", metric="failure").status for run in days_of(store, check, values, length=HALF)
    ]
    assert statuses == [Status.NO_DATA] * 17 + [Status.OK]  # the day of the change counts for neither level


def test_holidays_are_like_sundays(store):
    def value(number):
        return share_of(number) * (0.6 if number % 7 == 6 or number >= 22 else 1.0)

    days = [f"{START + number * DAY:%Y-%m-%d}" for number in range(22, 25)]
    runs = days_of(store, a_check(HALF, holidays=days), [value(number) for number in range(25)], length=HALF)
    assert result_of(runs[-1], "drift", metric="failure").status is Status.OK
    assert result_of(judge_day(store, a_check(HALF), 24), "drift", metric="failure").status is Status.VIOLATED


def test_windows_in_maintenance_are_left_out_of_the_day(store):
    put_day(store, 0, 0.05, hours=20)
    for at in range(20, 24):
        run = CheckRun(check="exposure", results=[measured("failure", 0.9, REQUESTS, by="pv")], outcome="ok")
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)
    night = Window(hour(20).start + HOUR / 2, hour(23).end)
    quiet = run_of(a_check(), store, day(0), [night])
    assert result_of(quiet, "daily", metric="failure").value == pytest.approx(0.05)
    assert result_of(quiet, "daily", metric="failure").samples == 20 * REQUESTS
    assert result_of(run_of(a_check(), store, day(0)), "daily", metric="failure").value > 0.1
    most = run_of(a_check(), store, day(0), [Window(hour(11).start, hour(23).end)])
    assert result_of(most, "daily", metric="failure").detail == "11 of the day's windows have a value"
    assert run_of(a_check(), store, day(0), [day(0)]).status is Status.NO_DATA


def test_a_count_has_no_value_for_a_day_with_maintenance(store):
    for at in range(24):
        run = CheckRun(
            check="exposure", results=[measured("volume", 90.0 + at, 90, by="requests")], outcome="ok"
        )
        store.record_window(SHOP, hour(at), [run], fingerprint=str(at), rows=1, evaluated_at=hour(at).end)
    night = run_of(a_check(), store, day(0), [hour(2)])  # nights are quiet: the other hours have more
    assert result_of(night, "daily", metric="volume").detail == "maintenance took a part of the day"
    assert result_of(run_of(a_check(), store, day(0)), "daily", metric="volume").value == pytest.approx(101.5)


def test_days_of_another_definition_are_not_compared(store):
    days_of(store, a_check(HALF), [share_of(number) for number in range(20)], length=HALF)
    put_day(store, 20, share_of(20), length=HALF, definition="2")
    found = result_of(judge_day(store, a_check(HALF), 20), "drift", metric="failure")
    assert (found.status, found.samples) == (Status.NO_DATA, 0)
    assert result_of(judge_day(store, a_check(HALF), 20), "drift", metric="gini").status is Status.OK


def test_the_step_of_a_new_model_neither_looks_like_a_drift_nor_hides_one(store):
    """A model each week, the last of them 7 % higher and from the day before on; then it slides, or not."""
    models = ["m0", "m1", "m2", "m3"]

    def store_hour(number, slide):
        value = (
            share_of(number) * (1.07 if number >= 21 else 1.0) * 0.97 ** max(0, number - 21 if slide else 0)
        )
        model = {"dimension": "model", "value": models[number // 7]}
        volume = measured("volume", 900.0, 900, by="requests", **model)
        put_day(store, number, value, length=HALF, more=[volume])

    check, blind = a_check(HALF), a_check(HALF)
    blind._traffic = lambda _store, starts, _quiet: (np.full(len(starts), np.nan), [-1] * len(starts))
    for number in range(25):
        store_hour(number, slide=False)
        judge_day(store, check, number)
    assert result_of(run_of(check, store, day(24)), "drift", metric="failure").status is Status.OK
    for number in range(22, 25):
        store_hour(number, slide=True)
        judge_day(store, check, number)
    hidden = result_of(run_of(blind, store, day(24)), "drift", metric="failure")
    seen = result_of(run_of(check, store, day(24)), "drift", metric="failure")
    assert abs(hidden.value) < 2
    assert seen.value < -3
