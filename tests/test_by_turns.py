"""The longest files of tests take turns: a part says what it leaves out, and all parts together run all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.by_turns import BY_TURNS, changed_recently, left_out

ROOT = Path(__file__).resolve().parents[1]
NONE: frozenset[str] = frozenset()


def test_the_files_exist_and_none_is_listed_twice() -> None:
    assert [one for one in BY_TURNS if not (ROOT / one).is_file()] == []
    assert len(set(BY_TURNS)) == len(BY_TURNS)


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_each_file_runs_in_one_of_so_many_parts_in_a_row(parts: int) -> None:
    for first in (0, 1, 123_456):
        run = [
            one
            for number in range(first, first + parts)
            for one in set(BY_TURNS) - set(left_out(f"{number}/{parts}", NONE))
        ]
        assert sorted(run) == sorted(BY_TURNS)


def test_a_file_that_changed_runs_in_every_part() -> None:
    changed = frozenset([BY_TURNS[4], "README.md"])
    assert all(BY_TURNS[4] not in left_out(f"{number}/3", changed) for number in range(3))


@pytest.mark.parametrize("part", ["", "2", "2/", "/3", "2/0", "-1/3", "a/b", "1/2/3"])
def test_a_part_that_is_written_otherwise_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="number/parts"):
        left_out(part, NONE)


def test_files_of_the_last_commits_are_those_that_git_names(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *own, *arguments], cwd=tmp_path, check=True, capture_output=True)

    own = ["-c", "user.name=one", "-c", "user.email=one@example.org"]
    git("init", "-q")
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("")
        git("add", name)
        git("commit", "-qm", name)
    assert changed_recently(tmp_path) >= {"a.py", "b.py"}


def test_without_git_every_file_counts_as_changed(tmp_path: Path) -> None:
    assert changed_recently(tmp_path) == frozenset(BY_TURNS)


def test_a_run_of_a_part_says_what_it_leaves_out() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "tests/window/test_together.py"]
    run = subprocess.run(
        [*command, "--part", "2/1000"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    recent = BY_TURNS[0] in changed_recently(ROOT)
    assert ("tests/window/test_together.py::" in run.stdout) == recent
    assert ("  tests/window/test_together.py\n" in run.stdout) != recent
    assert "part 2/1000 leaves out" in run.stdout
    wrong = subprocess.run([*command, "--part", "2"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 4
    assert "a part is written as number/parts" in wrong.stderr
