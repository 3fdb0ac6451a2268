"""A failure that can be expected ends a command with its own sentence and hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.cli.terminal import NOT_JUDGED, USAGE, guarded
from monitor.config.init.profile import CannotProfile
from monitor.config.problems import ConfigError, Problem
from monitor.core.errors import ExpectedError
from monitor.history.errors import StoreError
from monitor.service.state_lock import StateInUseError
from monitor.service.web.server import ServeError
from monitor.service.web.web_config import WebConfigError

REFERENCE = "The reference of every key is in docs/config.md; `init` writes a config for a log."
LISTEN = "Is another monitor running? server.listen in the config says where this one listens."


class DiskIsGone(ExpectedError):
    hint = "Put it back."


@pytest.mark.parametrize(
    ("exc", "said"),
    [
        (DiskIsGone("the disk is gone"), "the disk is gone\nPut it back."),
        (
            ConfigError(Path("c.yaml"), [Problem("window", "is missing")]),
            f"c.yaml: 1 problem\n  window: is missing\n{REFERENCE}",
        ),
        (ServeError("port 80 is taken"), f"port 80 is taken\n{LISTEN}"),
        (StoreError("the history is locked"), "the history is locked"),
        (WebConfigError(Path("w.yaml"), [("users", "is empty")]), "w.yaml: users: is empty"),
        (CannotProfile("the log is empty"), "the log is empty"),
        (StateInUseError("process 7 writes it"), "process 7 writes it"),
    ],
)
def test_an_expected_error_prints_only_its_sentence_and_its_hint(capsys, exc, said):
    with pytest.raises(SystemExit) as ended, guarded():
        raise exc
    assert ended.value.code == USAGE
    assert capsys.readouterr().err == f"error: {said}\n"


def test_any_other_failure_is_called_unexpected(capsys):
    with pytest.raises(SystemExit) as ended, guarded():
        raise RuntimeError("no disk")
    assert ended.value.code == NOT_JUDGED
    assert capsys.readouterr().err == (
        "error: RuntimeError: no disk\n"
        "This is a bug of the monitor; RECSYS_MONITOR_TRACEBACK=1 shows the traceback.\n"
    )
