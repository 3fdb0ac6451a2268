"""Each file of bad/ is a config with the fault of its name; the .txt beside it has the expected problems.

After a change of a message, check what this test prints and copy it into the .txt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.config.load import load_checked
from monitor.config.problems import ConfigError

BAD = Path(__file__).parent / "bad"
LONG = "a secret with a 'quote' that is so long that messages cut it, " + 9 * "hunter2 "
ENVIRONMENT = {"SECRET": "hunter2", "LONG": LONG, "SHORT": "s"}
FAULTS = sorted(path.stem for path in BAD.glob("*.yaml"))


def problems_of(path: Path) -> list[str]:
    try:
        _, checked = load_checked(path, ENVIRONMENT)
    except ConfigError as exc:
        return [str(problem) for problem in exc.problems]
    return [str(problem) for one in checked for problem in one.problems]


@pytest.mark.parametrize("fault", FAULTS)
def test_every_problem_is_reported_with_its_place(fault):
    found = "\n".join(problems_of(BAD / f"{fault}.yaml")) + "\n"
    assert found == (BAD / f"{fault}.txt").read_text("utf-8"), found


@pytest.mark.parametrize("fault", FAULTS)
def test_no_message_shows_a_secret_or_an_internal_name(fault):
    found = "\n".join(problems_of(BAD / f"{fault}.yaml"))
    for word in (
        "hunter2",
        "a secret",
        "cut it",
        "12345678",
        "87654321",
        "pydantic",
        "Traceback",
        "tuple[",
        "Input should",
    ):
        assert word not in found


def test_no_command_of_a_bad_config_was_run():
    assert not Path("owned").exists()
