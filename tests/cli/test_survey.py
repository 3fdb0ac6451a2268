"""`survey` as people and programs see it: a table, JSON, a page, exit codes, and hostile texts."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tests.cli.conftest import HOSTILE, run_monitor
from tests.cli.kept import run_keeping
from tests.survey.world import END, answers, catalog, clicks, exposures, feelings, people

CONFIG = """\
state: ./state
engine: {threads: 1}
recommenders:
  - name: shop
    logs:
      exposures: {path: exposures.parquet}
      feedback: {path: clicks.parquet}
      catalog: {path: catalog.parquet}
      survey: {path: "survey/*.csv", columns: {answer: rating}, timezone: Europe/Berlin}
    window: 1h
    slices: {by: [scene]}
    experiments:
      - {name: lists, column: arm, split: {control: 1, new: 1}}
    survey:
      questions:
        happy: {}
        new to me: {asks: novelty}
        a surprise: {asks: serendipity}
        HOSTILE: {}
  - name: plain
    logs: {exposures: {path: exposures.parquet}}
    window: 1h
  - name: silent
    logs: {exposures: {path: exposures.parquet}, survey: {path: silent.csv}}
    window: 1h
"""


WHOLE = ("-c", "shop.yaml", "-r", "shop", "--weight", "--slices")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Active users are happier and respond more often; answers are texts, their times have no zone."""
    folder = tmp_path_factory.mktemp("survey")
    rng = np.random.default_rng(6)
    users = people(rng, 400)
    before = exposures(rng, users)
    before = before.assign(ts=before["ts"] - pd.Timedelta(days=9), request_id="b" + before["request_id"])
    shown = pd.concat([before, exposures(rng, users)])
    happy = feelings(rng, users, slope=1.0, by_lists=0.8)
    given = [
        answers(rng, users, happy, "happy", by_lists=1.5),
        answers(rng, users, feelings(rng, users), "new to me"),
        answers(rng, users, feelings(rng, users), "a surprise"),
        answers(rng, users, feelings(rng, users), HOSTILE, rate=0.01),
        answers(rng, users, feelings(rng, users), "never asked", rate=0.01),
    ]
    survey = pd.concat(given).astype({"answer": object})
    survey["ts"] = survey["ts"].dt.tz_convert("Europe/Berlin").dt.strftime("%Y-%m-%d %H:%M:%S")
    bad = survey.iloc[:2].assign(user_id=["nobody", "u1"], answer=["3", HOSTILE])
    (folder / "survey").mkdir()
    pd.concat([survey, bad]).rename(columns={"answer": "rating"}).to_csv(folder / "survey/1.csv", index=False)
    (folder / "silent.csv").write_text("user_id,ts,question,answer\n")
    shown.to_parquet(folder / "exposures.parquet")
    clicks(rng, shown).to_parquet(folder / "clicks.parquet")
    catalog().to_parquet(folder / "catalog.parquet")
    (folder / "shop.yaml").write_text(CONFIG.replace("HOSTILE", json.dumps(HOSTILE)))
    return folder


@pytest.fixture(scope="module")
def as_json(shop):
    ran = run_keeping("survey", *WHOLE, "-f", "json", cwd=shop)
    assert ran.code == 1, ran.err
    return json.loads(ran.out)


def test_every_question_has_its_mean_share_rate_and_weighted_mean(as_json):
    happy, new, surprise, hostile = as_json["questions"]
    assert (happy["question"], hostile["question"]) == ("happy", HOSTILE)
    for one in (happy, new, surprise):
        assert one["answer"]["status"] == "ok"
        assert 1 <= one["answer"]["lower"] < one["answer"]["value"] < one["answer"]["upper"] <= 5
        assert 0 < one["response_rate"]["value"] < 1
        assert one["weighted"]["status"] == "ok"
    assert hostile["answer"]["status"] == "no_data"
    assert hostile["answer"]["value"] is None
    assert happy["weighted"]["value"] < happy["answer"]["value"]


def test_left_out_answers_are_counted_by_name(as_json):
    assert as_json["left_out"]["to a question that the config does not name"] > 0
    assert as_json["left_out"]["of users that nobody served"] == 1
    assert as_json["left_out"]["that are no number"] == 1
    assert as_json["counted"] + sum(as_json["left_out"].values()) == as_json["rows"]


def test_times_without_a_zone_are_read_in_the_zone_of_the_config(as_json):
    assert as_json["to"] == END.isoformat().replace("+00:00", "Z")


def test_the_metric_that_makes_users_happy_is_found_and_novelty_is_beside_its_answers(as_json):
    happy, new, surprise, _ = as_json["questions"]
    verdicts = {one["metric"]: one["verdict"] for one in happy["metrics"]}
    assert verdicts["list_length"] == "tracks"
    assert {one["metric"] for one in new["metrics"]} == {"novelty", "self_information", "average_popularity"}
    assert {one["metric"] for one in surprise["metrics"]} == {"serendipity"}
    measured = next(one for one in new["metrics"] if one["labels"] == {"by": "item"})
    assert measured["mean_lower"] < measured["mean"] < measured["mean_upper"]
    assert measured["lower"] < measured["correlation"] < measured["upper"]


def test_arms_and_slices_have_means_of_their_own(as_json):
    happy = as_json["questions"][0]
    assert [one["answer"]["labels"]["arm"] for one in happy["arms"]] == ["control", "new"]
    assert happy["arms"][0]["difference"] is None
    assert happy["arms"][1]["difference"]["lower"] < happy["arms"][1]["difference"]["upper"]
    assert {one["labels"]["value"] for one in happy["slices"]} == {"home", "feed"}


def test_respondents_are_compared_with_the_others_and_the_exit_code_warns(as_json):
    assert "volume by=requests" in as_json["warning"]
    volume = next(
        one
        for one in as_json["respondents_against_others"]
        if one["difference"]["labels"]["metric"] == "volume"
    )
    assert volume["respondents"] > volume["others"]
    assert volume["difference"]["status"] == "violated"


@pytest.mark.parametrize("width", ["80", "120"])
def test_the_table_fits_the_terminal_and_holds_no_raw_text(shop, width):
    ran = run_keeping("survey", *WHOLE, cwd=shop, COLUMNS=width)
    assert ran.code == 1, ran.err
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert all(len(line) <= int(width) for line in ran.out.splitlines())
    assert "happy (1 to 5)" in ran.out
    assert "new to me (1 to 5, on novelty)" in ran.out
    assert "✓ list_length" in ran.out


def test_the_page_has_pictures_and_escapes_everything(shop):
    ran = run_keeping("survey", *WHOLE, "-f", "html", cwd=shop)
    assert ran.code == 1, ran.err
    assert ran.out.count("<svg") > 20
    assert "<b>" not in ran.out
    assert "&lt;b&gt;[U+001B]" in ran.out
    assert "http" not in ran.out


def test_a_span_reads_only_its_answers(shop):
    ran = run_monitor(
        "survey", "-c", "shop.yaml", "-r", "shop", "--from", "2026-01-07", "-f", "json", cwd=shop
    )
    assert ran.code == 3
    assert "no answer is in this span" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "name one of shop, silent"),
        (("-r", "plain"), 2, "plain has no answers: add logs.survey"),
        (("-r", "shopp"), 2, "shop, plain, silent"),
        (("-r", "silent"), 3, "silent: survey: no row in "),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(shop, arguments, code, said):
    ran = run_monitor("survey", "-c", "shop.yaml", *arguments, cwd=shop)
    assert ran.code == code
    assert said in " ".join(ran.err.split())
    assert "Traceback" not in ran.err


def test_the_daemon_and_check_do_not_open_the_answers(shop):
    (shop / "survey/broken.csv").write_text("nothing\nof use\n")
    try:
        ran = run_monitor(
            "check", "-c", "shop.yaml", "-r", "shop", "--from", "2026-01-06T20:00", "-f", "json", cwd=shop
        )
    finally:
        (shop / "survey/broken.csv").unlink()
    assert "survey" not in {one["labels"].get("log") for one in json.loads(ran.out)}


def test_an_unreadable_file_is_named_and_the_others_are_read(shop):
    (shop / "survey/broken.csv").write_text("nothing\nof use\n")
    try:
        ran = run_monitor("survey", "-c", "shop.yaml", "-r", "shop", "-f", "json", cwd=shop)
    finally:
        (shop / "survey/broken.csv").unlink()
    notes = " ".join(json.loads(ran.out)["notes"])
    assert "broken.csv was not read" in notes


def test_validate_looks_at_the_answers(shop):
    ran = run_monitor("validate", "-c", "shop.yaml", cwd=shop)
    assert "answers count; not:" in ran.out
    assert "to a question that the config does not name" in ran.out
    assert "\x1b" not in ran.out
