"""Standard output carries results only, whatever a library prints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import ROOT, clean_environment, run_monitor

NOISE = """\
import os, sys
said = set()
def noisy(event, arguments):
    if event == "import" and arguments[0] in ("great_expectations", "sqlalchemy", "duckdb"):
        if arguments[0] not in said:
            said.add(arguments[0])
            print("noise of", arguments[0], flush=True)
            os.system("echo noise of a child")
sys.addaudithook(noisy)
"""
OLD_FASHIONED = """\
name: old
expectations:
  - type: expect_column_values_to_not_be_null
    kwargs: {column: item_id, row_condition: 'col("position") > 1', condition_parser: great_expectations}
    meta: {rule: old, kind: hard}
  - type: expect_column_values_to_be_between
    kwargs: {column: position, min_value: 1, result_format: COMPLETE, catch_exceptions: true}
    meta: {rule: older, kind: hard}
  - type: unexpected_rows_expectation
    kwargs: {unexpected_rows_query: "SELECT * FROM {batch} WHERE position > 99;"}
    meta: {rule: query, kind: hard}
"""


@pytest.fixture(scope="module")
def noisy(world, tmp_path_factory):
    """The command in a Python whose libraries print to standard output when they are imported."""
    folder = tmp_path_factory.mktemp("noisy")
    (folder / "sitecustomize.py").write_text(NOISE)
    (world / "old.yaml.suite").write_text(OLD_FASHIONED)
    text = (world / "violated.yaml").read_text().replace("rules: [", "rules: [{suite: old.yaml.suite}, ")
    (world / "noisy.yaml").write_text(text.replace("./state", "./noisy") + "server: {listen: 127.0.0.1:0}\n")
    path = f"{folder}:{ROOT}"

    def run(*arguments):
        ran = run_monitor(*arguments, cwd=world, fresh=True, PYTHONPATH=path)
        assert "noise of a child" in ran.err or arguments[0] == "power"
        return ran

    run.path = path
    run.folder = world
    return run


def test_standard_output_holds_only_the_json(noisy):
    results = json.loads(noisy("check", "--config", "noisy.yaml", "--format", "json").out)
    assert {one["labels"].get("rule") for one in results} >= {"old", "older", "query", "blacklist"}


def test_standard_output_holds_only_the_junit_report(noisy):
    assert ElementTree.fromstring(noisy("check", "--config", "noisy.yaml", "--format", "junit").out).tag


def test_standard_output_holds_only_the_table_and_the_summary(noisy):
    assert "noise" not in noisy("check", "--config", "noisy.yaml").out
    assert "noise" not in noisy("validate", "--config", "noisy.yaml").out
    assert json.loads(noisy("validate", "--config", "noisy.yaml", "--no-logs", "--format", "json").out)
    answer = noisy("power", "--baseline", "5%", "--effect", "2%", "--format", "json")
    assert json.loads(answer.out)["arms"] == 2


def test_standard_output_holds_only_the_exported_history(noisy):
    ran = noisy("backfill", "--config", "noisy.yaml", "--from", "2026-01-05", "--to", "2026-01-06")
    assert (ran.code, "noise" in ran.out) == (0, False)
    state = [noisy.folder / "noisy", *(noisy.folder / "noisy").rglob("*")]
    assert {"salt", "history.sqlite", "kept"} <= {path.name for path in state}
    assert not [path for path in state if path.stat().st_mode & 0o077]  # users' ids are for nobody else
    lines = noisy("history", "export", "--config", "noisy.yaml").out.splitlines()
    results = [json.loads(line) for line in lines]
    assert {one["status"] for one in results} >= {"ok", "violated"}
    assert all(one["detail"] for one in results if one["status"] != "ok")


def test_standard_output_holds_only_the_printed_config(noisy):
    text = noisy("init", "log.parquet", "--output", "-").out
    assert "noise" not in text
    assert "recommenders:" in text


def test_the_daemon_says_on_standard_output_where_it_is_and_nothing_else(noisy, world):
    daemon = subprocess.Popen(
        [sys.executable, "-m", "monitor", "run", "--config", "noisy.yaml"],
        cwd=world, env=clean_environment(PYTHONPATH=noisy.path), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        said = [daemon.stdout.readline(), daemon.stdout.readline()]
        daemon.send_signal(signal.SIGTERM)
        rest, err = daemon.communicate(timeout=60)
    finally:
        daemon.kill()
    assert said[0].startswith("status page  http://127.0.0.1:")
    assert said[1].startswith("metrics      http://127.0.0.1:")
    assert rest == ""
    assert "noise of a child" in err


def test_a_closed_standard_error_does_not_stop_the_results(world):
    command = f"{sys.executable} -m monitor validate --config ok.yaml 2>&-"
    done = subprocess.run(
        command, shell=True, cwd=world, env=clean_environment(), capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, b"good" in done.stdout) == (0, True)


def in_a_shell(command: str, world, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, cwd=world, env=clean_environment(**environment), capture_output=True,
        encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "closed", "code"),
    [
        ("validate --no-logs --config ok.yaml", ">&-", 0),
        ("power --baseline 5% --effect 2%", ">&-", 0),
        ("validate --no-logs --config wrong.yaml", ">&-", 2),
        ("validate --no-logs --config wrong.yaml", "2>&-", 2),
        ("validate --no-logs --config wrong.yaml", ">&- 2>&-", 2),
    ],
)
def test_a_closed_stream_does_not_change_the_exit_code(world, arguments, closed, code):
    done = in_a_shell(f"{sys.executable} -m monitor {arguments} {closed}", world)
    assert done.returncode == code, done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize(
    "arguments", ["validate --no-logs --config ok.yaml", "power --baseline 5% --effect 2% --format json"]
)
def test_a_full_disk_is_named_and_is_no_bug_of_the_monitor(world, arguments):
    done = in_a_shell(f"{sys.executable} -m monitor {arguments} >/dev/full", world)
    assert done.returncode == 2
    assert done.stderr.startswith("error: No space left on device\nMake room where the command writes: ")
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("check", 2),
        ("check --config ok.yaml --from 2026-01-02 --to 2026-01-01", 2),
        ("nothing", 2),
        ("check --help", 0),
    ],
)
def test_a_closed_pipe_gives_a_help_or_a_wrong_usage_no_other_exit_code(world, arguments, code):
    """Rich ends with 1 there, which means that something is violated."""
    done = in_a_shell(
        f"{{ {sys.executable} -m monitor {arguments} 2>&1; echo $? >code; }} | true; cat code", world
    )
    assert done.stdout == f"{code}\n"


def test_a_character_that_the_terminal_does_not_have_is_escaped(world):
    code = "from monitor.cli.terminal import *\nwith guarded(): claim_output(); say('✗ failed')"
    done = in_a_shell(f'{sys.executable} -c "{code}"', world, PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\u2717 failed\n", "")


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_a_page_is_utf_8_as_it_says_whatever_the_encoding_of_the_terminal_is(world, variables):
    code = "from monitor.cli.terminal import *\nwith guarded(): write('<p>5\\xa0% \\u2717</p>')"
    done = in_a_shell(f'{sys.executable} -c "{code}"', world, PYTHONCOERCECLOCALE="0", **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "<p>5\xa0% \u2717</p>\n", "")


def test_a_character_that_the_locale_does_not_have_is_escaped(world):
    code = "from monitor.cli.terminal import *\nwith guarded(): claim_output(); say('\\u2717 failed')"
    c_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = in_a_shell(f'{sys.executable} -c "{code}"', world, **c_locale)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\u2717 failed\n", "")
