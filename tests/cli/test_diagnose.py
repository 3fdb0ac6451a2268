"""`recsys-monitor diagnose`: the page's example, JSON, exit codes, the user's own scoring function."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import ROOT, run_monitor
from tests.models.model_world import WEIGHTS, write_world

CONFIG = """\
recommenders:
  - name: shop
    window: 1h
    logs:
      samples: {{path: samples/*.parquet}}
    models: {models}
"""
SCORER = f"""\
import numpy as np

def score(features):
    make_noise("at a call")
    return 1 / (1 + np.exp(-sum(weight * features[name] for name, weight in {WEIGHTS!r}.items())))

def wrong(features):
    return [0.5]

def unsure(features):
    return np.where(features["age"] > 0, np.nan, 0.5)

def broken(features):
    raise RuntimeError("the model is not here")
"""
NOISE = """\
import logging, os, sys, warnings

def make_noise(when):
    if "NOISE" not in os.environ:
        return
    logging.basicConfig(stream=sys.stdout, level=logging.INFO)
    print("noise: printed", when)
    warnings.warn(f"noise: warned {when}", stacklevel=1)
    logging.info("noise: logged %s", when)
    logging.StreamHandler(sys.__stdout__).emit(logging.makeLogRecord({"msg": f"noise: handled {when}"}))
    os.write(1, f"noise: written {when}\\n".encode())
    os.system(f"echo noise: echoed {when}")

make_noise("at import")
"""
WAYS = ("printed", "warned", "logged", "handled", "written", "echoed")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    write_world(folder / "samples")
    (folder / "ranker.py").write_text(NOISE + SCORER)
    return folder


def diagnose(folder, *arguments: str, models: str = "{}", **environment: str):
    (folder / "shop.yaml").write_text(CONFIG.format(models=models))
    path = f"{ROOT}:{folder}"
    return run_monitor(
        "diagnose", "--config", "shop.yaml", *arguments, cwd=folder, PYTHONPATH=path, **environment
    )


def causes(ran):
    return {one["labels"]["cause"]: one for one in json.loads(ran.out) if one["metric"] == "auc_gap_cause"}


def test_the_page_shows_what_is_printed(world):
    ran = diagnose(world, "--model", "ranker-v7")
    page = (ROOT / "docs" / "models.md").read_text("utf-8")
    shown = page.rsplit("```text\n", 1)[1].split("```")[0]
    printed = "\n".join(line.rstrip() for line in ran.out.splitlines()).strip() + "\n"
    assert printed == shown, f"docs/models.md should show:\n{printed}"
    assert (ran.code, ran.err) == (1, "")


def test_json_has_the_words_and_the_rows_that_prove_it(world):
    found = causes(diagnose(world, "--format", "json"))
    (cause,) = found.values()
    assert cause["labels"] == {"pair": "test_online", "model": "ranker-v7", "cause": "serving_skew"}
    assert 0.9 < cause["value"] <= 1
    assert "'age' default" in cause["detail"]
    assert cause["evidence"]


def test_with_the_models_own_scoring_the_share_is_exact(world):
    found = causes(diagnose(world, "--format", "json", models="{scorer: 'ranker:score'}"))
    assert found["serving_skew"]["value"] == pytest.approx(1, abs=0.05)
    assert "surrogate" not in found["serving_skew"]["detail"]


@pytest.mark.parametrize(
    ("scorer", "why"),
    [
        ("ranker:none", "ranker has no function 'none'"),
        ("nowhere:score", "there is no module nowhere"),
        ("ranker:wrong", "ranker:wrong gave (1,) scores for"),
        ("ranker:unsure", "ranker:unsure gave no number for"),
        ("ranker:broken", "ranker:broken failed: RuntimeError: the model is not here"),
    ],
)
def test_a_scoring_function_that_fails_is_said_and_the_surrogate_takes_its_place(world, scorer, why):
    found = causes(diagnose(world, "--format", "json", models=f"{{scorer: '{scorer}'}}"))
    assert found["serving_skew"]["value"] > 0.9
    assert f"without the scoring function: {why}" in found["serving_skew"]["detail"]


def test_a_model_that_the_samples_do_not_have_is_a_mistake(world):
    ran = diagnose(world, "--model", "ranker-v8")
    assert (ran.code, ran.out) == (2, "")
    assert "no row of a model 'ranker-v8'; without --model every model is diagnosed" in ran.err


def test_a_config_without_samples_is_an_error_that_names_the_documentation(tmp_path):
    (tmp_path / "shop.yaml").write_text("recommenders: [{name: shop, logs: {exposures: {path: x.csv}}}]\n")
    ran = run_monitor("diagnose", "--config", "shop.yaml", cwd=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "no recommender of this config has logs.samples; docs/models.md says what it holds" in ran.err
    ran = run_monitor("diagnose", "--config", "shop.yaml", "-r", "shop", cwd=tmp_path)
    assert "'shop' does not have logs.samples; docs/models.md says what it holds" in ran.err


def test_without_a_gap_the_exit_code_is_0(tmp_path):
    write_world(tmp_path / "samples", share=0.0)
    ran = diagnose(tmp_path)
    assert ran.code == 0
    assert "violated" not in ran.out
    assert "of the gap" not in ran.out


def test_too_few_rows_to_tell_is_3(tmp_path):
    write_world(tmp_path / "samples", n=60)
    ran = diagnose(tmp_path)
    assert ran.code == 3
    assert "an interval needs at least 10" in " ".join(ran.out.split())


def test_unreadable_files_of_samples_are_reported(tmp_path):
    ran = diagnose(tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "shop: samples: no file matches samples/*.parquet" in ran.err.replace(str(tmp_path) + "/", "")
    write_world(tmp_path / "samples", n=600)
    (tmp_path / "samples" / "half.parquet").write_bytes(b"PAR1 half a file")
    ran = diagnose(tmp_path)
    assert "samples: 1 of 5 files are skipped, such as" in ran.err
    assert "half.parquet" in ran.err
    assert "AUC test minus online" in ran.out  # the rest is judged


def said_in(text):
    """All of a table; of JSON everything but the examples, which are any of the rows."""
    if not text.startswith("["):
        return text
    return [{name: said for name, said in one.items() if name != "evidence"} for one in json.loads(text)]


@pytest.mark.parametrize("output", ["json", "table"])
def test_standard_output_holds_only_the_results_even_if_a_scorer_prints(world, output):
    quiet = diagnose(world, "--format", output, models="{scorer: 'ranker:score'}")
    noisy = diagnose(world, "--format", output, models="{scorer: 'ranker:score'}", NOISE="1")
    assert (said_in(noisy.out), noisy.code) == (said_in(quiet.out), quiet.code)
    assert "noise" not in quiet.err
    for when in ("at import", "at a call"):
        assert [way for way in WAYS if f"noise: {way} {when}" not in noisy.err] == []


BROKEN = """\
import monitor.models.check as check
from monitor.cli.app import main

def fails(*_):
    raise RuntimeError("no such leaf")

setattr(check, {step!r}, fails)
main()
"""


@pytest.mark.parametrize("step", ["explain", "features_in_service"])
def test_a_diagnosis_that_fails_shows_the_gaps_that_are_known(world, step):
    (world / "shop.yaml").write_text(CONFIG.format(models="{}"))
    ran = run_monitor("diagnose", "--config", "shop.yaml", cwd=world, code=BROKEN.format(step=step))
    shown = " ".join(ran.out.split())
    assert "✗ violated AUC test minus online 0.0926" in shown
    assert "its features, scores and causes are not all known: no such leaf" in shown
    assert "Its causes are not known, because the diagnosis failed." in shown
    assert "shop: the diagnosis failed: no such leaf" in ran.err
    assert (ran.code, "bug" in ran.err, "No cause" in ran.out) == (1, False, False)


def test_where_the_diagnosis_fails_no_exit_code_says_that_all_is_well(tmp_path):
    write_world(tmp_path / "samples", share=0.0, n=2_000)
    (tmp_path / "shop.yaml").write_text(CONFIG.format(models="{gaps: {test_online: 0.2, train_test: 0.2}}"))
    how = ("diagnose", "--config", "shop.yaml")
    assert run_monitor(*how, cwd=tmp_path).code == 0
    ran = run_monitor(*how, cwd=tmp_path, code=BROKEN.format(step="features_in_service"))
    assert (ran.code, "the diagnosis failed: no such leaf" in ran.err) == (3, True)
    ran = run_monitor(*how, "--model", "ranker-v7", cwd=tmp_path, code=BROKEN.format(step="measure_splits"))
    assert (ran.code, ran.out) == (3, "")
    assert "no such leaf" in ran.err
