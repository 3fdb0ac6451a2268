"""The demo's recommender behind HTTP, asked as a replay would."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from monitor.simulate.endpoint import VARIANTS, Recommender, application
from monitor.simulate.traffic import Simulator, Traffic

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    return Simulator(Traffic(users=300, items=200), seed=5)


@pytest.fixture
def client(simulator: Simulator) -> TestClient:
    return TestClient(application(simulator, seed=3))


def ask(client: TestClient, variant: str, user: str, **more: Any) -> dict[str, Any]:
    answer = client.post(f"/recommend/{variant}", json={"user_id": user, "now": NOW.isoformat(), **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def recommend(
    simulator: Simulator, variant: str, user: str, *, seed: int | None = None
) -> list[dict[str, Any]]:
    """The items of an answer, without HTTP and without the delay of the variant."""
    seed = int(user[1:]) if seed is None else seed
    recommender = Recommender(simulator, np.random.default_rng([3, seed]))
    body = json.dumps({"user_id": user, "now": NOW.isoformat()}).encode()
    items: list[dict[str, Any]] = recommender.answer(VARIANTS[variant], body)["items"]
    return items


def test_an_answer_has_the_user_the_model_and_items_by_falling_score(client: TestClient) -> None:
    answer = ask(client, "current", "u000007", n=4)
    assert (answer["user_id"], answer["model"]) == ("u000007", "m1")
    scores = [one["score"] for one in answer["items"]]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert len({one["id"] for one in answer["items"]}) == 4


def test_the_current_model_shows_no_item_that_it_must_not(client: TestClient, simulator: Simulator) -> None:
    shown = {one["id"] for n in range(100) for one in ask(client, "current", f"u{n:06d}")["items"]}
    assert len(shown) > 50
    assert not shown & set(simulator.blacklist)


def test_the_list_is_of_the_time_that_is_asked_for(client: TestClient, simulator: Simulator) -> None:
    then = datetime(2025, 3, 1, tzinfo=UTC)
    later = {
        item
        for item, opened in zip(simulator.item_ids.tolist(), simulator.created_at, strict=True)
        if opened > np.datetime64("2025-03-01")
    }
    early = {
        one["id"]
        for n in range(50)
        for one in ask(client, "good", f"u{n:06d}", now=then.isoformat())["items"]
    }
    assert later
    assert not early & later


def test_the_good_candidate_finds_more_of_what_users_clicked(simulator: Simulator) -> None:
    batch = simulator.batch(NOW, NOW + timedelta(seconds=60), 20.0, np.random.default_rng(1))
    lists: pd.DataFrame = batch.exposures.to_pandas()
    clicks: pd.DataFrame = batch.feedback.to_pandas()
    users = lists.groupby("request_id").user_id.first()
    clicked = {(one.request_id, one.item_id) for one in clicks.itertuples()}
    hits = {
        variant: sum(
            (request, one["id"]) in clicked
            for request, user in users.items()
            for one in recommend(simulator, variant, str(user))
        )
        for variant in ("current", "good", "bad")
    }
    assert hits["good"] > 1.2 * hits["current"]
    assert hits["bad"] < 0.8 * hits["current"]


def test_the_bad_candidate_leaks_blacklisted_items_and_returns_nothing_now_and_then(
    simulator: Simulator,
) -> None:
    answers = [recommend(simulator, "bad", f"u{n % 300:06d}", seed=n) for n in range(600)]
    empty = sum(not items for items in answers)
    leaks = sum(any(one["id"] in simulator.blacklist for one in items) for items in answers)
    assert 10 <= empty <= 60  # 5 % of 600
    assert 1 <= leaks <= 20  # 1 % of 600


def test_a_user_whom_nobody_knows_gets_a_list_too(client: TestClient) -> None:
    assert len(ask(client, "current", "zzz")["items"]) == 10


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "the body is not JSON, or too deeply nested"),
        (b"[" * 9000, "the body is not JSON, or too deeply nested"),
        (b"[]", "the body is an object with a text user_id"),
        (b'{"user_id": 7}', "the body is an object with a text user_id"),
        (b'{"user_id": "\\ud800"}', "the body is an object with a text user_id"),
        (b'{"user_id": "u", "n": 0}', "n is a whole number from 1 to 10"),
        (b'{"user_id": "u", "n": true}', "n is a whole number from 1 to 10"),
        (b'{"user_id": "u", "now": "noon"}', "now is a time such as 2026-03-01T12:00:00Z"),
        (b'{"user_id": "u", "now": "0001-01-01T00:00+14:00"}', "now is a time such as 2026-03-01T12:00:00Z"),
        (
            b'{"user_id": "u", "now": "1900-01-01"}',
            "now: only 0 items are available from 1900-01-01 00:00:00+00:00 to 1900-01-01 00:00:00+00:00",
        ),
    ],
)
def test_a_request_that_is_not_understood_gets_a_sentence(client: TestClient, body: bytes, says: str) -> None:
    answer = client.post("/recommend/good", content=body)
    assert (answer.status_code, answer.json()) == (400, {"error": says})


def test_a_request_that_is_too_long_is_refused(client: TestClient) -> None:
    assert client.post("/recommend/good", content=b"x" * 10_001).status_code == 413


def test_there_are_three_variants(client: TestClient) -> None:
    answer = client.post("/recommend/best", json={"user_id": "u"})
    assert (answer.status_code, answer.json()) == (404, {"error": "there are current, good, bad"})
