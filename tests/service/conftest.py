"""A history of its own for each test, and engines to judge windows with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.history.store import Store
from monitor.judging.runtime import Runtime


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    made = Runtime(tmp_path / "spill", threads=1)
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.sqlite", wait_seconds=0.1) as opened:
        yield opened
