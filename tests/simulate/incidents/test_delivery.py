"""What the pipeline of the logs does to the files."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pandas as pd
import pyarrow as pa
import pytest

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.delivery import of_hash
from monitor.simulate.incidents.struck import Struck
from tests.simulate.incidents.conftest import SHOP, SINCE


def rows(files, log="exposures"):
    return pd.concat([one.table.to_pandas() for one in files if one.log == log], ignore_index=True)


def arrivals(files):
    return {(one.log, one.name): one.arrives for one in files}


def others_unchanged(files, healthy):
    told = [[one for one in each if one.log != "exposures"] for each in (files, healthy.files(SINCE))]
    return len(told[0]) == len(told[1]) and all(
        (first.name, first.arrives) == (second.name, second.arrives) and first.table.equals(second.table)
        for first, second in zip(*told, strict=True)
    )


@pytest.mark.parametrize(("size", "hours"), [("small", 1), ("middle", 3), ("large", 12)])
def test_delayed_files_arrive_when_the_pipeline_runs_again(size, hours, healthy, strike):
    struck = strike("log_stops", size)
    again = SINCE + timedelta(hours=hours)
    for at in (SINCE, SINCE + timedelta(hours=hours - 1), again):
        planned, found = arrivals(healthy.files(at)), arrivals(struck.files(at))
        assert found == {name: max(moment, again) for name, moment in planned.items()}
    held = set()
    for at in (SINCE - timedelta(hours=before) for before in range(1, 4)):
        planned, found = arrivals(healthy.files(at)), arrivals(struck.files(at))
        assert found == {
            name: again if SINCE <= moment < again else moment for name, moment in planned.items()
        }
        held |= {log for log, name in found if found[log, name] != planned[log, name]}
    assert held == {"exposures", "feedback", "samples", "search", "visits"}
    assert rows(struck.files(SINCE)).equals(rows(healthy.files(SINCE)))


@pytest.mark.parametrize(("size", "minutes"), [("small", 5), ("middle", 60), ("large", 240)])
def test_every_file_of_the_exposures_is_late(size, minutes, healthy, strike):
    files = strike("log_slows", size).files(SINCE)
    for (log, name), moment in arrivals(healthy.files(SINCE)).items():
        late = timedelta(minutes=minutes) if log == "exposures" else timedelta(0)
        assert arrivals(files)[log, name] == moment + late
    assert [one.arrives for one in files] == sorted(one.arrives for one in files)
    hour_before = SINCE - timedelta(hours=1)
    before = strike("log_slows", size).files(hour_before)
    late = {
        name: found - arrivals(healthy.files(hour_before))[name] for name, found in arrivals(before).items()
    }
    slow = {(one.log, one.name) for one in before if late[one.log, one.name]}
    assert {late[name] for name in slow} == {timedelta(minutes=minutes)}
    assert slow == {max(name for name in late if name[0] == "exposures")}


@pytest.mark.parametrize(("size", "share"), [("small", 0.3), ("middle", 0.6), ("large", 1.0)])
def test_the_given_share_of_requests_is_doubled(size, share, healthy, strike):
    files = strike("log_doubles", size).files(SINCE)
    before, found = rows(healthy.files(SINCE)), rows(files)
    assert found.drop_duplicates(ignore_index=True).equals(before)
    times = found.groupby("request_id").size() / before.groupby("request_id").size()
    assert set(times) <= {1.0, 2.0}
    assert (times == 2.0).mean() == pytest.approx(share, abs=0.05)
    assert others_unchanged(files, healthy)


@pytest.mark.parametrize(("size", "share"), [("small", 0.1), ("middle", 0.3), ("large", 0.7)])
def test_the_given_share_of_requests_is_missing_with_all_rows(size, share, healthy, strike):
    files = strike("log_loses", size).files(SINCE)
    before, found = rows(healthy.files(SINCE)), rows(files)
    kept = before.request_id.isin(found.request_id)
    assert before[kept].reset_index(drop=True).equals(found)
    assert 1 - found.request_id.nunique() / before.request_id.nunique() == pytest.approx(share, abs=0.05)
    assert others_unchanged(files, healthy)


@pytest.mark.parametrize(("size", "share"), [("small", 0.2), ("middle", 0.6), ("large", 1.0)])
def test_only_the_second_largest_scene_loses_requests(size, share, healthy, strike):
    files = strike("log_loses_scene", size).files(SINCE)
    before, found = (
        each.groupby("scene").request_id.nunique() for each in (rows(healthy.files(SINCE)), rows(files))
    )
    lost = 1 - found.reindex(before.index, fill_value=0) / before
    assert lost["detail"] == pytest.approx(share, abs=0.08)
    assert (lost["home"], lost["search"]) == (0, 0)
    assert others_unchanged(files, healthy)


def test_a_world_with_one_scene_loses_requests_of_it(healthy):
    alone = type(healthy)(replace(SHOP, scenes=SHOP.scenes[:1]))
    struck = Struck(alone, INCIDENTS["log_loses_scene"], 1.0, SINCE)
    assert {len(one.table) for one in struck.files(SINCE) if one.log == "exposures"} == {0}


@pytest.mark.parametrize(("size", "minutes"), [("small", 3), ("middle", 20), ("large", 180)])
def test_a_tenth_of_the_requests_has_a_clock_that_is_ahead(size, minutes, healthy, strike):
    files = strike("clock_skew", size).files(SINCE)
    before, found = rows(healthy.files(SINCE)), rows(files)
    ahead = found.ts - before.ts
    assert set(ahead) == {pd.Timedelta(0), pd.Timedelta(minutes=minutes)}
    skewed = ahead > pd.Timedelta(0)
    assert skewed.groupby(before.request_id).mean().isin((0.0, 1.0)).all()
    assert skewed.groupby(before.request_id).first().mean() == pytest.approx(0.1, abs=0.03)
    assert found.drop(columns="ts").equals(before.drop(columns="ts"))
    assert others_unchanged(files, healthy)


def test_a_file_that_is_delivered_twice_still_holds_the_same_rows(healthy):
    doubled = next(
        moment
        for moment in (SHOP.start + timedelta(hours=hour) for hour in range(168))
        if any(one.name.startswith("copy-") for one in healthy.files(moment))
    )
    for name in ("log_doubles", "log_loses", "log_loses_scene", "clock_skew"):
        files = Struck(healthy, INCIDENTS[name], INCIDENTS[name].sizes["middle"], SHOP.start).files(doubled)
        copy = next(one for one in files if one.name.startswith("copy-"))
        first = next(one for one in files if f"copy-{one.name}" == copy.name)
        keys = ["request_id", "position"]
        assert len(first.table) > 0
        assert (
            first.table.to_pandas()
            .sort_values(keys, ignore_index=True)
            .equals(copy.table.to_pandas().sort_values(keys, ignore_index=True))
        )


def test_a_request_is_picked_by_its_id_and_the_seed():
    ids = pa.chunked_array([["a", "b"], ["a", None, "c"]])
    some = [of_hash(ids, 0.5, seed).tolist() for seed in range(40)]
    assert all(one[0] == one[2] and not one[3] for one in some)
    assert 5 < sum(one[0] for one in some) < 35
    assert of_hash(pa.chunked_array([], pa.string()), 0.5, 1).tolist() == []
    narrow, wide = of_hash(ids, 0.3, 7), of_hash(ids, 0.9, 7)
    assert (wide | ~narrow).all()
