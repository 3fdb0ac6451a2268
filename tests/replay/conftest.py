"""The server of the tests of a replay."""

from __future__ import annotations

import pytest

from tests.replay.endpoint import running


@pytest.fixture
def endpoint():
    with running() as server:
        yield server
