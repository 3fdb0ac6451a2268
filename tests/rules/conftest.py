"""An engine for the tests of one file."""

from __future__ import annotations

import pytest

from monitor.rules.engines.duckdb import DuckDBRuleEngine
from tests.shop import another_shop, runtime, shop, world  # noqa: F401


@pytest.fixture(scope="module")
def shared_engine():
    engine = DuckDBRuleEngine("expectations")
    yield engine
    engine.close()
