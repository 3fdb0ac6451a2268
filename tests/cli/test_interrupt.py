"""Ctrl-C ends a command wherever it arrives."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import duckdb
import pytest

from monitor.cli.interrupt import end_if_asked, noticing, was_asked
from monitor.cli.terminal import INTERRUPTED, guarded

LONG = "SELECT sum(hash(a.range + b.range)) FROM range(1000000) a, range(50) b"  # some tenths of a second


@pytest.fixture(autouse=True)
def pressed_by_hand() -> Iterator[None]:
    """As in a terminal: a worker of the tests may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_in_a_statement() -> None:
    """Ctrl-C while DuckDB runs, which mostly makes a RuntimeError of it."""
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    connection = duckdb.connect()
    while not was_asked():
        connection.execute(LONG)


def swallow(then: Callable[[], None] = lambda: None) -> None:
    """As a check whose statement fails."""
    with noticing():
        with suppress(RuntimeError, KeyboardInterrupt):
            press_in_a_statement()
        assert was_asked()
        then()


def test_an_error_that_a_library_made_of_it_does_not_hide_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        swallow(end_if_asked)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_block_that_goes_on_to_its_end_ends_with_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        swallow()


def test_the_next_block_knows_nothing_of_it() -> None:
    with noticing():
        end_if_asked()
        assert not was_asked()


def test_a_command_says_that_it_was_interrupted_and_no_bug(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, guarded():
        press_in_a_statement()
    assert ended.value.code == INTERRUPTED
    assert "interrupted" in capsys.readouterr().err


def test_a_process_that_ignores_it_goes_on_to_do_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with noticing():
        os.kill(os.getpid(), signal.SIGINT)
        end_if_asked()
