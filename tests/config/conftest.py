"""Fixtures that run `init` and other commands as a user does."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from monitor.cli import app as cli
from monitor.cli import terminal
from monitor.cli.one_off import one_off
from monitor.config.checks.check import check_config
from monitor.config.init.wizard import write_config
from monitor.config.load import load_config
from monitor.core.results import Status


@pytest.fixture
def init(tmp_path):
    """Write a config for a log, load it, judge the whole log by it."""

    def init(*arguments: str, feedback: Sequence[str] = (), kind: str = "auto"):
        named = [str(one) for one in feedback]
        written = write_config([str(one) for one in arguments], tmp_path, named, kind)
        path = tmp_path / "config.yaml"
        path.write_text(written.text, "utf-8")
        config = load_config(path)
        checked = check_config(config, tmp_path)
        assert checked[0].problems == ()
        assert written.missing == ()
        with one_off(config, checked[0], "salt") as judge:
            now = datetime.now(UTC)
            judge.look(now)
            evaluations = list(judge.judge(judge.windows(None, None, now)[0][:2], now))
            source = judge.evaluator.source.exposures
            placed = sum(
                bucket.rows for entry in source.entries.values() for bucket in entry.buckets.values()
            )
            assert source.skipped == ()
            results = [result for one in evaluations for result in one.results]
            assert [one.detail for one in results if one.status is Status.ERROR] == []
            return config.recommenders[0], placed, written

    return init


@pytest.fixture
def command(monkeypatch, capfd, tmp_path):
    """Run a command line in this process, in the folder of the log; its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["recsys-monitor", *arguments])
        output = os.dup(sys.stdout.fileno())
        try:
            with pytest.raises(SystemExit) as done:
                cli.main()
        finally:  # as the end of the process would: the command has taken standard output for itself
            for stream in terminal._claimed:
                stream.close()
            terminal._claimed.clear()
            os.dup2(output, sys.stdout.fileno())
            os.close(output)
        shown = capfd.readouterr()
        return int(done.value.code or 0), shown.out, shown.err

    return run
