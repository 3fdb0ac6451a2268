"""The salt of a state folder is made once, and as a whole."""

from __future__ import annotations

import threading
from pathlib import Path

from monitor.service.salt import install_salt


def test_the_salt_stays_the_same_and_is_private(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = install_salt(state)
    assert len(first) == 32
    assert install_salt(state) == first
    assert (state / "salt").stat().st_mode & 0o077 == 0
    assert [path.name for path in state.iterdir()] == ["salt"]


def test_an_empty_file_left_by_a_crash_is_replaced_by_a_new_salt(tmp_path: Path) -> None:
    (tmp_path / "salt").touch()
    assert len(install_salt(tmp_path)) == 32


def test_all_who_start_together_get_the_same_salt(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(install_salt(tmp_path / "s"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert len({*found, install_salt(tmp_path / "s")}) == 1
