"""Two real daemons on one PostgreSQL share the recommenders, and take over from each other."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from monitor.history.leases import TTL
from tests.postgres import Postgres, postgres
from tests.processes import Monitor, exposures, get, land, monitor, wait_for

MINUTE = timedelta(minutes=1)
NAMES = ("one", "two", "three", "four")
PAIR = ("left", "right")


def settings(folder: Path, server: Postgres, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    rules = folder / "rules.yaml"
    rules.write_text(
        "name: own\nexpectations:\n"
        "  - type: expect_column_values_to_not_be_in_set\n"
        "    kwargs: {column: item_id, value_set: [bad]}\n"
        "    meta: {rule: blacklist, kind: hard, table: exposures}\n"
    )
    return {
        "history": {"url": f"{server.url}/postgres"},
        "engine": {"threads": 1, "workers": 1},
        "recommenders": [
            {
                "name": name,
                "logs": {"exposures": {"path": str(folder / name / "*.parquet")}},
                "rules": [{"suite": str(rules)}],
                "window": "1m",
                "every": "1s",
                "lateness": "0s",
            }
            for name in names
        ],
    }


def held(one: Monitor) -> set[str]:
    return {
        dict(labels)["recommender"]
        for (name, labels), value in one.series().items()
        if name == "recsys_lease" and value == 1
    }


@contextmanager
def pair(folder: Path, server: Postgres, names: tuple[str, ...] = NAMES) -> Iterator[tuple[Monitor, Monitor]]:
    config = settings(folder, server, names)
    with monitor(folder / "left", config) as left:
        for one in PAIR[1:]:
            (folder / one / "state").mkdir(parents=True)
            (folder / one / "state/salt").write_bytes((folder / "left/state/salt").read_bytes())
        with monitor(folder / "right", config) as right:
            yield left, right


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


def test_two_monitors_share_and_the_survivor_takes_over_within_two_minutes(
    tmp_path: Path, server: Postgres
) -> None:
    first = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    for name in NAMES:
        bad = ["bad"] if name == "one" else []
        land(tmp_path / name / "a.parquet", exposures(first, 60, items=[*"abcdefg", *bad]))
        land(tmp_path / name / "b.parquet", exposures(first + MINUTE, 30))
    with pair(tmp_path, server) as (left, right):
        wait_for("a fair share", lambda: (len(held(left)), len(held(right))) == (2, 2))
        wait_for("every first window", lambda: all(windows(left, right, name) == 1 for name in NAMES))
        violations = counted(left, right, "recsys_rule_violations_total", recommender="one")
        assert violations
        theirs = held(left)
        assert left.running is not None
        left.running.send(signal.SIGKILL)
        for name in NAMES:
            land(tmp_path / name / "c.parquet", exposures(first + 2 * MINUTE, 30))
        wait_for("the takeover", lambda: held(right) == set(NAMES), seconds=120)
        wait_for("the next window", lambda: all(right_windows(right, name) == 2 for name in NAMES))
        assert theirs
        assert right.value("recsys_rule_violations_total", recommender="one") == violations
        assert not right.value("recsys_corrections_total")
        left.start()
        wait_for("a fair share again", lambda: (len(held(left)), len(held(right))) == (2, 2))


def right_windows(one: Monitor, name: str) -> float:
    return one.value("recsys_windows_total", recommender=name) or 0


def windows(left: Monitor, right: Monitor, name: str) -> float:
    return counted(left, right, "recsys_windows_total", recommender=name)


def counted(left: Monitor, right: Monitor, name: str, **labels: str) -> float:
    return (left.value(name, **labels) or 0) + (right.value(name, **labels) or 0)
