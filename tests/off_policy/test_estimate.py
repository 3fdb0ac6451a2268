"""The engine's sums against arrays: the same estimates, the same faults, the same reasons."""

from __future__ import annotations

import io
import math
import textwrap

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from examples import off_policy as shop
from monitor.cli.estimate import Asked, estimated
from monitor.core.results import Status
from monitor.report.off_policy import print_estimates
from monitor.statistics.off_policy import (
    Rows,
    clipped_ips,
    importance_weights,
    ips,
    ips_by_position,
    overlap,
    self_normalised_ips,
    unsupported_share,
)
from tests.conftest import ROOT
from tests.off_policy.conftest import START, write

CELL = ["position", "item_id"]


def asked(**further):
    options = {"recommender": "logged", "target": "wanted", "column": None, "event": None, "cap": 2.0}
    return Asked(**{**options, "context": (), "first": None, "last": None, **further})


def by_name(judged):
    return {one.result.labels["by"]: one.result for one in judged}


def expected(logs, *, column=False, event="click", cap=2.0):
    """The same with arrays: overlap, estimates by name."""
    log = logs.logged
    if column:
        q = log["own"].to_numpy()
        missing = None
    else:
        counted = logs.wanted.groupby(CELL).size()
        shares = counted / counted.groupby("position").transform("sum")
        q = shares.reindex(pd.MultiIndex.from_frame(log[CELL])).fillna(0.0).to_numpy()
    weights = importance_weights(q, [math.nan if p is None else p for p in log["propensity"]])
    usable = weights.usable
    if not column:
        wanted = shares.unstack(fill_value=0.0)
        places = log[usable].groupby(CELL).size().unstack(fill_value=0)
        places = places.reindex(index=wanted.index, columns=wanted.columns, fill_value=0)
        missing = unsupported_share(wanted, places, places.sum(axis=1))
    done = logs.feedback[logs.feedback["event"] == event]
    pairs = set(zip(done["request_id"], done["item_id"], strict=True))
    reward = [pair in pairs for pair in zip(log["request_id"], log["item_id"], strict=True)]
    units = pd.factorize(log["user_id"].fillna(log["request_id"]))[0]
    found = overlap(weights, units, unsupported=missing)
    rows = Rows.of(weights.values[usable], np.array(reward)[usable], units[usable])
    lists = pd.factorize(log["request_id"])[0]
    whole = usable & ~np.isin(lists, lists[~usable])
    rows_of_whole = Rows.of(weights.values[whole], np.array(reward)[whole], units[whole])
    return found, {
        "logged": ips(Rows.of(np.ones(usable.sum()), rows.rewards, rows.units)),
        "ips": ips(rows),
        "clipped_ips": clipped_ips(rows, cap),
        "self_normalised_ips": self_normalised_ips(rows),
        "ips_by_position": ips_by_position(rows_of_whole, lists[whole]),
    }


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("further", [{}, {"event": "order"}, {"column": "own", "target": None}])
def test_the_engine_gives_the_estimates_of_the_arrays(logs_of, seed, further):
    logs = logs_of(seed)
    judged, code = estimated(logs.config, asked(**further))
    found = by_name(judged)
    lap, values = expected(logs, column="column" in further, event=further.get("event", "click"))
    assert code == 0
    assert found["rows_without_weight"].value == lap.left_out == 16
    assert found["effective_sample_size"].value == pytest.approx(lap.effective)
    assert found["largest_weight"].value == pytest.approx(lap.largest)
    assert found["mean_weight"].value == pytest.approx(lap.mean.value)
    assert found["unsupported"].value == pytest.approx(lap.unsupported)
    for name, one in values.items():
        mine = found[name]
        assert mine.status is Status.OK
        assert mine.value == pytest.approx(one.value), name
        # A user whose weights are all 0 counts as a unit with arrays, and not in the engine.
        assert (mine.lower, mine.upper) == pytest.approx(one.interval, rel=0.01), name


def test_every_fault_is_named_and_counted(logs_of):
    found = by_name(estimated(logs_of(0).config, asked())[0])
    assert found["rows_without_weight"].detail.split(", ") == [
        "2 with overflow",
        "2 with propensity 0",
        "2 with propensity NaN",
        "2 with propensity above 1",
        "4 with propensity infinite",
        "2 with propensity negative",
        "2 with propensity null",
    ]
    assert found["rows_without_weight"].samples == 1200


def test_many_rows_without_a_weight_give_no_estimate(logs_of, tmp_path):
    logs = logs_of(2)
    logs.logged.loc[:99, "propensity"] = 0.0
    write(tmp_path, "logged", logs.logged)
    judged, code = estimated(logs.config, asked())
    found = by_name(judged)
    assert code == 3
    assert {found[name].status for name in ("ips", "clipped_ips", "self_normalised_ips")} == {Status.NO_DATA}
    assert "rows have no weight, more than 5%" in found["ips"].detail
    assert "logged" not in found


@pytest.mark.parametrize("feedback", ["no file", "no row", "earlier rows"])
def test_a_log_without_feedback_earns_no_0(logs_of, tmp_path, feedback):
    logs = logs_of(2)
    rows = logs.feedback.assign(ts=logs.feedback["ts"] - pd.Timedelta(hours=3))
    write(tmp_path, "feedback", rows if feedback == "earlier rows" else rows.iloc[:0])
    if feedback == "no file":
        (tmp_path / "feedback.parquet").unlink()
    judged, code = estimated(logs.config, asked())
    values = [one.result for one in judged if one.result.metric == "policy_value"]
    assert code == 3
    assert {one.status for one in values} == {Status.NO_DATA}
    assert {one.detail.partition(",")[0] for one in values} == {
        "the feedback has no row from the start of the span on"
    }
    assert by_name(judged)["effective_sample_size"].value > 100


def test_files_that_cannot_be_read_are_counted(logs_of, tmp_path):
    logs = logs_of(2)
    assert "skipped_files" not in by_name(estimated(logs.config, asked())[0])
    several = logs.config.read_text().replace("path: feedback.parquet", "path: feed*.parquet")
    logs.config.write_text(several)
    (tmp_path / "feed2.parquet").write_bytes(b"PAR1")
    judged, code = estimated(logs.config, asked())
    found = by_name(judged)["skipped_files"]
    assert code == 0
    assert (found.status, found.value, found.samples) == (Status.ERROR, 1, 3)
    assert found.detail.startswith(f"feedback: {tmp_path / 'feed2.parquet'}: is no whole Parquet file")


@pytest.mark.parametrize("named", [False, True])
def test_a_click_counts_for_the_list_that_it_was_on(logs_of, tmp_path, named):
    """Users see the same item again after the span and click then."""
    logs = logs_of(11, broken=False, length=1)
    again = logs.logged.assign(
        ts=logs.logged["ts"] + pd.Timedelta(hours=2), request_id="again " + logs.logged["request_id"]
    )
    write(tmp_path, "logged", pd.concat([logs.logged, again], ignore_index=True))
    clicks = again[["user_id", "item_id", "ts"] + (["request_id"] if named else [])]
    write(tmp_path, "feedback", clicks.assign(event="click", ts=again["ts"] + pd.Timedelta(seconds=1)))
    end = (START + pd.Timedelta(hours=2)).to_pydatetime()
    found = by_name(estimated(logs.config, asked(last=end))[0])
    assert found["logged"].samples == 600
    assert found["logged"].value == found["ips"].value == 0
    assert by_name(estimated(logs.config, asked())[0])["logged"].value == 0.5


def test_a_target_of_other_items_has_no_support(logs_of, tmp_path):
    logs = logs_of(3, broken=False)
    other = logs.wanted.assign(item_id="new " + logs.wanted["item_id"])
    write(tmp_path, "wanted", pd.concat([other.iloc[:120], logs.wanted.iloc[120:]]))
    found = by_name(estimated(logs.config, asked())[0])
    assert found["unsupported"].value == pytest.approx(0.1)
    assert found["ips"].detail.startswith(
        "0.1 of the target's probability is on items that the log never shows"
    )


@pytest.mark.parametrize("shows", ["other items", "no item"])
def test_a_target_that_shares_no_item_with_the_log_has_only_weights_of_0(logs_of, tmp_path, shows):
    logs = logs_of(3, broken=False)
    items = None if shows == "no item" else "new " + logs.wanted["item_id"]
    write(tmp_path, "wanted", logs.wanted.assign(item_id=items))
    judged, code = estimated(logs.config, asked())
    found = by_name(judged)
    assert code == 3
    assert found["effective_sample_size"].value == found["largest_weight"].value == 0
    assert found["mean_weight"].value == 0
    assert found["mean_weight"].detail.startswith("1 is expected")
    assert (found["unsupported"].value, found["unsupported"].detail) == (1, "")
    assert found["ips"].status is Status.NO_DATA
    assert found["ips"].detail.startswith("1 of the target's probability is on items")


def test_a_log_without_any_weight_says_so(logs_of, tmp_path):
    logs = logs_of(3, broken=False)
    write(tmp_path, "logged", logs.logged.assign(propensity=0.0))
    found = by_name(estimated(logs.config, asked())[0])
    assert found["unsupported"].status is Status.NO_DATA
    assert found["unsupported"].detail == "no row has a weight"
    assert found["ips"].detail == "none of 1,200 rows has a weight"


def test_a_position_that_the_target_lacks_has_no_support(logs_of, tmp_path):
    logs = logs_of(4, broken=False)
    write(tmp_path, "wanted", logs.wanted[logs.wanted["position"] == 1])
    found = by_name(estimated(logs.config, asked())[0])
    assert found["unsupported"].value == pytest.approx(0.5)


def test_a_position_that_the_log_lacks_has_no_support(logs_of, tmp_path):
    logs = logs_of(4, broken=False)
    further = logs.wanted[logs.wanted["position"] == 2].assign(position=3)
    write(tmp_path, "wanted", pd.concat([logs.wanted, further], ignore_index=True))
    found = by_name(estimated(logs.config, asked())[0])
    assert found["unsupported"].value == pytest.approx(1 / 3)
    assert found["ips"].status is Status.NO_DATA


def test_wrong_propensities_show_in_the_mean_weight(logs_of, tmp_path):
    logs = logs_of(5, broken=False)
    good = by_name(estimated(logs.config, asked())[0])["mean_weight"]
    assert good.detail == ""
    write(tmp_path, "logged", logs.logged.assign(propensity=logs.logged["propensity"] / 2))
    wrong = by_name(estimated(logs.config, asked())[0])["mean_weight"]
    assert wrong.value == pytest.approx(2 * good.value)
    assert wrong.detail.startswith("1 is expected")


@pytest.mark.parametrize(
    ("column", "without"),
    [("own", ["self_normalised_ips"]), ("propensity", ["mean_weight", "ips", "self_normalised_ips"])],
    ids=["tiny weights", "huge weights"],
)
def test_weights_whose_squares_leave_float64_are_not_called_too_few_users(logs_of, tmp_path, column, without):
    logs = logs_of(5, broken=False)
    write(tmp_path, "logged", logs.logged.assign(**{column: logs.logged[column] * 1e-200}))
    found = by_name(estimated(logs.config, asked(target=None, column="own"))[0])
    assert found["logged"].status is Status.OK
    for name in without:
        assert found[name].status is Status.NO_DATA
        assert found[name].detail == "the sums ran out of the range of float64"


def test_doubly_robust_with_huge_weights_does_not_speak_of_too_few_users(logs_of, tmp_path):
    logs = logs_of(5, broken=False)
    write(tmp_path, "logged", logs.logged.assign(propensity=logs.logged["propensity"] * 1e-200))
    found = by_name(estimated(logs.config, asked())[0])["doubly_robust"]
    assert found.status is Status.NO_DATA
    assert found.detail == "the sums ran out of the range of float64"


def test_a_single_user_is_said_to_be_the_reason(logs_of, tmp_path):
    logs = logs_of(5, broken=False)
    write(tmp_path, "logged", logs.logged.assign(user_id="u"))
    write(tmp_path, "feedback", logs.feedback.assign(user_id="u"))
    found = by_name(estimated(logs.config, asked())[0])["self_normalised_by_position"]
    assert found.detail == "fewer than two users (a request without a user counts as one)"


def test_ids_of_other_types_are_compared_as_text(logs_of, tmp_path):
    logs = logs_of(6, broken=False)
    numbered = logs.wanted.assign(item_id=logs.wanted["item_id"].str[1:].astype(int))
    write(tmp_path, "wanted", numbered)
    for name in ("logged", "feedback"):
        frame = getattr(logs, name)
        write(tmp_path, name, frame.assign(item_id=frame["item_id"].str[1:]))
    found = by_name(estimated(logs.config, asked())[0])
    lap, values = expected(logs)
    assert found["unsupported"].value == pytest.approx(lap.unsupported)
    assert found["ips"].value == pytest.approx(values["ips"].value)


def test_without_positions_items_are_compared_alone(logs_of, tmp_path):
    logs = logs_of(7, broken=False, length=1)
    write(tmp_path, "wanted", logs.wanted.drop(columns="position"))
    found = by_name(estimated(logs.config, asked())[0])
    _, values = expected(logs)  # one position alone
    assert found["ips"].value == pytest.approx(values["ips"].value)
    assert "ips_by_position" not in found


def test_the_page_shows_what_the_command_prints(shared, monkeypatch):
    monkeypatch.setenv("OBD", str(shared / "data" / "obd"))
    options = asked(recommender="men-random", target="men-bts", cap=10.0)
    judged, _ = estimated(ROOT / "examples" / "obd.yaml", options)
    console = Console(file=io.StringIO(), width=120)
    print_estimates(judged, console)
    page = (ROOT / "docs" / "off-policy.md").read_text("utf-8")
    assert textwrap.indent(console.file.getvalue(), "    ") in page


@pytest.mark.parametrize("scene", ["men", "women"])
def test_a_real_log_gives_the_estimates_of_the_page(scene, shared, monkeypatch):
    monkeypatch.setenv("OBD", str(shared / "data" / "obd"))
    page = {one.title: one for one in shop.estimates(shop.read(shared / "data" / "obd"))}
    for logging, target in (("random", "bts"), ("bts", "random")):
        options = asked(recommender=f"{scene}-{logging}", target=f"{scene}-{target}", cap=shop.CAP)
        found = by_name(estimated(ROOT / "examples" / "obd.yaml", options)[0])
        known = page[f"{scene}: {logging} → {target}"]
        assert found["effective_sample_size"].value == pytest.approx(known.overlap.effective)
        assert found["mean_weight"].value == pytest.approx(known.overlap.mean.value)
        if not known.estimates:
            assert found["ips"].detail == known.overlap.reason
            continue
        names = {
            "ips": "IPS",
            "clipped_ips": f"IPS, weights cut at {shop.CAP:g}",
            "self_normalised_ips": "self-normalised IPS",
        }
        for mine, theirs in names.items():
            assert found[mine].value == pytest.approx(known.estimates[theirs].value)
            own = (found[mine].lower, found[mine].upper)
            assert own == pytest.approx(known.estimates[theirs].interval, rel=0.01)
        for mine in ("direct_method", "doubly_robust"):  # with another model than the page's
            assert found[mine].lower < known.own.value < found[mine].upper
