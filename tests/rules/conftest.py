"""An engine for the tests of one file."""

from __future__ import annotations

import pytest

from monitor.rules.engines.duckdb import RuleEngine


@pytest.fixture(scope="module")
def shared_engine():
    engine = RuleEngine("expectations")
    yield engine
    engine.close()
