"""Online rows that are exposures, labelled by the feedback that belongs to them."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from monitor.core.results import Status
from tests.models.test_check import judged, one, samples
from tests.shop import DAY, Shop, hour

LATER = DAY + timedelta(hours=40)


def shown(at: int, n: int, model: str = "v1") -> pd.DataFrame:
    rng = np.random.default_rng(at)
    start = hour(at).start.replace(tzinfo=None)
    return pd.DataFrame(
        {
            "request_id": [f"{at}-{row // 5}" for row in range(n)],
            "user_id": [f"u{row // 5 % 40}" for row in range(n)],
            "ts": [start + timedelta(seconds=3600 * (row // 5) / n) for row in range(n)],
            "item_id": [f"i{row % 5}" for row in range(n)],
            "score": rng.random(n),
            "model": model,
            "price": rng.normal(size=n),
        }
    )


def clicks(exposures: pd.DataFrame, delay: timedelta = timedelta(minutes=5)) -> pd.DataFrame:
    """Clicks on a row that are the likelier the higher its score."""
    rng = np.random.default_rng(9)
    hit = exposures[rng.random(len(exposures)) < exposures["score"] * 0.6]
    done = hit[["user_id", "item_id", "ts", "request_id"]].assign(event="click")
    done["ts"] += delay
    return done


@pytest.fixture
def joined(shop: Shop) -> Shop:
    logs = {name: {"path": str(shop.folder / name / "*")} for name in ("exposures", "feedback", "samples")}
    shop.config |= {"logs": logs, "models": {"online": "exposures", "over": "2h"}}
    return shop


def test_labels_come_from_the_actions_on_the_lists(joined: Shop):
    exposures = {at: shown(at, 2000) for at in (3, 4, 5)}
    for at, frame in exposures.items():
        joined.write(f"exposures/{at}.parquet", frame, LATER)
        joined.write(f"feedback/{at}.parquet", clicks(frame), LATER)
    joined.write("samples/test.parquet", samples("test", 3.0), LATER)
    found = judged(joined, 5)
    expected = pd.concat([exposures[4], exposures[5]])
    acted = pd.concat([clicks(exposures[4]), clicks(exposures[5])])[["request_id", "item_id"]]
    labelled = expected.merge(acted.assign(label=1), how="left", on=["request_id", "item_id"])
    labels = labelled["label"].fillna(0)
    online = one(found, "auc", split="online", model="v1")
    assert online.value == pytest.approx(roc_auc_score(labels, labelled["score"]), rel=1e-9)
    assert online.samples == 4000
    assert online.definition.endswith(";over=7200s;online=exposures")
    gap = one(found, "auc_gap", pair="test_online", model="v1")
    assert gap.status is Status.VIOLATED


def test_a_window_waits_for_the_actions_on_its_lists(joined: Shop):
    for at in (3, 4, 5):
        joined.write(f"exposures/{at}.parquet", shown(at, 100), LATER)
    joined.write("feedback/3.parquet", clicks(shown(3, 100)), LATER)
    joined.judge(hour(3))
    parts = joined.evaluator.parts
    soon = hour(3).end + timedelta(minutes=20)
    assert parts.names == ("exposures", "feedback", "samples")
    ready, late = parts.completeness(hour(3), "samples", soon)
    assert (ready, late is None) == (False, False)
    much_later = hour(3).end + timedelta(days=1)
    ready, late = parts.completeness(hour(3), "samples", much_later)
    assert ready
    assert late is not None  # a row whose action is still to come has the wrong label
    joined.write("feedback/4.parquet", clicks(shown(5, 100)), LATER)
    joined.judge(hour(3))
    assert parts.completeness(hour(3), "samples", soon) == (True, None)


def test_exposures_without_scores_give_no_online_rows(joined: Shop):
    joined.write("exposures/5.parquet", shown(5, 100).drop(columns="score"), LATER)
    joined.write("feedback/5.parquet", clicks(shown(5, 100)), LATER)
    joined.write("samples/test.parquet", samples("test", 3.0), LATER)
    gap = one(judged(joined, 5), "auc_gap", pair="test_online", model="v1")
    assert (gap.status, gap.detail) == (Status.NO_DATA, "there is no row of the split online")
