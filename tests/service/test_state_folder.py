"""Nobody but the user that runs the monitor can read its state folder."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from monitor.service.state_folder import keep_private


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]
    }


def older(state: Path) -> Path:
    """A state folder as an older version left it, with a file of somebody else in it."""
    for name in (
        "history.sqlite",
        "history.sqlite-wal",
        "salt",
        "kept/shop/1.parquet",
        "kept/shop/sums/2.parquet",
    ):
        (state / name).parent.mkdir(parents=True, exist_ok=True)
        (state / name).touch()
    (state / "notes.txt").touch()
    return state


def test_a_readable_folder_is_made_private_with_one_warning(tmp_path, caplog):
    state = older(tmp_path / "state")
    keep_private(state)
    found = modes(state)
    assert found.pop("notes.txt") == 0o644
    assert set(found.values()) == {0o600, 0o700}
    assert {name for name, mode in found.items() if mode == 0o700} == {
        ".",
        "kept",
        "kept/shop",
        "kept/shop/sums",
    }
    assert [record.getMessage() for record in caplog.records] == [
        f"other users could read the state folder {state}; it is private now (9 paths changed)"
    ]
    caplog.clear()
    keep_private(state)
    assert not caplog.records
    state.chmod(0o755)
    keep_private(state)
    assert caplog.messages == [
        f"other users could read the state folder {state}; it is private now (1 path changed)"
    ]


def test_a_new_file_is_private_and_a_link_is_not_followed(tmp_path):
    state, outside = older(tmp_path / "state"), tmp_path / "outside"
    outside.touch()
    (state / "kept" / "link").symlink_to(outside)
    keep_private(state)
    (state / "new").mkdir()
    (state / "new" / "file").touch()
    assert modes(state)["new"] == 0o700
    assert modes(state)["new/file"] == 0o600
    assert outside.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_does_not_exist_yet_gives_no_warning(tmp_path, caplog):
    keep_private(tmp_path / "none")
    assert not caplog.records


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
def test_a_warning_names_a_folder_of_another_user_and_what_to_do():
    folder = Path(tempfile.mkdtemp(prefix="recsys-state-"))
    try:
        older(folder)
        folder.chmod(0o777)
        said = folder / "said"
        child = os.fork()
        if child == 0:
            try:
                os.setuid(65534)
                logging.getLogger("monitor.service.state_folder").addHandler(logging.FileHandler(said))
                keep_private(folder)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        text = said.read_text()
        assert f"other users may read 9 files of the state folder {folder}" in text
        assert "Operation not permitted" in text
        assert "make the user that runs the monitor the owner of the folder" in text
    finally:
        shutil.rmtree(folder)
