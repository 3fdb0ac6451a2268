"""`check` as cron, Airflow and a CI gate see it: exit codes, what is printed, and where."""

from __future__ import annotations

import json
import re
from collections import Counter
from xml.etree import ElementTree

import pandas as pd
import pytest

from tests.cli.conftest import exposures

KEYS = [
    "recommender", "check", "window_start", "window_end", "metric", "labels", "value", "samples", "lower",
    "upper", "status", "detail", "definition",
]  # fmt: skip
OF_RULES = ["violations", "threshold", "evidence"]
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


CODES = {"ok": 0, "violated": 1, "wrong": 2, "error": 3, "late": 3, "empty": 3, "measured": 3}
FORMS = [(config, "table") for config in CODES] + [("violated", "json"), ("error", "junit")]


@pytest.mark.parametrize(("config", "form"), FORMS)
def test_the_exit_code_is_the_verdict(monitor, config, form):
    ran = monitor("check", "--config", f"{config}.yaml", "--format", form)
    assert ran.code == CODES[config], ran
    assert "Traceback" not in ran.out + ran.err


def test_a_span_without_rows_is_no_data_and_not_ok(monitor):
    ran = monitor(
        "check", "--config", "ok.yaml", "--from", "2026-01-05T20:00:00Z", "--to", "2026-01-05T21:00:00Z"
    )
    assert ran.code == 3
    assert "no_data" in ran.out


def test_a_config_that_judges_nothing_is_no_data_and_its_values_are_there(monitor):
    ran = monitor("check", "--config", "measured.yaml", "--all")
    assert ran.code == 3
    assert ran.err.startswith("shop: nothing is judged: ")
    assert "add rules: or objectives: to the config" in ran.err
    assert "coverage" in ran.out
    assert ran.out.endswith("2 windows: nothing was judged\n")


def test_nothing_is_on_standard_error_when_piped(monitor):
    for config in ("violated", "error"):
        assert monitor("check", "--config", f"{config}.yaml", "--format", "json").err == ""


def test_json_has_the_promised_keys_and_times(monitor):
    results = json.loads(monitor("check", "--config", "violated.yaml", "--format", "json").out)
    assert len({(one["window_start"], one["window_end"]) for one in results}) == 2
    for one in results:
        assert list(one) == (KEYS + OF_RULES if one["metric"] == "rule" else KEYS)
        assert MOMENT.fullmatch(one["window_start"])
        assert MOMENT.fullmatch(one["window_end"])
        assert one["status"] in ("ok", "violated", "no_data", "late", "error", "undefined")
    rule = next(one for one in results if one["metric"] == "rule")
    assert rule["labels"] == {"rule": "blacklist", "kind": "hard"}
    assert rule["status"] == "violated"
    assert rule["value"] == rule["violations"] / rule["samples"]
    assert {row["item_id"] for row in rule["evidence"]} == {"i3"}
    assert not {row["user_id"] for row in rule["evidence"]} & {f"u{n}" for n in range(50)}


def test_every_format_says_why_a_status_is_not_ok(monitor):
    seen = set()
    for config in ("violated", "error", "late"):
        results = json.loads(monitor("check", "--config", f"{config}.yaml", "--format", "json").out)
        for one in results:
            seen.add(one["status"])
            assert one["status"] == "ok" or one["detail"], one
        root = ElementTree.fromstring(monitor("check", "--config", f"{config}.yaml", "--format", "junit").out)
        troubles = [node for case in root.iter("testcase") for node in case]
        said = {one["detail"] for one in results if one["status"] != "ok"}
        assert {node.get("message") for node in troubles} == said
        for node in troubles:
            assert node.text.startswith(node.get("message"))
    assert seen >= {"ok", "violated", "no_data", "late", "error"}


def test_junit_parses_and_its_counts_agree_with_the_json(monitor):
    for config in ("violated", "error"):
        root = ElementTree.fromstring(monitor("check", "--config", f"{config}.yaml", "--format", "junit").out)
        suite = root.find("testsuite")
        cases = suite.findall("testcase")
        counted = Counter(child.tag for case in cases for child in case)
        assert int(suite.get("tests")) == len(cases)
        assert int(suite.get("failures")) == counted["failure"]
        assert int(suite.get("errors")) == counted["error"]
        assert int(suite.get("skipped")) == counted["skipped"]
        results = json.loads(monitor("check", "--config", f"{config}.yaml", "--format", "json").out)
        statuses = Counter(one["status"] for one in results)
        assert len(results) == len(cases)
        assert counted["failure"] == statuses["violated"]
        assert counted["error"] >= statuses["error"]
        assert (counted["failure"] + counted["error"] > 0) == (config in ("violated", "error"))


def test_a_hostile_item_steers_neither_the_terminal_nor_the_xml(monitor):
    table = monitor("check", "--config", "hostile.yaml", "--format", "table")
    assert table.code == 1
    for text in (table.out, monitor("check", "--config", "hostile.yaml", "--format", "junit").out):
        assert "\x1b" not in text
        assert "\u202e" not in text
    results = json.loads(monitor("check", "--config", "hostile.yaml", "--format", "json").out)
    shown = [row["item_id"] for one in results for row in one.get("evidence", [])]
    assert any("<b>" in str(item) for item in shown)


def test_the_table_fits_80_columns_of_a_terminal(monitor):
    a_terminal = {"TTY_COMPATIBLE": "1", "TERM": "dumb", "COLUMNS": "80"}
    lines = monitor("check", "--config", "error.yaml", "--format", "table", **a_terminal).out.splitlines()
    assert len(lines) > 10
    assert max(map(len, lines)) <= 80


def test_the_table_ends_with_the_verdicts(monitor):
    for config in ("ok", "violated", "hostile", "error", "late"):
        lines = monitor("check", "--config", f"{config}.yaml", "--format", "table").out.splitlines()
        assert re.fullmatch(
            r"\d+ windows?, \d+ verdicts?: \d+ (ok|violated|no_data|late|error)(, \d+ \w+)*", lines[-1]
        )
    assert (
        "violated" in monitor("check", "--config", "violated.yaml", "--format", "table").out.splitlines()[-1]
    )


def test_the_table_shows_everything_only_when_asked(monitor):
    few = monitor("check", "--config", "ok.yaml", "--format", "table").out
    every = monitor("check", "--config", "ok.yaml", "--all").out
    assert "personalization" not in few
    assert "--all shows them" in few
    assert "personalization" in every


def test_a_span_chooses_the_windows(monitor):
    ran = monitor("check", "--config", "ok.yaml", "-f", "json", "--from", "2026-01-05T11:00:00+00:00")
    assert {one["window_start"] for one in json.loads(ran.out)} == {"2026-01-05T11:00:00Z"}


def test_a_stray_row_of_1970_is_judged_and_its_years_without_rows_are_one_line(monitor, world):
    rows = exposures().replace("i3", "i99")
    stray = rows[:1].assign(ts=pd.Timestamp(0, tz="UTC"), item_id="i3")
    pd.concat([stray, rows]).to_parquet(world / "stray.parquet")
    text = (world / "violated.yaml").read_text().replace("log.parquet", "stray.parquet")
    (world / "stray.yaml").write_text(text)
    ran = monitor("check", "--config", "stray.yaml", "--format", "json")
    windows = {one["window_start"] for one in json.loads(ran.out)}
    assert windows == {"1970-01-01T00:00:00Z", "2026-01-05T10:00:00Z", "2026-01-05T11:00:00Z"}
    assert ran.code == 1  # the stray row shows a blacklisted item
    assert ran.err.count("\n") == 1
    assert "no row from 1970-01-01T01:00:00Z to 2026-01-05T10:00:00Z" in ran.err
    # Without a violation the gap is still no data, and never ok.
    ok = (world / "ok.yaml").read_text().replace("log.parquet", "stray.parquet")
    (world / "stray_ok.yaml").write_text(ok)
    assert monitor("check", "--config", "stray_ok.yaml").code == 3
    since = monitor("check", "--config", "stray_ok.yaml", "--from", "2026-01-05")
    assert (since.code, since.err) == (3, "")  # the hours of January before the first row hold nothing
    assert monitor("check", "--config", "stray_ok.yaml", "--from", "2026-01-05T10:00:00Z").code == 0


def test_windows_that_have_not_begun_are_not_judged(monitor):
    ran = monitor(
        "check", "--config", "late.yaml", "-f", "json", "--from", "2199-01-01", "--to", "2199-01-02"
    )
    assert (ran.code, json.loads(ran.out)) == (3, [])


def test_check_leaves_nothing_behind(monitor, world):
    before = sorted(path.name for path in world.iterdir())
    assert monitor("check", "--config", "ok.yaml", again=True).code == 0
    assert sorted(path.name for path in world.iterdir()) == before


def test_a_log_without_files_is_reported_with_and_without_a_span(monitor, world):
    whole = monitor("check", "--config", "empty.yaml")
    span = monitor("check", "--config", "empty.yaml", "--from", "2026-01-05", "--to", "2026-01-05T01:00:00Z")
    said = f"shop: exposures: no file matches {world / 'nothing-*.parquet'}\n"
    assert (whole.err, span.err) == (said, said)
    assert (whole.code, span.code) == (3, 3)


STOLEN = """\
name: ours
expectations:
  - type: unexpected_rows_expectation
    kwargs: {{unexpected_rows_query: "{query}"}}
    meta: {{rule: thief, kind: hard}}
"""


@pytest.mark.parametrize("command", ["validate", "check"])
def test_a_suite_cannot_read_or_write_a_file_by_its_sql(monitor, world, command):
    config = (
        (world / "ok.yaml").read_text().replace("[{pack: lists}]", "[{suite: thief.yaml}, {pack: lists}]")
    )
    (world / "thief.yaml.config").write_text(config)
    for query, why in (
        ("SELECT content AS user_id FROM read_text('/etc/passwd'), {batch}", "reads read_text(...)"),
        ("SELECT * FROM {batch}; COPY (SELECT 1) TO 'stolen.csv'", "holds 2 statements"),
    ):
        (world / "thief.yaml").write_text(STOLEN.format(query=query))
        ran = monitor(command, "--config", "thief.yaml.config", again=True)
        assert ran.code == 2
        assert ran.out == "" or command == "validate", "only `validate` reports what else it saw"
        assert "root:" not in ran.out + ran.err
        place = "thief.yaml: expectations[0].kwargs.unexpected_rows_query: the query of the rule 'thief' "
        assert place + why in ran.err
        assert not (world / "stolen.csv").exists()
