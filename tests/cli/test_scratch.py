"""The folder of a command's large files: gone at its end, and at the next start if it was killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from monitor.cli.scratch import engine_scratch, scratch_folder
from monitor.settings.config import Config
from monitor.settings.engine import EngineSettings

PREFIX = "recsys-monitor-bands-"
_HOLD = """
import sys
from monitor.cli.scratch import engine_scratch, scratch_folder
from monitor.settings.config import Config
from monitor.settings.engine import EngineSettings
with scratch_folder(sys.argv[1]) as folder:
    (folder / "large").write_text("x")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def held() -> tuple[subprocess.Popen[str], Path]:
    """A process inside the block, and its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, PREFIX], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_folder_is_gone_at_the_end_whatever_happens() -> None:
    folders: list[Path] = []

    def fail() -> None:
        with scratch_folder(PREFIX) as folder:
            folders.append(folder)
            (folder / "large").write_text("x")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert not folders[0].exists()


def test_the_folder_of_a_killed_process_is_removed_by_the_next_and_that_of_a_living_one_is_not() -> None:
    (killed, left), (living, used) = held(), held()
    killed.kill()
    killed.wait()
    assert (left / "large").exists()
    with scratch_folder(PREFIX) as folder:
        assert not left.exists()
        assert (used / "large").exists()
        assert folder.exists()
    living.communicate()
    assert living.returncode == 0
    assert not used.exists()


def test_other_temporary_folders_stay(tmp_path: Path) -> None:
    for name in (f"{PREFIX}without-a-lock", "another-program"):
        (tmp_path / name).mkdir()
    (tmp_path / "another-program" / "lock").write_text("")
    with scratch_folder(PREFIX):
        pass
    assert {one.name for one in tmp_path.iterdir()} == {f"{PREFIX}without-a-lock", "another-program"}


def test_the_workers_of_spark_see_the_folder_of_a_command(tmp_path: Path) -> None:
    state = tmp_path / "shared" / "state"
    recommender = {"name": "shop", "logs": {"exposures": {"path": "x.parquet"}}}
    spark = Config.model_validate(
        {"state": state, "engine": {"kind": "spark"}, "recommenders": [recommender]}
    )
    for _ in range(2):
        with engine_scratch(spark) as folder:
            assert folder.parent == state / "spill"
        assert not folder.exists()
    with engine_scratch(spark.model_copy(update={"engine": EngineSettings()})) as folder:
        assert folder.parent == tmp_path
    assert not folder.exists()
