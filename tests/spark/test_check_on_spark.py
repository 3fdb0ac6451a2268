"""The whole way: `recsys-monitor check` on Spark says what it says on DuckDB, rules and metrics alike."""

from __future__ import annotations

import pytest

from tests.cli.conftest import run_monitor
from tests.spark.faulty import PACKS, SECOND, assert_same, exposures, results_of, write


@pytest.fixture(scope="module")
def checked(spark_is_here, tmp_path_factory):
    """The results of the second hour on each engine, by their labels."""
    folder = tmp_path_factory.mktemp("faulty")
    write(folder)
    found = {}
    for kind in ("duckdb", "spark"):
        ran = run_monitor(
            "check", "-c", f"{kind}.yaml", "--from", SECOND.isoformat(), "--format", "json",
            cwd=folder,
        )  # fmt: skip
        assert "Traceback" not in ran.err, ran.err
        assert ran.out.startswith("["), ran.err
        found[kind] = results_of(ran.out)
    assert not (folder / "spark-warehouse").exists()
    return found


def test_every_result_is_the_same_to_nine_digits(checked):
    wanted, found = checked["duckdb"], checked["spark"]
    assert_same(found, wanted)


def test_no_result_is_an_error_and_nearly_every_rule_is_broken(checked):
    results = list(checked["duckdb"].values())
    assert not [one for one in results if one["status"] == "error"]
    rules = [one for one in results if one["metric"] == "rule"]
    assert len(rules) > len(PACKS) + 8
    assert sum(one["violations"] > 0 for one in rules if one["violations"] is not None) > 25


def test_the_evidence_of_every_broken_rule_is_the_same(checked):
    compared = 0
    for key, want in checked["duckdb"].items():
        if want.get("evidence"):
            got = checked["spark"][key]["evidence"]
            assert [row.keys() for row in got] == [row.keys() for row in want["evidence"]], key
            compared += got == want["evidence"]
            assert len(got) == len(want["evidence"]) <= 3
    assert compared > 15


def test_a_banned_id_beyond_the_signed_numbers_is_found_on_both(checked):
    shown = exposures()
    banned = [n for n, row in enumerate(shown) if n % 5 == 0 and row["ts"] >= SECOND]
    for results in checked.values():
        (found,) = [one for one in results.values() if one["labels"].get("rule") == "own-7"]
        assert found["violations"] == len(banned) > 5


def test_a_status_of_one_is_true_on_both_however_it_is_written(checked):
    shown = [row["item_id"] for row in exposures() if row["ts"] >= SECOND][:-1]
    for rule, off in (
        ("own-8", ["i5"]),
        ("own-9", ["i3", "i5", "i9"]),
        ("own-10", [f"i{n}" for n in range(10) if n != 3]),
    ):
        for results in checked.values():
            (found,) = [one for one in results.values() if one["labels"].get("rule") == rule]
            assert found["violations"] == sum(item in off for item in shown) > 5
