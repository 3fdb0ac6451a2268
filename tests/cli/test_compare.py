"""`compare` as people and CI servers see it, on two models of one log."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from monitor.cli.compare import _notes
from monitor.cli.sides import JudgedSide
from monitor.comparison.sides import Side
from monitor.core.results import Result, Status, Window
from tests.cli.conftest import START, exposures, run_monitor
from tests.cli.kept import run_keeping

CONFIG = """\
state: ./state
engine: {threads: 1}
recommenders:
  - name: shop
    logs: {exposures: {path: log.parquet}, feedback: {path: clicks.parquet}}
    window: 1h
    lateness: 0s
    rules: [{pack: blacklist, parameters: {blacklist: blacklist.csv}}, {pack: lists}]
    metrics: {disable: [serendipity], attribution: 1h, k: [4]}
    slices: {by: [model], metrics: [action_rate]}
  - name: twin
    logs: {exposures: {path: log.parquet}}
    window: 1h
    metrics: {disable: [serendipity]}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Every other list is of m7, which gets four times the clicks and shows an item of the blacklist."""
    folder = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(5)
    rows = exposures(hours=4, requests=3000)
    number = rows["request_id"].str[1:].astype(int)
    rows["model"] = np.where(number % 2, "m7", "m6")
    rows["item_id"] = np.where((rows["item_id"] == "i3") & (number % 2 == 0), "i4", rows["item_id"])
    clicked = rng.random(len(rows)) < np.where(number % 2, 0.2, 0.05)
    clicks = rows.loc[clicked, ["request_id", "user_id", "item_id", "ts"]].assign(event="click")
    clicks["ts"] += pd.Timedelta(seconds=5)
    rows.to_parquet(folder / "log.parquet")
    clicks.to_parquet(folder / "clicks.parquet")
    pd.DataFrame({"item_id": ["i3"]}).to_csv(folder / "blacklist.csv", index=False)
    (folder / "shop.yaml").write_text(CONFIG)
    return folder


MODELS = ("shop:model=m6", "shop:model=m7")
HALVES = (
    "shop@2026-01-05T10:00:00Z/2026-01-05T12:00:00Z",
    "shop@2026-01-05T12:00:00Z/2026-01-05T14:00:00Z",
)


@pytest.fixture(scope="module")
def compared(shop):
    ran = run_keeping("compare", *MODELS, "-c", "shop.yaml", "--format", "json", cwd=shop)
    return ran, json.loads(ran.out)


def item(content, metric, **labels):
    (found,) = [
        one for one in content["compared"]
        if one["metric"] == metric and labels.items() <= one["labels"].items()
    ]  # fmt: skip
    return found


def test_the_candidate_is_better_in_clicks_and_breaks_a_rule(compared):
    ran, content = compared
    assert (ran.code, ran.err) == (1, "")
    assert [side["name"] for side in content["sides"]] == list(MODELS)
    clicks = item(content, "action_rate", by="exposure")
    assert clicks["verdict"] == "better"
    assert clicks["lower"] < 0.15 < clicks["upper"]
    rule = item(content, "rule", rule="blacklist")
    assert (rule["verdict"], rule["a"]["violations"]) == ("worse", 0)
    assert rule["b"]["violations"] > 0
    assert item(content, "coverage", by="pv")["verdict"] == "same"
    assert item(content, "gini_exposed")["verdict"] == "not_judged"
    assert content["lists"] is None  # no list is of both models
    assert sum(content["verdicts"].values()) == len(content["compared"])


def test_each_side_has_only_its_own_rows_over_the_whole_span(compared, shop):
    _, content = compared
    rows = pd.read_parquet(shop / "log.parquet")
    for side, model in (("a", "m6"), ("b", "m7")):
        assert item(content, "volume", by="exposures")[side]["value"] == (rows["model"] == model).sum()
    spans = {(side["from"], side["to"]) for side in content["sides"]}
    assert spans == {(f"{START:%Y-%m-%dT%H:%M:%SZ}", f"{START:%Y-%m-%d}T14:00:00Z")}
    shown = rows.groupby("model").size()
    clicks = pd.read_parquet(shop / "clicks.parquet").merge(
        rows.drop_duplicates("request_id")[["request_id", "model"]]
    )
    for side, model in (("a", "m6"), ("b", "m7")):  # no click of the one model counts for the other
        rate = item(content, "action_rate", by="exposure")[side]["value"]
        assert rate == pytest.approx((clicks["model"] == model).sum() / shown[model])


def test_fewer_metrics_make_narrower_intervals(compared, shop):
    wide = item(compared[1], "action_rate", by="exposure")
    ran = run_keeping("compare", *MODELS, "-c", "shop.yaml", "-m", "action_rate", "-f", "json", cwd=shop)
    narrow = item(json.loads(ran.out), "action_rate", by="exposure")
    assert ran.code == 0
    assert narrow["upper"] - narrow["lower"] < wide["upper"] - wide["lower"]


def test_what_nobody_can_judge_is_not_well(shop):
    halves = [one.replace("shop", "twin") for one in HALVES]
    asked = ("compare", *halves, "-c", "shop.yaml", "-m", "volume", "-f", "json")
    ran = run_monitor(*asked, cwd=shop)
    assert (ran.code, set(json.loads(ran.out)["verdicts"])) == (3, {"not_judged"})


def test_the_table_has_the_worst_first_and_hides_what_is_not_judged(shop):
    ran = run_keeping("compare", *MODELS, "-c", "shop.yaml", cwd=shop, COLUMNS="120")
    lines = ran.out.splitlines()
    assert lines[0].startswith("A  shop:model=m6  2026-01-05 10:00 to ")
    assert "✗ worse      rule blacklist (hard)" in lines[3]
    assert "gini_exposed" not in ran.out
    assert "not judged: they have no interval, or a side lacks them; --all shows them" in ran.out
    assert lines[-1].startswith("B against A: 1 worse, ")
    everything = run_keeping("compare", *MODELS, "-c", "shop.yaml", "--all", cwd=shop)
    assert "- not judged gini_exposed " in everything.out


def test_junit_fails_what_is_worse(shop):
    ran = run_keeping("compare", *MODELS, "-c", "shop.yaml", "-f", "junit", cwd=shop)
    suite = ElementTree.fromstring(ran.out)
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    (failed,) = [case for case in suite if case.find("failure") is not None]
    assert failed.get("name") == "rule blacklist (hard)"
    skipped = [case for case in suite if case.find("skipped") is not None]
    assert len(skipped) == int(suite.get("skipped", ""))
    assert len(suite) == int(suite.get("tests", ""))


def test_two_spans_of_one_recommender(shop):
    ran = run_keeping("compare", *HALVES, "-c", "shop.yaml", "-m", "action_rate", "-f", "json", cwd=shop)
    content = json.loads(ran.out)
    assert {one["verdict"] for one in content["compared"]} <= {"unknown", "same"}
    assert ran.code == (3 if "unknown" in content["verdicts"] else 0)
    values = item(content, "action_rate", by="exposure")
    assert abs(values["a"]["value"] - 0.125) < 0.02
    assert abs(values["b"]["value"] - 0.125) < 0.02


def test_a_time_within_a_window_takes_in_all_of_it(shop):
    inside = ("-c", "shop.yaml", "-m", "volume", "-f", "json")
    within = run_keeping(
        "compare",
        *MODELS,
        *inside,
        "--from",
        "2026-01-05T10:30:00Z",
        "--to",
        "2026-01-05T11:30:00Z",
        cwd=shop,
    )
    edges = run_keeping(
        "compare",
        *MODELS,
        *inside,
        "--from",
        "2026-01-05T10:00:00Z",
        "--to",
        "2026-01-05T12:00:00Z",
        cwd=shop,
    )
    found = json.loads(within.out)
    assert [(one["from"], one["to"]) for one in found["sides"]] == [
        ("2026-01-05T10:00:00Z", "2026-01-05T12:00:00Z")
    ] * 2
    assert found["compared"] == json.loads(edges.out)["compared"]
    assert item(found, "volume", by="requests")["a"]["value"] > 0


def test_a_side_whose_rows_are_not_all_there_is_said_to_be(shop):
    spans = (
        "shop@2026-01-05T10:00:00Z/2026-01-05T12:00:00Z",
        "shop@2026-01-05T12:00:00Z/2026-01-05T15:00:00Z",
    )
    ran = run_keeping("compare", *spans, "-c", "shop.yaml", "-m", "list_length", "-f", "json", cwd=shop)
    notes = [one for one in json.loads(ran.out)["notes"] if "before the span" in one]
    assert len(notes) == 1
    assert notes[0].startswith(f"{spans[1]}: the log exposures ends at 2026-01-05T13:59:")


def test_slices_are_compared_if_they_are_asked_for(shop):
    asked = ("compare", *HALVES, "-c", "shop.yaml", "-m", "action_rate", "-f", "json")
    whole, sliced = (json.loads(run_keeping(*asked, *more, cwd=shop).out) for more in ((), ("--slices",)))
    assert {one["labels"].get("value", "") for one in whole["compared"]} == {""}
    assert {one["labels"].get("value", "") for one in sliced["compared"]} == {"", "m6", "m7"}


def test_html_is_one_page(shop):
    ran = run_keeping("compare", *MODELS, "-c", "shop.yaml", "-f", "html", cwd=shop)
    assert ran.code == 1
    assert ran.out.startswith("<!doctype html>")
    assert ran.out.count('<svg width="190"') > 5
    assert "rule blacklist (hard)" in ran.out


def test_a_metric_that_one_side_lacks_is_unknown(shop):
    ran = run_keeping(
        "compare", "shop", "twin", "-c", "shop.yaml", "-m", "conversion", "-f", "json", cwd=shop
    )
    (one,) = json.loads(ran.out)["compared"]
    assert (ran.code, one["verdict"], one["b"]) == (3, "unknown", None)
    assert one["detail"] == "B: does not have it"


def test_a_span_without_rows_is_unknown(shop):
    ran = run_keeping(
        "compare", "shop@2025-01-06/2025-01-07", "twin", "-c", "shop.yaml", "-f", "json", cwd=shop
    )
    content = json.loads(ran.out)
    assert (ran.code, set(content["verdicts"])) == (3, {"unknown", "not_judged"})
    assert item(content, "failure", by="pv")["detail"].startswith("A: no_data")


WRONG = {
    "an unknown recommender": (["shopp", "twin"], "did you mean 'shop'?"),
    "no recommender at all": (["x", "twin"], "there are: shop, twin"),
    "the same rows": (["twin", "twin"], "are the same rows"),
    "no side": (["shop:model", "shop"], "is not COLUMN=VALUE; write it as NAME"),
    "no such column": (["shop:colour=red", "shop"], "the exposures of 'shop' have no column 'colour'"),
    "no such value": (["shop:model=m8", "shop"], "'shop:model=m8': no row in this span has this value"),
    "no time": (["shop@x/y", "shop"], "is not a time"),
    "a span that ends before it begins": (["shop@2026-01-06/2026-01-05", "shop"], "must end after it begins"),
    "no such metric": (["twin", HALVES[0].replace("shop", "twin"), "-m", "volmue"], "did you mean 'volume'?"),
    "a metric without slices": ([*MODELS, "-m", "unattributed"], "neither side has 'unattributed'"),
    "slices of a slice": ([*MODELS, "--slices"], "has no slices of its own"),
    "no margin": ([*MODELS, "--margin", "much"], "write it as 0.02 or 2%"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_ends_with_2_and_a_sentence_that_helps(shop, case):
    arguments, hint = WRONG[case]
    ran = run_keeping("compare", *arguments, "-c", "shop.yaml", cwd=shop, COLUMNS="300")
    assert ran.code == 2, ran
    assert hint in ran.err
    assert "Traceback" not in ran.err


@pytest.fixture(scope="module")
def same_users(tmp_path_factory):
    """Two recommenders for the same requests; both replace the last items, and the second earns 6 % more."""
    folder = tmp_path_factory.mktemp("same_users")
    rng = np.random.default_rng(9)
    rows = exposures(hours=2, requests=4000)
    user = rows["user_id"].str[1:].astype(int).to_numpy()
    taste = rng.beta(0.5, 3, user.max() + 1)[user]
    luck = rng.random(len(rows))
    for name, lift, shift in (("old", 1.0, 0), ("new", 1.06, 1)):
        own = rows.copy()
        number = own["item_id"].str[1:].astype(int) + np.where(own["position"] > 2, shift, 0)
        own["item_id"] = "i" + number.astype(str)
        clicks = own.loc[luck < taste * lift, ["request_id", "user_id", "item_id", "ts"]]
        own.to_parquet(folder / f"{name}.parquet")
        clicks.assign(event="click").to_parquet(folder / f"{name}-clicks.parquet")
    for log in ("", "-clicks"):  # both in one log
        runs = [pd.read_parquet(folder / f"{name}{log}.parquet").assign(run=name) for name in ("old", "new")]
        pd.concat(runs).to_parquet(folder / f"runs{log}.parquet")
    config = "state: ./state\nengine: {threads: 1}\nrecommenders:\n"
    for name in ("old", "new", "runs"):
        config += f"""\
  - name: {name}
    logs: {{exposures: {{path: {name}.parquet}}, feedback: {{path: {name}-clicks.parquet}}}}
    window: 1h
    lateness: 0s
    metrics: {{disable: [serendipity], attribution: 1h}}
"""
    (folder / "shop.yaml").write_text(config)
    return folder


def test_the_same_users_on_both_sides_make_narrow_intervals(same_users):
    asked = ("compare", "old", "new", "-c", "shop.yaml", "-m", "action_rate", "-m", "ndcg")
    ran = run_keeping(*asked, "-f", "json", cwd=same_users)
    content = json.loads(ran.out)
    rate = item(content, "action_rate", by="exposure")
    assert rate["correlation"] > 0.9
    assert rate["verdict"] == "better"
    alone = 2**0.5 * (rate["a"]["upper"] - rate["a"]["lower"])  # of independent sides, one comparison
    assert rate["upper"] - rate["lower"] < 0.5 * alone
    printed = run_keeping(*asked, cwd=same_users).out
    assert "5 intervals are narrower because both sides served the same users" in printed


def test_the_lists_of_both_sides_are_compared(same_users):
    ran = run_keeping(
        "compare",
        "old",
        "new",
        "-c",
        "shop.yaml",
        "-m",
        "action_rate",
        "-m",
        "ndcg",
        "-f",
        "json",
        cwd=same_users,
    )
    lists = json.loads(ran.out)["lists"]
    sides = [pd.read_parquet(same_users / f"{name}.parquet") for name in ("old", "new")]
    a, b = (side.groupby("request_id")["item_id"].agg(set) for side in sides)
    assert lists["requests"] == {"a": len(a), "b": len(b), "common": len(a)}
    shares = [len(one & other) / len(one | other) for one, other in zip(a, b, strict=True)]
    assert lists["overlap"]["value"] == pytest.approx(np.mean(shares))
    clicks = [
        pd.read_parquet(same_users / f"{name}-clicks.parquet").groupby("user_id").size()
        for name in ("old", "new")
    ]
    users = pd.concat(clicks, axis=1, keys=["a", "b"]).fillna(0)
    assert lists["users"]["more"] == (users["b"] > users["a"]).sum()
    assert lists["users"]["fewer"] == (users["b"] < users["a"]).sum()
    names = {one["name"] for one in lists["users"]["winners"]}
    assert names
    assert not names & {*users.index}  # hashed, as in the evidence
    printed = run_keeping(
        "compare", "old", "new", "-c", "shop.yaml", "-m", "action_rate", "-m", "ndcg", cwd=same_users
    ).out
    assert f"lists: {len(a):,} requests are on both sides" in printed
    assert "items that gain most: i" in printed
    asked = ("compare", "old", "new", "-c", "shop.yaml", "-m", "action_rate", "-m", "ndcg", "-f", "html")
    page = run_keeping(*asked, cwd=same_users).out
    assert "<h2>The lists</h2>" in page


def test_two_runs_in_one_log_are_as_two_logs(same_users):
    asked = ("-c", "shop.yaml", "-m", "action_rate", "-m", "ndcg", "-f", "json")
    logs = json.loads(run_keeping("compare", "old", "new", *asked, cwd=same_users).out)
    ran = run_keeping("compare", "runs:run=old", "runs:run=new", *asked, cwd=same_users)
    runs = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert runs["compared"] == logs["compared"]
    assert item(runs, "action_rate", by="exposure")["correlation"] > 0.9
    for found in (logs, runs):  # the names of users are hashed by each command with a salt of its own
        for users in ("winners", "losers"):
            found["lists"]["users"][users] = [(one["a"], one["b"]) for one in found["lists"]["users"][users]]
    assert runs["lists"] == logs["lists"]
    assert runs["notes"] == [
        f"runs:run={name}: rows with other values of run answer the same requests; left out"
        for name in ("old", "new")
    ]


def test_two_spans_have_no_request_in_common(shop):
    ran = run_keeping("compare", *HALVES, "-c", "shop.yaml", "-m", "action_rate", "-f", "json", cwd=shop)
    lists = json.loads(ran.out)["lists"]
    assert (lists["requests"]["common"], lists["overlap"], lists["examples"]) == (0, None, [])
    assert lists["users"]["more"] + lists["users"]["fewer"] + lists["users"]["same"] > 0


def test_late_results_of_a_side_are_noted_with_the_reason():
    late = Result(metric="gini", status=Status.LATE, definition="1", detail="the log has reached 12:00")
    span = Window(START, START + timedelta(hours=1))
    sides = [JudgedSide(Side.parse("shop"), span, [one]) for one in (replace(late, status=Status.OK), late)]
    assert list(_notes(*sides)) == [
        "shop: some results are late and rest on the rows so far: the log has reached 12:00"
    ]
