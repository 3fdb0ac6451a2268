"""Conditions of a gate on what users say: of a candidate, against production, and by arm."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import START, exposures, run_monitor

CONFIG = """\
state: ./state
engine: {threads: 1}
recommenders:
  - name: old
    logs: {exposures: {path: old.parquet}, survey: {path: old.csv}}
    window: 1h
    lateness: 0s
    survey: {questions: {liked: {}}}
    experiments:
      - {name: lists, column: arm, split: {control: 1, long: 1}}
      - {name: broken, column: half, split: {a: 1, b: 1}}
  - name: new
    logs: {exposures: {path: old.parquet}, survey: {path: new.csv}}
    window: 1h
    lateness: 0s
    survey: {questions: {liked: {}}}
    gate:
      against: old
      conditions:
        - {name: liked, owner: ux, reason: Users decide., survey: liked, min: 3.5}
        - {name: liked-more, owner: ux, reason: Users decide., survey: liked, margin: 0.02}
        - {name: arm, owner: ux, reason: Users decide., survey: liked, margin: 0.02, experiment: lists}
        - {name: split, owner: ux, reason: Users decide., survey: liked, margin: 0.02, experiment: broken}
  - name: quiet
    logs: {exposures: {path: old.parquet}, survey: {path: few.csv}}
    window: 1h
    lateness: 0s
    gate:
      against: new
      conditions:
        - {name: liked, owner: ux, reason: Users decide., survey: liked, min: 1}
        - {name: liked-more, owner: ux, reason: Users decide., survey: liked, margin: 0.02}
  - name: mute
    logs: {exposures: {path: old.parquet}}
    window: 1h
    lateness: 0s
    experiments:
      - {name: lists, column: arm, split: {control: 1, long: 1}}
  - name: silent
    logs: {exposures: {path: old.parquet}, survey: {path: none.csv}}
    window: 1h
    lateness: 0s
    gate:
      conditions: [{name: liked, owner: ux, reason: Users decide., survey: liked, min: 1}]
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """New is liked by 4.2 of 5 and old by 3, but the users of the arm `long` give old half a point more."""
    folder = tmp_path_factory.mktemp("gate_survey")
    rng = np.random.default_rng(2)
    rows = exposures(hours=2, requests=4000)
    user = pd.factorize(rows["request_id"])[0] % 400
    rows["user_id"] = [f"u{n}" for n in user]
    rows["arm"] = np.where(user % 2, "long", "control")
    rows["half"] = np.where(user % 10, "a", "b")
    rows.to_parquet(folder / "old.parquet")
    users = rows["user_id"].drop_duplicates()
    odd = users.str[1:].astype(int).to_numpy() % 2

    def survey(name: str, mean: np.ndarray, count: int) -> None:
        answers = np.clip(np.round(rng.normal(mean, 0.7)), 1, 5).astype(int)
        frame = pd.DataFrame(
            {"user_id": users, "ts": START + pd.Timedelta("110min"), "question": "liked", "answer": answers}
        )
        frame.head(count).to_csv(folder / f"{name}.csv", index=False)

    survey("old", 2.75 + 0.5 * odd, len(users))
    survey("new", np.full(len(users), 4.2), len(users))
    survey("few", np.full(len(users), 4.2), 5)
    survey("none", np.full(len(users), 4.2), 0)
    (folder / "shop.yaml").write_text(CONFIG)
    return folder


def judged(shop, name):
    ran = run_monitor("gate", name, "-c", "shop.yaml", "--format", "json", cwd=shop)
    content = json.loads(ran.out)
    return ran.code, {one["name"]: one for one in content["conditions"]}


def test_a_candidate_is_not_compared_with_itself(shop):
    ran = run_monitor("gate", "quiet", "--against", "quiet", "-c", "shop.yaml", cwd=shop)
    assert (ran.code, "'quiet' and 'quiet' are the same rows" in ran.err) == (2, True)


def test_a_survey_passes_a_candidate_that_users_like_more(shop):
    code, found = judged(shop, "new")
    assert code == 3
    assert {name: one["outcome"] for name, one in found.items()} == {
        "liked": "passed", "liked-more": "passed", "arm": "passed", "split": "not_known",
    }  # fmt: skip
    assert found["liked"]["candidate"]["value"] == pytest.approx(4.2, abs=0.15)
    assert found["liked-more"]["other"]["value"] == pytest.approx(3.0, abs=0.15)
    assert found["liked-more"]["lower"] > 0.8
    arms = found["arm"]["candidate"]["value"] - found["arm"]["other"]["value"]
    assert arms == pytest.approx(0.5, abs=0.25)
    assert found["split"]["detail"].startswith("the split of broken: ")


def test_too_few_answers_are_not_known(shop):
    code, found = judged(shop, "quiet")
    assert code == 3
    assert [one["outcome"] for one in found.values()] == ["not_known", "not_known"]
    assert "no_data" in found["liked"]["detail"]
    assert found["liked-more"]["other"]["value"] == pytest.approx(4.2, abs=0.15)


def test_a_survey_without_a_row_is_not_known(shop):
    code, found = judged(shop, "silent")
    assert (code, found["liked"]["outcome"]) == (3, "not_known")
    assert "survey: no row in " in found["liked"]["detail"]


def test_another_side_without_a_survey_is_not_known(shop):
    """The config is checked with its own `against`; the command line may name any other side."""
    ran = run_monitor("gate", "new", "--against", "mute", "-c", "shop.yaml", "--format", "json", cwd=shop)
    assert ran.code == 3, ran.err
    found = {one["name"]: one for one in json.loads(ran.out)["conditions"]}
    for name in ("liked-more", "arm"):
        assert (found[name]["outcome"], found[name]["detail"]) == ("not_known", "mute has no logs.survey")
