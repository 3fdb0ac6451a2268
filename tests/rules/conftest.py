"""An engine for the tests of one file."""

from __future__ import annotations

import pytest

from monitor.rules.engines.duckdb import RuleEngine
from tests.shop import another_shop, runtime, shop, world  # noqa: F401


@pytest.fixture(scope="module")
def shared_engine():
    engine = RuleEngine("expectations")
    yield engine
    engine.close()
