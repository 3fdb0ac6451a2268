"""A recommender that logs nothing but samples of its models, under watch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Status
from monitor.history.read_snapshot import read_snapshot
from monitor.history.store import Store
from monitor.service.watch import Watch
from tests.processes import land
from tests.service.prometheus.scrapes import find, samples, scrape
from tests.service.test_watch import FIRST, HOUR, watch

MODELS = {"over": "1h", "gaps": {"test_online": 0.05}}


def write(folder: Path, name: str, split: str, strength: float, at: int | None = None, n: int = 3000) -> None:
    rng = np.random.default_rng([n, at or 0])
    label = rng.integers(0, 2, n)
    frame = pd.DataFrame({"split": split, "score": rng.random(n) + strength * label, "label": label})
    frame["model"] = "v1"
    if at is not None:
        frame["ts"] = [FIRST + at * HOUR + timedelta(seconds=row % 3600) for row in range(n)]
    land(folder / f"samples/{name}.parquet", frame)


def watched(folder: Path, store: Store, **settings: object) -> Watch:
    logs = {"samples": {"path": str(folder / "samples/*.parquet")}}
    return watch(folder, store, **{"logs": logs, "models": MODELS, **settings})


def close(folder: Path, after: int) -> None:
    """A row of a later hour: the log has passed the one before."""
    write(folder, f"later{after}", "online", 0.0, after + 2, n=4)


def gaps(store: Store, *hours: int) -> dict[int, Status]:
    found = store.results(recommenders=["shop"])
    return {
        int((one.window.start - FIRST) / HOUR): one.result.status
        for one in found
        if one.result.metric == "auc_gap" and int((one.window.start - FIRST) / HOUR) in hours
    }


def test_windows_follow_the_online_samples_and_late_ones_correct_theirs(tmp_path, store, runtime):
    write(tmp_path, "test", "test", 1.0)
    for at in (1, 2, 3):
        write(tmp_path, f"online{at}", "online", 1.0 if at < 3 else 0.2, at)
    close(tmp_path, 3)
    shop = watched(tmp_path, store)
    assert shop.turn(runtime, datetime.now(UTC)) is False
    assert gaps(store, 1, 2, 3) == {1: Status.OK, 2: Status.OK, 3: Status.VIOLATED}
    assert {one.check for one in store.evaluated("shop")} == {"models"}
    assert shop.turn(runtime, datetime.now(UTC)) is False
    assert {one.revision for one in store.evaluated("shop")} == {0}
    write(tmp_path, "late", "online", -1.0, 2, n=4000)
    shop.turn(runtime, datetime.now(UTC))
    assert gaps(store, 1, 2, 3) == {1: Status.OK, 2: Status.VIOLATED, 3: Status.VIOLATED}
    corrected = [one.window.start for one in store.evaluated("shop") if one.revision]
    assert corrected == [FIRST + 2 * HOUR]


def test_a_new_test_set_counts_from_the_next_window_on(tmp_path, store, runtime):
    write(tmp_path, "test", "test", 0.2)
    write(tmp_path, "online1", "online", 0.2, 1)
    close(tmp_path, 1)
    shop = watched(tmp_path, store)
    shop.turn(runtime, datetime.now(UTC))
    write(tmp_path, "test", "test", 1.0)  # the model was tested anew
    shop.turn(runtime, datetime.now(UTC))
    assert gaps(store, 1) == {1: Status.OK}
    write(tmp_path, "online4", "online", 0.2, 4)
    close(tmp_path, 4)
    shop.turn(runtime, datetime.now(UTC))
    assert gaps(store, 1, 4) == {1: Status.OK, 4: Status.VIOLATED}


def test_a_batch_is_judged_when_it_has_come_and_not_when_the_next_one_has(tmp_path, store, runtime):
    write(tmp_path, "test", "test", 1.0)
    write(tmp_path, "online1", "online", 0.2, 1)
    shop = watched(tmp_path, store)
    soon = FIRST + 2 * HOUR + timedelta(minutes=30)  # within `max_wait` more may come
    shop.turn(runtime, soon)
    assert gaps(store, 1) == {}
    shop.turn(runtime, soon + HOUR)
    assert gaps(store, 1) == {1: Status.VIOLATED}


def test_a_restart_judges_nothing_again(tmp_path, store, runtime):
    write(tmp_path, "test", "test", 1.0)
    write(tmp_path, "train", "train", 1.0)
    write(tmp_path, "online", "online", 1.0, 1)
    watched(tmp_path, store).turn(runtime, datetime.now(UTC))
    before = store.evaluated("shop")
    again = watched(tmp_path, store)
    again.turn(runtime, datetime.now(UTC))
    assert store.evaluated("shop") == before
    assert again.error is None


def test_the_daemon_exports_the_gap_and_the_auc_of_a_model(tmp_path, store, runtime):
    write(tmp_path, "train", "train", 1.0)
    write(tmp_path, "test", "test", 1.0)
    write(tmp_path, "online", "online", 0.2, 1)
    close(tmp_path, 1)
    watched(tmp_path, store, models={"over": "9h"}, max_wait="9999d").turn(runtime, datetime.now(UTC))
    text = scrape(read_snapshot(store, ["shop"], datetime.now(UTC)), series_limit=100_000)
    of = {"recommender": "shop", "model": "v1"}
    gap = find(text, "recsys_auc_gap", pair="test_online", **of)
    aucs = {split: find(text, "recsys_auc", split=split, **of) for split in ("test", "online")}
    assert gap == pytest.approx(aucs["test"] - aucs["online"], abs=1e-9)
    assert find(text, "recsys_auc_gap_lower", pair="test_online", **of) > 0.02
    assert find(text, "recsys_auc_gap_status", pair="test_online", status="violated", **of) == 1
    assert find(text, "recsys_auc_gap_status", pair="train_test", status="ok", **of) == 1
    assert not [
        name for name, labels in samples(text) if "metric_status" in name and ("metric", "auc") in labels
    ]


def test_a_cause_of_unknown_share_has_its_own_family_and_no_ratio(tmp_path, store, runtime):
    """The feature is constant online, and the scores do not show what that costs."""
    for name, split, strength, at in (("test", "test", 1.0, None), ("online", "online", 0.2, 1)):
        write(tmp_path, name, split, strength, at)
        path = tmp_path / f"samples/{name}.parquet"
        frame = pd.read_parquet(path)
        flag = np.random.default_rng(0).normal(size=len(frame)) if split == "test" else 7.0
        land(path, frame.assign(flag=flag))
    write(tmp_path, "later1", "online", 0.0, 3, n=4)
    land(
        tmp_path / "samples/later1.parquet",
        pd.read_parquet(tmp_path / "samples/later1.parquet").assign(flag=7.0),
    )
    watched(tmp_path, store, models={"over": "9h"}, max_wait="9999d").turn(runtime, datetime.now(UTC))
    text = scrape(read_snapshot(store, ["shop"], datetime.now(UTC)), series_limit=100_000)
    of = {"recommender": "shop", "model": "v1", "pair": "test_online"}
    assert find(text, "recsys_auc_gap_cause_unknown_share", cause="pruned_features", **of) == 1
    assert not [name for name, _ in samples(text) if name == "recsys_auc_gap_cause_ratio"]


def test_a_log_without_files_is_an_error(tmp_path, store, runtime):
    shop = watched(tmp_path, store)
    shop.turn(runtime, datetime.now(UTC))
    assert shop.error == f"no file matches {tmp_path}/samples/*.parquet"
