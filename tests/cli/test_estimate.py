"""`recsys-monitor estimate`: what it prints, JSON, exit codes, and wrong usage with what to do."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.cli.conftest import run_monitor
from tests.off_policy.conftest import make_logs, write


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("policies")
    make_logs(folder, 1)
    return folder


def command(world, *arguments):
    return run_monitor("estimate", "--config", "config.yaml", *arguments, cwd=world)


def test_the_table_has_the_overlap_and_the_values(world):
    ran = command(world, "-r", "logged", "--target", "wanted")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "logged  2026-01-05 10:00 to 12:00 UTC"
    assert lines[1] == "target wanted, event click"
    names = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert names[2:] == [
        "overlap",
        "rows_without_weight",
        "effective_sample_size",
        "largest_weight",
        "mean_weight",
        "unsupported",
        "lists_without_weight",
        "effective_lists_by_position",
        "effective_lists_by_cascade",
        "effective_lists_by_list",
        "value",
        "logged",
        "ips",
        "clipped_ips",
        "self_normalised_ips",
        "ips_by_position",
        "self_normalised_by_position",
        "ips_by_cascade",
        "self_normalised_by_cascade",
        "ips_by_list",
        "self_normalised_by_list",
        "direct_method",
        "doubly_robust",
    ]
    assert "2 with propensity NaN" in ran.out
    assert "16 with a row without a weight" in ran.out


def test_json_has_the_shape_of_check(world):
    ran = command(world, "-r", "logged", "--target-column", "own", "--event", "order", "--format", "json")
    assert ran.code == 0
    results = {one["labels"]["by"]: one for one in json.loads(ran.out)}
    ips = results["clipped_ips"]
    assert ips["labels"] == {"by": "clipped_ips", "target": "own", "event": "order"}
    assert (ips["recommender"], ips["check"], ips["metric"]) == ("logged", "estimate", "policy_value")
    assert ips["lower"] < ips["value"] < ips["upper"]
    assert ips["definition"] == "1;cap=10"
    assert results["unsupported"]["status"] == "no_data"
    assert results["unsupported"]["detail"] == "the target is known only for the items that were shown"


def test_a_span_with_little_overlap_ends_with_no_data_and_its_reason(world, tmp_path):
    make_logs(tmp_path, 1, lists=20)
    ran = command(tmp_path, "-r", "logged", "--target", "wanted")
    assert ran.code == 3
    assert "no_data" in ran.out
    assert "40 rows" in ran.out


def test_a_target_without_a_row_in_the_span_gives_no_estimate(tmp_path):
    made = make_logs(tmp_path, 1, lists=20)
    at = made.wanted["ts"]
    later = at.where(at < pd.Timestamp("2026-01-05T11:00Z"), at + pd.Timedelta("4h"))
    write(tmp_path, "wanted", made.wanted.assign(ts=later))
    ran = command(
        tmp_path,
        "-r",
        "logged",
        "--target",
        "wanted",
        "--from",
        "2026-01-05T11:00:00Z",
        "--to",
        "2026-01-05T12:00",
    )
    assert (ran.code, ran.out) == (3, "")
    assert "wanted: its exposures have no row in this span, so its policy is unknown" in ran.err


def test_files_that_cannot_be_read_are_named(tmp_path):
    make_logs(tmp_path, 1)
    (tmp_path / "wanted-2.parquet").write_bytes(b"PAR1 is not all")
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("wanted.parquet", '"wanted*.parquet"'), "utf-8")
    ran = command(tmp_path, "-r", "logged", "--target", "wanted")
    assert ran.code == 0
    said = " ".join(ran.err.split())
    assert "1 of 2 files are skipped, such as" in said
    assert "the policy of wanted is that of the other files" in said


def test_a_log_whose_only_file_cannot_be_read_names_the_file_and_no_missing_column(tmp_path):
    make_logs(tmp_path, 1)
    (tmp_path / "logged.parquet").write_bytes(b"PAR1 is not all")
    ran = command(tmp_path, "-r", "logged", "--target", "wanted")
    assert ran.code == 3
    assert "logged.parquet" in ran.err
    assert "propensity" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "give --target or --target-column, one of them"),
        (("--target", "wanted", "--target-column", "own"), 2, "one of them"),
        (("--target", "wanted"), 2, "name the log: one of logged, wanted"),
        (("-r", "logged", "--target", "logged"), 2, "logged is the log itself"),
        (("-r", "logged", "--target", "nobody"), 2, "no recommender is called 'nobody'"),
        (("-r", "logged", "--target", "wanted", "--event", "buy"), 2, "there are: click, order"),
        (("-r", "logged", "--target-column", "nothing"), 2, "have no column 'nothing'"),
        (("-r", "logged", "--target-column", "item_id"), 2, "is string, not a number from 0 to 1"),
        (("-r", "logged", "--target", "wanted", "--cap", "0.5"), 2, "0.5 is no weight"),
        (("-r", "logged", "--target", "wanted", "--cap", "nan"), 2, "nan is no weight"),
        (("-r", "logged", "--target", "wanted", "--context", "item_id"), 2, "item_id belongs to the item"),
        (("-r", "logged", "--target-column", "own", "--context", "own"), 2, "own belongs to the item"),
        (("-r", "wanted", "--target", "logged"), 2, "wanted has no feedback"),
        (("-r", "logged", "--target", "wanted", "--from", "2030-01-01"), 3, "has no window in this span"),
    ],
)
def test_wrong_usage_ends_in_a_sentence(world, arguments, code, message):
    ran = command(world, *arguments)
    assert ran.code == code
    assert message in " ".join(ran.err.replace("│", " ").split())
    assert "Traceback" not in ran.err
