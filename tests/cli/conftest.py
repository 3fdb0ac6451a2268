"""A small log of two hours, configs over it, and the real command as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.forked import run_forked

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 1, 5, 10, tzinfo=UTC)
HOSTILE = "<b>\x1b[31m\"'\u202e,x" * 9
CONFIG = """\
state: ./state
engine: {{threads: 1}}
recommenders:
  - name: shop
    logs: {{exposures: {{path: {log}}}}}
    window: 1h
    rules: {rules}
    metrics: {{disable: [serendipity]}}
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def run_monitor(
    *arguments: object,
    cwd: Path,
    timeout: float = 600,
    fresh: bool = False,
    code: str = "",
    **environment: str,
) -> Ran:
    """Run `python -m monitor` with its output in files, as cron does.

    `fresh` starts a Python of its own; so does a variable that Python reads when it starts. In a process that
    is not fresh, `code` runs in place of the module.
    """
    env = clean_environment(**environment)
    if fresh or any(name.startswith("PYTHON") and name != "PYTHONPATH" for name in environment):
        done = subprocess.run(
            [sys.executable, "-m", "monitor", *map(str, arguments)],
            cwd=cwd, env=env, timeout=timeout, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        )  # fmt: skip
    else:
        done = run_forked(*arguments, cwd=cwd, env=env, timeout=timeout, code=code)
    return Ran(done.returncode, done.stdout, done.stderr)


def clean_environment(**further: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR")}
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **further}


def exposures(start: datetime = START, hours: int = 2, requests: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    which = np.repeat(np.arange(requests), 4)
    seconds = np.sort(rng.uniform(1, hours * 3600 - 1, requests))[which]
    return pd.DataFrame(
        {
            "request_id": [f"r{n}" for n in which],
            "user_id": [f"u{n}" for n in rng.integers(0, 50, requests)[which]],
            "ts": pd.Timestamp(start) + pd.to_timedelta(seconds.round(), unit="s"),
            "item_id": [f"i{n}" for _ in range(requests) for n in rng.choice(80, 4, replace=False)],
            "position": np.tile(np.arange(1, 5), requests),
        }
    )


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with logs, lists and a config for each verdict."""
    folder = tmp_path_factory.mktemp("world")
    rows = exposures()
    rows.to_parquet(folder / "log.parquet")
    hostile = rows.copy()
    hostile.loc[5, "item_id"] = HOSTILE
    hostile.to_parquet(folder / "hostile.parquet")
    pd.DataFrame({"item_id": ["i3", HOSTILE]}).to_csv(folder / "blacklist.csv", index=False)
    recent = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    exposures(recent - timedelta(hours=1), 1).to_parquet(folder / "recent.parquet")
    blacklist = "[{pack: blacklist, parameters: {blacklist: blacklist.csv}}]"
    missing = "[{pack: lists}, {pack: importance}]"
    for name, log, rules in (
        ("ok", "log.parquet", "[{pack: lists}]"),
        ("violated", "log.parquet", blacklist),
        ("hostile", "hostile.parquet", blacklist),
        ("error", "log.parquet", missing),
        ("late", "recent.parquet", "[{pack: lists}]"),
        ("measured", "log.parquet", "[]"),
        ("empty", "nothing-*.parquet", "[{pack: lists}]"),
    ):
        text = CONFIG.format(log=log, rules=rules)
        # Nothing that happens while the tests run makes this window complete.
        text += "    lateness: 3h\n    max_wait: 1d\n" if name == "late" else ""
        (folder / f"{name}.yaml").write_text(text)
    (folder / "wrong.yaml").write_text("recommenders: [{nam: shop}]\nstat: x\n")
    return folder


@pytest.fixture(scope="session")
def monitor(world: Path) -> Callable[..., Ran]:
    """The command, run in the folder of configs; equal calls of `check` are made once."""
    known: dict[tuple[object, ...], Ran] = {}

    def run(*arguments: object, again: bool = False, **environment: str) -> Ran:
        if again or environment or arguments[:1] != ("check",):
            return run_monitor(*arguments, cwd=world, **environment)
        if arguments not in known:
            known[arguments] = run_monitor(*arguments, cwd=world)
        return known[arguments]

    return run
