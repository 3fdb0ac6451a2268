"""`gate` as people and CI servers see it: two recommenders, an experiment, and overrides."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.cli.conftest import HOSTILE, exposures, run_monitor
from tests.cli.kept import run_keeping
from tests.conftest import ROOT

CONFIG = """\
state: ./state
engine: {threads: 1}
recommenders:
  - name: old
    logs: {exposures: {path: old.parquet}, feedback: {path: clicks.parquet}}
    window: 1h
    lateness: 0s
    metrics: {disable: [serendipity], attribution: 1h}
    experiments:
      - {name: lists, column: arm, split: {control: 1, long: 1}}
      - {name: broken, column: half, split: {a: 1, b: 1}}
  - name: new
    logs: {exposures: {path: new.parquet}, feedback: {path: clicks.parquet}}
    window: 1h
    lateness: 0s
    rules: [{pack: blacklist, parameters: {blacklist: blacklist.csv}}]
    metrics: {disable: [serendipity], attribution: 1h}
    gate:
      against: old
      conditions:
        - {name: rules, owner: trust, reason: A banned item is a fine., rules: hard}
        - {name: failure, owner: ops, reason: No empty page., metric: failure, labels: {by: pv}, max: 0.01}
        - name: clicks
          owner: ranking
          reason: Clicks pay.
          metric: action_rate
          labels: {by: exposure, event: click}
          margin: 0.02
        - name: long
          owner: ranking
          reason: Longer lists may not cost clicks.
          metric: action_rate
          labels: {by: exposure, event: click}
          margin: 0.02
          experiment: lists
        - name: half
          owner: ranking
          reason: The other experiment.
          metric: action_rate
          labels: {by: exposure, event: click}
          margin: 0.02
          experiment: broken
  - name: empty
    logs: {exposures: {path: nothing/*.parquet}, feedback: {path: clicks.parquet}}
    window: 1h
    rules: [{pack: blacklist, parameters: {blacklist: blacklist.csv}}]
    gate:
      against: old
      conditions:
        - {name: rules, owner: trust, reason: A banned item is a fine., rules: hard}
        - {name: clicks, owner: ranking, reason: Pay., metric: coverage, labels: {by: pv}, margin: 0.02}
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The same lists from both; `long` gets twice the clicks, and `broken` has nine of ten users in a."""
    folder = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(2)
    rows = exposures(hours=2, requests=4000)
    user = rows["user_id"].str[1:].astype(int).to_numpy()
    rows["arm"] = np.where(user % 2, "long", "control")
    rows["half"] = np.where(user % 10, "a", "b")
    clicked = rng.random(len(rows)) < np.where(user % 2, 0.2, 0.1)
    clicks = rows.loc[clicked, ["request_id", "user_id", "item_id", "ts"]].assign(event="click")
    rows.to_parquet(folder / "old.parquet")
    rows.to_parquet(folder / "new.parquet")
    clicks.to_parquet(folder / "clicks.parquet")
    pd.DataFrame({"item_id": ["i3"]}).to_csv(folder / "blacklist.csv", index=False)
    (folder / "shop.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def judged(shop):
    ran = run_keeping("gate", "new", "-c", "shop.yaml", "--format", "json", cwd=shop)
    return ran, json.loads(ran.out)


def test_each_condition_has_its_outcome_and_its_evidence(judged):
    ran, content = judged
    assert (ran.code, ran.err, content["outcome"]) == (1, "", "failed")
    found = {one["name"]: one for one in content["conditions"]}
    assert {name: one["outcome"] for name, one in found.items()} == {
        "rules": "failed", "failure": "passed", "clicks": "passed", "long": "passed", "half": "not_known",
    }  # fmt: skip
    assert found["rules"]["rows"][0]["item_id"] == "i3"
    assert found["clicks"]["lower"] == found["clicks"]["upper"] == 0  # the same clicks of the same users
    assert found["long"]["candidate"]["value"] > 1.7 * found["long"]["other"]["value"]
    assert found["half"]["detail"].startswith("the split of broken: it is broken: ")
    assert {one["owner"] for one in found.values()} == {"trust", "ops", "ranking"}


def test_an_experiment_that_starts_within_a_window_counts_from_the_next_window_on(shop):
    text = (shop / "shop.yaml").read_text()
    split = "{name: lists, column: arm, split: {control: 1, long: 1}"
    names = ("rules", "failure", "clicks", "half")
    config = yaml.safe_load(text.replace(split, f"{split}, start: 2026-01-05T10:30:00Z"))
    config["state"] = "./started"  # its own history: the other tests count the gates of theirs
    gate = config["recommenders"][1]["gate"]
    gate["conditions"] = [one for one in gate["conditions"] if one["name"] not in names]
    (shop / "started.yaml").write_text(yaml.safe_dump(config))
    ran = run_keeping("gate", "new", "-c", "started.yaml", "--format", "json", cwd=shop)
    (found,) = json.loads(ran.out)["conditions"]
    assert found["outcome"] == "passed"
    whole = 4000 * 4  # of both arms, in two hours
    assert 0 < found["candidate"]["samples"] + found["other"]["samples"] < 0.6 * whole


def test_an_override_needs_a_name_and_a_reason_and_stays_in_the_history(shop, judged):
    asked = ("gate", "new", "-c", "shop.yaml", "--override", "rules", "--override", "half")
    ran = run_keeping(*asked, cwd=shop)
    assert ran.code == 2
    assert "an override needs a name and a reason" in " ".join(ran.err.replace("│", " ").split())
    ran = run_keeping(*asked, "--by", "kim", "--because", f"the fine is paid {HOSTILE}", cwd=shop)
    assert ran.code == 0
    assert ran.out.startswith("new: passed (1 failed, 1 not yet known, 3 passed, 2 overridden)\n")
    assert "overridden by kim: the fine is paid <b>[U+001B]" in ran.out
    stored = run_monitor("history", "gates", "-c", "shop.yaml", cwd=shop)
    runs = [json.loads(line) for line in stored.out.splitlines()]
    assert [one["outcome"] for one in runs] == ["failed", "passed"]
    assert runs[0] == judged[1]
    overrides = {one["name"]: one["override"] for one in runs[1]["conditions"]}
    assert overrides["half"]["name"] == "kim"
    assert HOSTILE in overrides["rules"]["reason"]
    assert overrides["clicks"] is None


def test_a_ci_server_gets_a_failure_and_an_error(shop):
    ran = run_keeping("gate", "new", "-c", "shop.yaml", "--format", "junit", cwd=shop)
    suite = ElementTree.fromstring(ran.out)
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "1", "errors": "1", "skipped": "0"}


def test_a_change_request_gets_one_file_and_hostile_text_is_harmless(shop):
    asked = ("gate", "new", "-c", "shop.yaml", "--override", "rules", "--by", HOSTILE, "--because", HOSTILE)
    page = run_keeping(*asked, "--format", "html", cwd=shop).out
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page
    assert "\x1b" not in page
    assert "http" not in page
    assert "object at" not in page
    assert '<p class="quiet">candidate 0, interval 0 to 0.0009594, bound 0.01, 4,000 samples</p>' in page
    assert "Overridden by &lt;b&gt;[U+001B]" in page


def test_the_other_side_must_have_the_experiment(shop):
    ran = run_keeping("gate", "new", "--against", "empty", "-c", "shop.yaml", "--format", "json", cwd=shop)
    found = {one["name"]: one for one in json.loads(ran.out)["conditions"]}
    assert (found["long"]["outcome"], found["half"]["outcome"]) == ("not_known", "not_known")
    assert found["long"]["detail"] == "empty has no experiment called 'lists'"


def test_a_candidate_without_a_row_is_not_known(shop):
    ran = run_monitor("gate", "empty", "-c", "shop.yaml", "--format", "json", cwd=shop)
    content = json.loads(ran.out)
    assert (ran.code, content["outcome"]) == (3, "not_known")
    for one in content["conditions"]:
        assert one["outcome"] == "not_known"
        assert "'empty': exposures: no " in one["detail"]


def test_a_gate_does_not_pass_on_a_log_of_which_a_file_cannot_be_read(shop):
    content = yaml.safe_load((shop / "shop.yaml").read_text())
    new = content["recommenders"][1]
    new["logs"] = {name: {"path": f"cut/{name}/*.parquet"} for name in ("exposures", "feedback")}
    new["gate"]["conditions"] = new["gate"]["conditions"][:3]
    content["state"] = "./cut_state"
    (shop / "cut.yaml").write_text(yaml.safe_dump(content))
    for name, log in (("exposures", "new"), ("feedback", "clicks")):
        folder = shop / "cut" / name
        folder.mkdir(parents=True)
        pd.read_parquet(shop / f"{log}.parquet").to_parquet(folder / "1.parquet")
    broken = {name: shop / "cut" / name / "2.parquet" for name in ("exposures", "feedback")}
    broken["feedback"].write_bytes(b"no Parquet")

    def outcomes():
        ran = run_monitor("gate", "new", "-c", "cut.yaml", "--format", "json", cwd=shop)
        return {one["name"]: one for one in json.loads(ran.out)["conditions"]}

    found = outcomes()
    assert {name: one["outcome"] for name, one in found.items()} == {
        "rules": "failed", "failure": "passed", "clicks": "not_known",
    }  # fmt: skip
    assert "late, feedback: " in found["clicks"]["detail"]
    assert "2.parquet: is no whole Parquet file" in found["clicks"]["detail"]
    broken["exposures"].write_bytes(b"no Parquet")
    found = outcomes()
    assert {name: one["outcome"] for name, one in found.items()} == {
        "rules": "failed", "failure": "not_known", "clicks": "not_known",
    }  # fmt: skip
    assert "late, exposures: " in found["failure"]["detail"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old",), "'old' has no gate in the config"),
        (("newer",), "no recommender is called 'newer'; did you mean 'new'?"),
        (("new", "--against", "odl"), "no recommender is called 'odl'; did you mean 'old'?"),
        (("new", "--override", "rule", "--by", "a", "--because", "b"), "did you mean 'rules'?"),
        (("new", "--by", "kim"), "Invalid value for --by: name the condition with --override"),
        (("new", "--because", "why"), "Invalid value for --because: name the condition with --override"),
        (("new", "--against", "new"), "'new' and 'new' are the same rows"),
        (("new:arm=long", "--against", "new:arm=long"), "are the same rows"),
    ],
)
def test_wrong_usage_ends_in_a_sentence(shop, arguments, message):
    ran = run_keeping("gate", *arguments, "-c", "shop.yaml", cwd=shop)
    assert ran.code == 2
    assert message in " ".join(ran.err.replace("│", " ").split())


def test_the_config_of_the_page_is_valid(tmp_path):
    page = (ROOT / "docs" / "gate.md").read_text("utf-8")
    (tmp_path / "shop.yaml").write_text("state: ./state\n" + page.split("```yaml\n")[1].split("```")[0])
    ran = run_monitor("validate", "--no-logs", "-c", "shop.yaml", cwd=tmp_path)
    assert ran.code == 0, ran.err
