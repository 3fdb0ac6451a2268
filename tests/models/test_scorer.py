"""The user's own scoring function: where its module is looked up, and what is said where it cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.models.scorer import ScorerError, load_scorer
from tests.cli.conftest import clean_environment
from tests.config.validate.faulty import Shop, the_scorer_is_in_no_folder

MODULE = "def score(frame):\n    return frame['f'] * 2\n\nSHARE = 0.5\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder on Python's path with a module of the user."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_ranker.py").write_text(MODULE)
    yield tmp_path
    for name in ("own_ranker", "broken_ranker"):
        sys.modules.pop(name, None)


def why(name: str) -> str:
    with pytest.raises(ScorerError) as error:
        load_scorer(name)
    return str(error.value)


def test_a_function_scores_a_frame(folder):
    assert load_scorer("own_ranker:score")({"f": [1.0, 2.0]}).tolist() == [2.0, 4.0]


def test_a_missing_module_is_an_error_with_the_searched_folders(folder):
    said = why("my_ranker:score")
    assert said.startswith("there is no module my_ranker; it was looked up in ")
    assert f"{folder.resolve()}, " in said
    assert f"the packages of {sys.prefix}; put the folder that holds it into PYTHONPATH" in said
    assert "site-packages" not in said.replace(str(folder), "")


def test_a_module_of_a_missing_package_names_the_package(folder):
    assert why("my_package.ranker:score").startswith("there is no module my_package; it was looked up in ")


def test_a_missing_function_is_an_error_with_the_file_of_the_module(folder):
    assert (
        why("own_ranker:scores") == f"own_ranker has no function 'scores' ({folder.resolve()}/own_ranker.py)"
    )


def test_a_name_that_is_not_a_function_is_an_error_with_its_type(folder):
    assert why("own_ranker:SHARE") == "'SHARE' in own_ranker is a float, not a function"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import an_absent_library",
            "ModuleNotFoundError: No module named 'an_absent_library'",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('no GPU')", "SystemExit: no GPU"),
    ],
)
def test_a_module_that_fails_to_import_is_an_error_with_the_reason(folder, text, said):
    (folder / "broken_ranker.py").write_text(text)
    assert why("broken_ranker:score") == f"broken_ranker cannot be imported: {said}"


def test_only_python_m_searches_the_working_directory(tmp_path):
    shop = Shop(tmp_path)
    the_scorer_is_in_no_folder(shop)
    shop.write()
    (tmp_path / "my_ranker.py").write_text(MODULE)
    # What the installed `recsys-monitor` is, started as the operating system starts it: by its path.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "recsys-monitor").write_text("from monitor.cli.app import main\nmain()\n")
    script = [str(tmp_path / "bin" / "recsys-monitor")]
    paths = clean_environment()["PYTHONPATH"]
    with_folder = f"{tmp_path}{os.pathsep}{paths}"
    codes = []
    for start, path in ((script, paths), (script, with_folder), (["-m", "monitor"], paths)):
        command = [sys.executable, *start, "validate", "--config", "shop.yaml", "--no-logs"]
        environment = clean_environment(PYTHONPATH=path)
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=90, check=False
        )
        codes.append(ran.returncode)
        assert ("there is no module my_ranker; it was looked up in " in ran.stderr) is (ran.returncode == 2)
    assert codes == [2, 0, 0]
