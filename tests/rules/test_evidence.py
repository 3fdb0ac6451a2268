"""The evidence of a violation: whose it is, how much, in which order."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from monitor.core.results import MOST_EVIDENCE, Result, Status
from monitor.history.rows import sanitize_result
from monitor.settings.recommender import EvidenceSettings
from monitor.settings.rules import RuleSettings
from tests.judged_world import PACKS, put, several


def test_users_are_hashed_with_the_salt_unless_hashing_is_off(world):
    put(world, item_id="banned")
    source = RuleSettings(pack="blacklist", parameters=PACKS["blacklist"])
    hashed = {salt: world.check(source, salt=salt)["blacklist"].evidence[0] for salt in ("a", "b", None)}
    assert hashed[None]["user_id"] == "u0000"
    assert hashed["a"]["user_id"] != hashed["b"]["user_id"]
    assert len(hashed["a"]["user_id"]) == 12
    assert "u0000" not in json.dumps(hashed["a"])


def test_users_are_hashed_in_every_column_that_a_join_of_the_rows_gives(world):
    put(world, score=7.0)
    query = "SELECT a.*, b.* FROM {batch} AS a JOIN {batch} AS b USING (request_id) WHERE a.score = 7"
    source = world.suite(
        "  - type: unexpected_rows_expectation\n"
        f"    kwargs: {{unexpected_rows_query: '{query}'}}\n"
        "    meta: {rule: r, kind: hard}\n"
    )
    (row, *_) = world.check(source, salt="a")["r"].evidence
    assert "u0000" not in json.dumps(row)


def test_evidence_is_bounded_in_rows_and_in_the_length_of_a_value(world):
    for request in range(50):
        put(world, request, item_id="x" * 10_000_0)
    result = world.check(RuleSettings(pack="catalog"), rows=20)["item_not_in_catalog"]
    assert (result.violations, len(result.evidence)) == (50, 20)
    assert max(len(str(value)) for row in result.evidence for value in row.values()) <= 200


def test_evidence_is_the_same_each_time_and_the_earliest_first(world):
    several(50, item_id="banned")(world)
    source = RuleSettings(pack="blacklist", parameters=PACKS["blacklist"])
    first, second = (world.check(source, rows=10)["blacklist"].evidence for _ in range(2))
    assert first == second
    assert [row["ts"] for row in first[:2]] == ["2026-01-01T10:00:00Z", "2026-01-01T10:00:01Z"]
    assert list(first[0]) == [
        "request_id", "user_id", "item_id", "ts", "position", "score", "list_version"
    ]  # fmt: skip


def test_a_config_can_ask_for_as_many_rows_as_are_kept_and_no_more():
    asked = EvidenceSettings(rows=MOST_EVIDENCE)
    many = Result(metric="rule", status=Status.OK, definition="1", evidence=({"n": 1},) * 1000)
    assert asked.rows == len(sanitize_result(many).evidence) == 100
    with pytest.raises(ValidationError, match="less than or equal to 100"):
        EvidenceSettings(rows=MOST_EVIDENCE + 1)
