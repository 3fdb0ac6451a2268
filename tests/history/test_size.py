"""How much room a history takes."""

from __future__ import annotations

import random
from pathlib import Path

from monitor.core.results import Result, ResultKind, Status
from monitor.history.record import CheckRun
from monitor.history.store import Store
from tests.history.conftest import hour
from tests.history.recording import NOON

SERIES = 60
WINDOWS = 100
MOST_BYTES = 35  # a result; a row of its own took 116


def number(rng: random.Random) -> float:
    """A value as metrics and bands round it."""
    return float(f"{rng.lognormvariate(0, 2):.12g}")


def runs(rng: random.Random) -> list[CheckRun]:
    """The measured values of a window with their intervals, what was expected, and how far they are off."""
    every = [{"by": "pv", "dimension": "scene", "value": f"scene {one}"} for one in range(SERIES)]
    measured = [
        Result(
            metric="failure", status=Status.OK, definition="1", labels=labels, value=number(rng),
            lower=number(rng), upper=number(rng), samples=rng.randrange(10_000),
        )
        for labels in every
    ]  # fmt: skip
    banded: list[Result] = []
    for labels in every:
        shared = {"kind": ResultKind.BAND, "labels": labels, "definition": "3;of=c863be401b4e", "samples": 28}
        banded.append(
            Result(
                metric="expected", status=Status.OK, value=number(rng), lower=number(rng), upper=number(rng),
                detail="from the same time on days of this type", **shared,
            )
        )  # fmt: skip
        banded.append(
            Result(
                metric="deviation", status=Status.OK, value=number(rng), threshold=4.85, bound="max", **shared
            )
        )
    return [CheckRun(check="exposure", results=measured), CheckRun(check="bands", results=banded)]


def test_a_stored_result_takes_few_bytes(tmp_path: Path) -> None:
    path, rng = tmp_path / "history.sqlite", random.Random(1)
    with Store.open(path) as store:
        empty = store_size(path, store)
        for one in range(WINDOWS):
            store.record_window(
                "shop", hour(one), runs(rng), fingerprint=f"{one:032x}", rows=9, evaluated_at=NOON
            )
        each = (store_size(path, store) - empty) / (3 * SERIES * WINDOWS)
        assert len(list(store.results())) == 3 * SERIES * WINDOWS
    assert each < MOST_BYTES


def store_size(path: Path, store: Store) -> int:
    """The bytes of the file when all that was written is in it."""
    with store.reading() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("BEGIN")
    return path.stat().st_size
