"""`init`, `validate` and `check` as a new user runs them, on logs of many shapes with known contents."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.config.init.log_shapes import CLICK_RATE, CLICKS, EXPOSURES, REFUSED, REQUESTS, TWICE, WATCHED


def _value(results: list[dict], metric: str, **labels: str) -> float | None:
    found = [one for one in results if one["metric"] == metric and one["labels"] == labels]
    assert len(found) <= 1, "all rows lie in one window"
    return found[0]["value"] if found else None


@pytest.mark.parametrize("make", WATCHED, ids=lambda make: make.__name__)
def test_a_log_of_this_shape_is_watched_and_its_planted_faults_are_found(make, command, tmp_path):
    shape = make(tmp_path)
    named = ["--feedback", shape.feedback] if shape.feedback else []
    code, said, notes = command("init", shape.log, *named, "--output", "shop.yaml")
    assert (code, [one for one in shape.said if one not in notes.replace("\n", " ")]) == (0, []), notes
    text = (tmp_path / "shop.yaml").read_text("utf-8")
    columns = yaml.safe_load(text)["recommenders"][0]["logs"]["exposures"]["columns"]
    assert {ours: columns.get(ours) for ours in shape.columns} == shape.columns
    assert [one for one in shape.text if one not in text] == [], text
    assert len(set(columns.values())) == len(columns), "no column has two roles"
    code, said, notes = command("validate", "--config", "shop.yaml")
    assert code == 0, said + notes
    code, said, notes = command("check", "--config", "shop.yaml", "--format", "json")
    assert code == 1, notes
    results = json.loads(said)
    assert [one for one in results if one["status"] == "error"] == []
    assert _value(results, "log_rows", log="exposures") == EXPOSURES
    assert _value(results, "log_bad_values", log="exposures") == shape.bad_values
    assert _value(results, "volume", by="requests") == REQUESTS
    assert _value(results, "rule", rule="duplicate_item", kind="soft") == pytest.approx(TWICE / REQUESTS)
    assert _value(results, "action_volume", event="click") == CLICKS
    assert _value(results, "action_rate", by="exposure", event="click") == pytest.approx(CLICK_RATE)


@pytest.mark.parametrize("make", REFUSED, ids=lambda make: make.__name__)
def test_a_log_of_this_shape_is_refused_with_advice(make, command, tmp_path):
    shape = make(tmp_path)
    code, said, notes = command("init", shape.log, "--output", "shop.yaml")
    assert code == 2, said + notes
    assert [one for one in shape.said if one not in notes.replace("\n", " ")] == [], notes
