"""Every command as a process: what it says, when it fails, and that it never shows a traceback."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from monitor import __version__
from monitor.cli.reference import commands, reference
from monitor.service.state_lock import StateLock
from tests.cli.conftest import ROOT, clean_environment, run_monitor
from tests.forked import Forked

COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_the_help_of_a_command_teaches_by_an_example_and_names_its_exit_codes(monitor, path):
    words = path.split()[1:]
    ran = monitor(*words, "--help", COLUMNS="200")
    assert ran.code == 0
    assert ran.err == ""
    assert f"Example: recsys-monitor {' '.join(words)}" in ran.out
    assert "Exit codes: 0 " in ran.out
    for option in COMMANDS[path].params:
        assert max(option.opts, key=len).lstrip("-") in ran.out.replace("LOG...", "log")
        assert option.help
    prose = [line.strip() for line in ran.out.partition("╭")[0].splitlines()]
    for line, following in pairwise(prose):
        assert not (line and following) or len(line) + 1 + len(following.split()[0]) > 198, line


def test_the_page_of_the_command_line_is_the_generated_one():
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert page == reference(), "run: make docs"
    for path in COMMANDS:
        assert f"\n## {path.removeprefix('recsys-monitor ')}\n" in page


def run_and_then(world, arguments, code):
    """Run a command in a Python of its own, and then this code."""
    before = (
        f"import gc, sys; sys.argv = {['x', *arguments]}\n"
        "from monitor.cli.app import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
    )
    return subprocess.run(
        [sys.executable, "-c", before + code],
        cwd=world, env=clean_environment(), capture_output=True, check=False,
    )  # fmt: skip


def test_help_needs_no_heavy_import(world):
    done = run_and_then(
        world,
        ["check", "--help"],
        "heavy = {'great_expectations', 'duckdb', 'ibis', 'pandas', 'sqlalchemy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)",
    )
    assert done.returncode == 0, done.stderr.decode()


def test_no_garbage_is_searched_for_among_modules_that_are_being_loaded(world):
    done = run_and_then(
        world, ["--version"], "import monitor.judging.runtime; sys.exit(gc.get_stats()[2]['collections'])"
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_version_is_printed(monitor):
    ran = monitor("--version")
    assert (ran.code, ran.out, ran.err) == (0, f"{__version__}\n", "")


USAGE = {
    "no such command": (["chek"], "chek"),
    "no such option": (["check", "--conifg", "ok.yaml"], "--conifg"),
    "no config": (["check"], "--config"),
    "no such format": (["check", "-c", "ok.yaml", "--format", "xml"], "xml"),
    "no time": (["check", "-c", "ok.yaml", "--from", "yesterday"], "2026-01-31T10:00:00Z"),
    "must lie between 1970 and 2199": (
        ["check", "-c", "ok.yaml", "--from", "0001-01-01T00:00:00+14:00"],
        "not a time",
    ),
    "an empty span": (
        ["check", "-c", "ok.yaml", "--from", "2026-01-02", "--to", "2026-01-02"],
        "must be later",
    ),
    "no such recommender": (["check", "-c", "ok.yaml", "-r", "shopp"], "there are: shop"),
    "no such recommender to export": (["history", "export", "-c", "ok.yaml", "-r", "x"], "there are: shop"),
    "a span without an end": (["backfill", "-c", "ok.yaml", "--from", "2026-01-01"], "--to"),
    "no log to look at": (["init"], "LOG"),
    "no such log": (["init", "nothing-*.csv", "-o", "new.yaml"], "no file matches"),
    "no config file": (["check", "-c", "nowhere.yaml"], "No such file"),
    "a folder as config": (["validate", "-c", "."], "Is a directory"),
    "a wrong config": (["validate", "-c", "wrong.yaml"], "did you mean name?"),
    "a wrong config to run": (["run", "-c", "wrong.yaml"], "stat: unknown key; did you mean state?"),
    "no history": (["history", "export", "-c", "ok.yaml"], "there is no history at"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_mistake_ends_with_2_and_a_sentence_that_helps(monitor, case):
    arguments, hint = USAGE[case]
    ran = monitor(*arguments, again=True, COLUMNS="200")
    assert ran.code == 2, ran
    assert hint in re.sub(r"\s+", " ", ran.err)
    assert ran.out == ""
    assert "Traceback" not in ran.err


_DOCUMENTED = re.compile(
    r"(?<![\w/-])recsys-monitor ((?:history )?[a-z][a-z-]*)\b([^`|\n]*(?:\\\\\n[^`|\n]*)*)"
)


def test_every_command_that_the_documentation_names_exists_with_its_options():
    """In code only: a sentence about recsys-monitor names no command."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*")]
    named = set()
    for page in pages:
        text = page.read_text("utf-8") if page.is_file() else ""
        code = [*re.findall(r"`([^`\n]+)`", text), *re.findall(r"^    .*(?:\\\n.*)*", text, re.MULTILINE)]
        for piece in code:
            for command, rest in _DOCUMENTED.findall(piece):
                known = COMMANDS.get(f"recsys-monitor {command}")
                assert known is not None, f"{page.name} names the command {command!r}"
                named.add(command)
                options = {option for one in known.params for option in (*one.opts, *one.secondary_opts)}
                options |= {"--help", "-h"}
                for option in re.findall(r"(?<!\S)\[?(--?[a-z][a-z-]*)", rest.split("#")[0]):
                    assert option in options, f"{page.name}: {command} has no {option}"
    assert named == {path.removeprefix("recsys-monitor ") for path in COMMANDS}


def test_no_page_shows_how_python_writes_a_setting():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        assert not re.search(r"Settings\(|datetime\.|frozenset\(|<class|=None", page.read_text("utf-8")), page


def test_every_mistake_of_a_config_is_printed_at_once(monitor):
    err = monitor("validate", "--config", "wrong.yaml").err
    assert "wrong.yaml: 4 problems" in err
    for place in ("recommenders[0].name:", "recommenders[0].logs:", "recommenders[0].nam:", "stat:"):
        assert place in err


def test_a_good_config_is_called_good(monitor):
    ran = monitor("validate", "--config", "ok.yaml")
    assert ran.code == 0
    assert "config   1 recommender, 4 rules" in ran.out
    assert "ok.yaml: good" in ran.out
    assert ran.err == ""


def test_a_wrong_web_config_is_found_by_validate(world, monitor):
    text = (world / "ok.yaml").read_text()
    (world / "web.yaml").write_text("basic_auth_user: {}\n")
    (world / "with_web.yaml").write_text(text + "server: {web_config: web.yaml}\n")
    ran = monitor("validate", "--config", "with_web.yaml")
    assert ran.code == 2
    assert "basic_auth_user" in ran.err


def test_mistakes_of_the_rules_and_of_the_web_config_come_together(world, monitor):
    (world / "web.yaml").write_text("basic_auth_user: {}\n")
    text = (world / "ok.yaml").read_text().replace("pack: lists", "pack: list")
    (world / "two.yaml").write_text(text + "server: {web_config: web.yaml}\n")
    ran = monitor("validate", "--config", "two.yaml")
    assert ran.code == 2
    assert "2 problems" in ran.err
    assert "server.web_config" in ran.err
    assert "recommenders[0].rules[0].pack" in ran.err


def test_quoted_text_cannot_control_the_terminal_or_become_emoji(world, monitor):
    ran = monitor("init", "log\x1b[31m:smile:.csv", "--output", "-")
    assert ran.code == 2
    assert "log[U+001B][31m:smile:.csv" in ran.err


def _own(world, tmp_path, name="violated"):
    """A copy of the folder, to write into."""
    folder = tmp_path / "own"
    shutil.copytree(world, folder, ignore=shutil.ignore_patterns("state"))
    return folder


SPAN = ("--from", "2026-01-05T10:00:00Z", "--to", "2026-01-05T12:00:00Z")


def test_a_backfill_done_twice_changes_nothing_and_the_export_is_json_lines(world, tmp_path):
    folder = _own(world, tmp_path)
    first = run_monitor("backfill", "-c", "violated.yaml", *SPAN, cwd=folder)
    summed_up = "  windows: 2 violated\n  violated: rule blacklist (hard) in 2 windows\n"
    assert (first.code, first.out) == (
        0,
        f"shop: judged 2 windows, 2 of them new or changed\n{summed_up}",
    )
    exported = run_monitor("history", "export", "-c", "violated.yaml", cwd=folder)
    assert exported.code == 0
    results = [json.loads(line) for line in exported.out.splitlines()]
    assert {one["window_start"] for one in results} == {"2026-01-05T10:00:00Z", "2026-01-05T11:00:00Z"}
    assert any(one["metric"] == "rule" and one["evidence"] for one in results)
    again = run_monitor("backfill", "-c", "violated.yaml", *SPAN, cwd=folder)
    assert again.out == f"shop: judged 2 windows, 0 of them new or changed\n{summed_up}"
    assert run_monitor("history", "export", "-c", "violated.yaml", cwd=folder).out == exported.out
    later = run_monitor("history", "export", "-c", "violated.yaml", "--from", "2026-01-05T11:00", cwd=folder)
    assert {json.loads(line)["window_start"] for line in later.out.splitlines()} == {"2026-01-05T11:00:00Z"}
    done = _piped("MONITOR history export -c violated.yaml | head -n 1", folder)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["recommender"] == "shop"


@pytest.mark.parametrize("command", ["export", "gates"])
def test_a_command_that_reads_the_history_needs_no_lock_and_upgrades_nothing(world, tmp_path, command):
    folder = _own(world, tmp_path)
    assert run_monitor("backfill", "-c", "violated.yaml", *SPAN, cwd=folder).code == 0
    with closing(sqlite3.connect(folder / "state/history.sqlite", isolation_level=None)) as history:
        history.execute("BEGIN IMMEDIATE")  # as a daemon that writes
        ran = run_monitor("history", command, "-c", "violated.yaml", cwd=folder)
        assert (ran.code, ran.err) == (0, "")
        history.execute("UPDATE alembic_version SET version_num = '0008'")
        history.execute("COMMIT")
        ran = run_monitor("history", command, "-c", "violated.yaml", cwd=folder)
        assert ran.code == 2
        assert "has schema 0008, and this version of recsys-monitor reads" in ran.err
        assert history.execute("SELECT version_num FROM alembic_version").fetchall() == [("0008",)]


def test_a_history_that_is_no_database_is_said_and_kept(world, tmp_path):
    folder = _own(world, tmp_path)
    (folder / "state").mkdir()
    (folder / "state" / "history.sqlite").write_bytes(b"this is no database, it is a letter" * 100)
    for arguments in (["history", "export"], ["backfill", *SPAN], ["run"]):
        ran = run_monitor(*arguments, "-c", "ok.yaml", cwd=folder)
        assert ran.code == 2, ran
        assert "damaged, or is not a database" in ran.err
        assert "Traceback" not in ran.err
    assert (folder / "state" / "history.sqlite").read_bytes().startswith(b"this is no database")


def test_a_folder_that_cannot_be_written_is_said(world, tmp_path):
    folder = _own(world, tmp_path)
    (folder / "state").write_text("a file where the folder should be")
    for arguments in (
        ["backfill", "-c", "ok.yaml", *SPAN],
        ["run", "-c", "ok.yaml"],
        ["demo", "--folder", "state", "--endpoint", "127.0.0.1:0"],
    ):
        ran = run_monitor(*arguments, cwd=folder)
        assert ran.code == 2, ran
        assert "state" in ran.err
        assert "Traceback" not in ran.err


def test_an_address_in_use_is_reported(world, tmp_path):
    folder = _own(world, tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (folder / "ok.yaml").open("a") as stream:
            stream.write(f'server: {{listen: "127.0.0.1:{port}"}}\n')
        ran = run_monitor("run", "--config", "ok.yaml", cwd=folder)
    assert ran.code == 2
    assert f"127.0.0.1:{port}" in ran.err
    assert "server.listen" in ran.err
    assert "Traceback" not in ran.err


def test_the_demo_says_which_option_chooses_the_address_of_its_recommender(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = run_monitor("demo", "--folder", "demo", "--endpoint", address, cwd=tmp_path)
    assert ran.code == 2
    assert "--endpoint" in ran.err
    assert f"cannot listen on {address}" in ran.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("option", ["--endpoint", "--listen"])
def test_an_address_of_the_demo_that_is_none_names_its_option_and_writes_nothing(option, tmp_path):
    ran = run_monitor("demo", "--folder", "demo", option, "here", cwd=tmp_path)
    assert ran.code == 2
    said = " ".join(ran.err.replace("│", " ").split())
    assert option in said
    assert "'here' is not an address; write it as 127.0.0.1:9108" in said
    assert not (tmp_path / "demo").exists()


def test_a_demo_in_the_folder_of_a_running_one_changes_nothing_there(tmp_path):
    anywhere = ("--endpoint", "127.0.0.1:0", "--listen", "127.0.0.1:0")
    with StateLock(tmp_path / "demo" / "state"):
        ran = run_monitor("demo", "--folder", "demo", *anywhere, cwd=tmp_path)
        assert ran.code == 2
        assert "a demo is running in demo" in ran.err
        assert [path.name for path in (tmp_path / "demo").iterdir()] == ["state"]


def test_init_writes_a_config_that_check_accepts(world, tmp_path):
    folder = _own(world, tmp_path)
    ran = run_monitor("init", "log.parquet", "--output", "new.yaml", cwd=folder)
    assert (ran.code, ran.err) == (0, "")
    assert "wrote new.yaml" in ran.out
    assert run_monitor("validate", "--config", "new.yaml", cwd=folder).code == 0
    assert run_monitor("check", "--config", "new.yaml", cwd=folder).code in (0, 1)
    refused = run_monitor("init", "log.parquet", "--output", "new.yaml", cwd=folder)
    assert refused.code == 2
    assert "--force" in refused.err
    (folder / "new.yaml").write_text("mine")
    assert run_monitor("init", "log.parquet", "-o", "new.yaml", "--force", cwd=folder).code == 0
    assert yaml.safe_load((folder / "new.yaml").read_text())["recommenders"]
    printed = run_monitor("init", "log.parquet", "--output", "-", cwd=folder)
    assert printed.out == (folder / "new.yaml").read_text()


def test_the_command_that_init_names_can_be_pasted_into_a_shell(world, tmp_path):
    folder = _own(world, tmp_path)
    ran = run_monitor("init", "log.parquet", "--output", "our shop.yaml", cwd=folder)
    (command,) = re.findall(r"then: recsys-monitor (.*)", ran.out)
    assert run_monitor(*shlex.split(command), cwd=folder).code == 0


def test_init_reports_missing_columns(world, tmp_path):
    (tmp_path / "log.csv").write_text("user_id,ts,item_id\n" + "u1,2026-01-05T10:00:00Z,a\n" * 5)
    ran = run_monitor("init", "log.csv", cwd=tmp_path)
    assert ran.code == 2
    assert "TODO: no column was found that says which rows were shown together" in ran.err
    assert "request_id: TODO" in (tmp_path / "recsys-monitor.yaml").read_text()


def _piped(command: str, cwd) -> subprocess.CompletedProcess[bytes]:
    script = f"set -o pipefail; {command.replace('MONITOR', f'{sys.executable} -m monitor')}"
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=clean_environment(), capture_output=True, timeout=90, check=False
    )


# Typer ends a command whose pipe is closed with 1, so a code of 1 alone would prove nothing.
@pytest.mark.parametrize(
    ("form", "name", "code"), [("table", "violated", 1), ("json", "ok", 0), ("junit", "ok", 0)]
)
def test_a_closed_pipe_changes_neither_the_exit_code_nor_the_messages(world, tmp_path, form, name, code):
    pipe, err = tmp_path / "pipe", tmp_path / "err"
    os.mkfifo(pipe)
    command = ["check", "-c", f"{name}.yaml", "--format", form, "--all"]
    process = Forked(command, cwd=world, env=clean_environment(), out=pipe, err=err)
    os.close(os.open(pipe, os.O_RDONLY))  # opens when the command does, long before it prints
    assert process.wait(90) == code
    assert err.read_bytes() == b""


def _on_a_terminal(arguments: list[str], cwd) -> tuple[str, int]:
    """What a command prints where standard error is a terminal and standard output a pipe."""
    leader, follower = pty.openpty()
    process = Forked(
        arguments,
        cwd=cwd,
        env=clean_environment(TERM="xterm", COLUMNS="100"),
        out=Path(os.devnull),
        err=Path(os.ttyname(follower)),
    )
    seen = b""
    until = time.monotonic() + 180
    while time.monotonic() < until:
        ended = process.poll() is not None
        ready, _, _ = select.select([leader], [], [], 0 if ended else 0.2)
        if ready:
            seen += os.read(leader, 65536)
        elif ended:
            break
    code = process.wait(10)
    os.close(leader)
    os.close(follower)
    return seen.decode("utf-8", "replace"), code


def test_progress_is_shown_on_a_terminal_and_only_there(world):
    shown, code = _on_a_terminal(["check", "--config", "ok.yaml"], world)
    assert code == 0
    assert "shop" in shown
    assert "\x1b[" in shown
    forced = run_monitor("check", "--config", "ok.yaml", cwd=world, FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert forced.err == ""


def test_very_many_windows_are_announced_and_an_interrupt_ends_without_a_traceback(world):
    span = ["--from", "2020-01-01", "--to", "2021-01-01"]
    # A shell has what it runs in the background ignore Ctrl-C; here it is pressed.
    heard = ["env", "--default-signal=INT", sys.executable, "-m", "monitor"]
    process = subprocess.Popen(
        [*heard, "check", "--config", "ok.yaml", *span],
        cwd=world, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert b"8,784 windows to judge; --from and --to judge fewer" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert b"Traceback" not in err
