"""Slow tests take turns: a part says what it leaves out, and all parts together run all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.by_turns import EVERY_TURN, LONGEST, TAKE_TURNS, changed_recently, is_in, takes_turns

ROOT = Path(__file__).resolve().parents[1]
FILES = [one.relative_to(ROOT).as_posix() for one in sorted((ROOT / "tests").rglob("test_*.py"))]


def test_the_files_exist_and_take_turns() -> None:
    assert [one for one in (*LONGEST, *EVERY_TURN) if one not in FILES] == []
    assert [one for one in TAKE_TURNS if not any(path.startswith(one) for path in FILES)] == []
    assert [one for one in LONGEST if not takes_turns(one)] == []
    assert len(set(LONGEST)) == len(LONGEST)


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_each_file_runs_in_one_of_so_many_parts_in_a_row(parts: int) -> None:
    for first in (0, 1, 123_456):
        numbers = range(first, first + parts)
        assert {sum(is_in(one, f"{number}/{parts}") for number in numbers) for one in FILES} == {1}


def test_the_parts_have_as_many_files() -> None:
    turning = [one for one in FILES if takes_turns(one)]
    for number in range(3):
        assert sum(is_in(one, f"{number}/3") for one in LONGEST) == len(LONGEST) / 3
        assert sum(is_in(one, f"{number}/3") for one in turning) == pytest.approx(len(turning) / 3, rel=0.2)


@pytest.mark.parametrize("part", ["", "2", "2/", "/3", "2/0", "-1/3", "a/b", "1/2/3"])
def test_a_part_that_is_written_otherwise_is_refused(part: str) -> None:
    with pytest.raises(ValueError, match="number/parts"):
        is_in(LONGEST[0], part)


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


def test_without_git_it_fails_and_leaves_out_nothing_by_chance(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        changed_recently(tmp_path)


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_a_run_of_a_part_says_what_it_leaves_out(workers: tuple[str, ...]) -> None:
    slow = next(one for one in LONGEST if one not in changed_recently(ROOT))
    quick = "tests/window/test_verdicts.py"
    left_out = 1 if is_in(slow, "0/2") else 0
    for number in (left_out,) if workers else (0, 1):
        command = [sys.executable, "-m", "pytest", "-q", "-m", "slow", "--part", f"{number}/2", *workers]
        run = subprocess.run(
            [*command, "--collect-only", slow, quick], cwd=ROOT, capture_output=True, text=True, check=False
        )
        said = re.search(
            rf"part {number}/2 leaves out (\d+) slow tests of 1 files:\n  {slow} (\d+)\n", run.stdout
        )
        assert (said is None) == is_in(slow, f"{number}/2"), run.stdout + run.stderr
        assert said is None or 1 <= int(said[1]) == int(said[2])


def test_a_wrong_part_is_an_error_of_use() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--part", "2", "tests/window/test_verdicts.py"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "a part is written as number/parts" in run.stderr
