"""An engine, and a survey over logs that a test writes."""

from __future__ import annotations

import pytest

from monitor.judging.runtime import Runtime
from tests.survey.world import SPAN, open_survey, write


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    runtime = Runtime(tmp_path_factory.mktemp("spill"), threads=1)
    yield runtime
    runtime.close()


@pytest.fixture
def survey_of(runtime, tmp_path):
    """A function from logs and settings to the survey over them."""
    opened = []

    def make(asks=None, span=SPAN, config=None, **logs):
        settings = write(tmp_path, **logs) | (config or {})
        if asks is not None:
            settings["survey"] = asks
        found = open_survey(runtime.engine, tmp_path, settings, span)
        opened.append(found)
        return found

    yield make
    for one in opened:
        one.close()
