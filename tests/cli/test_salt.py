"""Which salt hashes the users of the evidence: that of the config, or that of the daemon."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from monitor.service.salt import install_salt
from tests.cli.conftest import exposures, run_monitor

CONFIG = """\
state: ./state
engine: {threads: 1}
recommenders:
  - name: shop
    logs: {exposures: {path: log.parquet}}
    window: 1h
    lateness: 0s
    rules: [{pack: blacklist, parameters: {blacklist: blacklist.csv}}]
    metrics: {disable: [serendipity]}
"""
AS_NOBODY = """\
import encodings.utf_8_sig, os, runpy  # the other user may not be allowed to read this Python
import monitor.cli.judge
os.setgroups([]); os.setgid(65534); os.setuid(65534)
runpy.run_module("monitor", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A log with a violation, in a folder that every user may read."""
    made = Path(tempfile.mkdtemp(prefix="recsys-salt-"))
    made.chmod(0o755)
    exposures().to_parquet(made / "log.parquet")
    pd.DataFrame({"item_id": ["i3"]}).to_csv(made / "blacklist.csv", index=False)
    (made / "shop.yaml").write_text(CONFIG)
    for file in made.iterdir():
        file.chmod(0o644)  # whatever the mask of the process is
    yield made
    shutil.rmtree(made)


def users(folder: Path, **more: str) -> tuple[set[str], str]:
    """The users in the evidence of `check`, and what it wrote to standard error."""
    ran = run_monitor("check", "--config", "shop.yaml", "--format", "json", cwd=folder, **more)
    assert ran.code == 1, ran
    rules = [one for one in json.loads(ran.out) if one["metric"] == "rule"]
    return {row["user_id"] for one in rules for row in one["evidence"]}, ran.err


def test_the_salt_of_the_config_gives_a_user_the_same_hash_in_each_command(folder: Path) -> None:
    salt = "history: {salt: 0123456789abcdef0123456789abcdef}\n"
    (folder / "shop.yaml").write_text(salt + CONFIG)
    first, _ = users(folder)
    assert first
    assert users(folder)[0] == first
    install_salt(folder / "state")  # of a daemon that had no salt in its config
    assert users(folder)[0] == first


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
def test_another_user_may_check_though_the_state_folder_is_private(folder: Path) -> None:
    install_salt(folder / "state")
    ran = run_monitor(
        "backfill", "--config", "shop.yaml", "--from", "2026-01-05", "--to", "2026-01-06", cwd=folder
    )
    assert ran.code == 0, ran
    mine, _ = users(folder)
    (folder / "state").chmod(0o700)
    theirs, said = users(folder, code=AS_NOBODY)
    assert len(theirs) == len(mine)
    assert not theirs & mine
    assert "state/salt belongs to another user: hashes of users differ from those of the daemon" in said
    assert "the windows are judged without it: the history at" in said
