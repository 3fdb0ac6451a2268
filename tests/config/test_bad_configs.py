"""Each file of bad/ is a config with the fault of its name; the .txt beside it is what must be said of it.

After a change of a sentence, look at what this prints and put it into the .txt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.config.check import check_config
from monitor.config.load import ConfigError, load_config

BAD = Path(__file__).parent / "bad"
ENVIRONMENT = {"SECRET": "hunter2"}
FAULTS = sorted(path.stem for path in BAD.glob("*.yaml"))


def problems_of(path: Path) -> list[str]:
    try:
        config = load_config(path, ENVIRONMENT)
    except ConfigError as exc:
        return [str(problem) for problem in exc.problems]
    return [str(problem) for one in check_config(config, path.parent) for problem in one.problems]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_problem_is_told_with_its_place(fault):
    found = "\n".join(problems_of(BAD / f"{fault}.yaml")) + "\n"
    assert found == (BAD / f"{fault}.txt").read_text("utf-8"), found


@pytest.mark.parametrize("fault", FAULTS)
def test_no_message_shows_a_secret_or_the_machinery_behind(fault):
    found = "\n".join(problems_of(BAD / f"{fault}.yaml"))
    for word in ("hunter2", "12345678", "87654321", "pydantic", "Traceback", "tuple[", "Input should"):
        assert word not in found


def test_nothing_that_a_config_names_was_run():
    assert not Path("owned").exists()
