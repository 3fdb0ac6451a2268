"""A real PostgreSQL server of a test's own, that can be stopped and started again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.postgres import PASSWORD, NotInstalledError, Postgres, binaries

__all__ = ["PASSWORD", "Postgres", "postgres"]


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server; the test is skipped where PostgreSQL is not installed."""
    try:
        programs = binaries()
    except NotInstalledError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    server = Postgres(programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()
