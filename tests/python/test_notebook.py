"""docs/notebook.ipynb runs, and shows what it says that it shows."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from tests.python.notebook import PATH, executed, outputs, read


@pytest.fixture(scope="module")
def run() -> Any:
    return executed(copy.deepcopy(read()))


def test_every_cell_runs_and_shows_the_stored_output(run: Any) -> None:
    assert outputs(run) == outputs(read()), "run: python -m tests.python.notebook"
    assert sum(map(bool, outputs(run))) >= 6


def test_it_shows_html_frames_values_and_a_violation(run: Any) -> None:
    shown = [one for cell in outputs(run) for one in cell]
    assert any('class="recsys-monitor"' in one.get("text/html", "") for one in shown)
    assert any('class="dataframe"' in one.get("text/html", "") for one in shown)
    assert any("violated" in text for one in shown for text in one.values())


def test_the_stored_outputs_name_no_place_of_a_machine() -> None:
    text = PATH.read_text("utf-8")
    assert not re.search(r"/(tmp|root|home|work|usr|opt|var)/", text)
    stored = json.loads(text)
    assert set(stored["metadata"]) == {"kernelspec"}
    assert all(cell["cell_type"] in ("code", "markdown") for cell in stored["cells"])
