"""The JSON shape that `check --format json` and `history export` share."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.report.result_json import result_as_json

HOUR = Window.of(datetime(2026, 1, 1, 10, tzinfo=UTC), timedelta(hours=1))


def test_a_metric_has_exactly_the_promised_keys() -> None:
    result = Result(
        metric="coverage",
        status=Status.OK,
        definition="1",
        labels={"by": "pv"},
        value=0.5,
        samples=4,
        lower=0.1,
    )
    assert result_as_json("shop", "exposure", HOUR, result) == {
        "recommender": "shop",
        "check": "exposure",
        "window_start": "2026-01-01T10:00:00Z",
        "window_end": "2026-01-01T11:00:00Z",
        "metric": "coverage",
        "labels": {"by": "pv"},
        "value": 0.5,
        "samples": 4,
        "lower": 0.1,
        "upper": None,
        "status": "ok",
        "detail": "",
        "definition": "1",
    }


def test_every_status_says_why() -> None:
    for status in Status:
        result = Result(metric="gini", status=status, definition="1", detail=f"because {status}")
        assert result_as_json("shop", "exposure", HOUR, result)["detail"] == f"because {status}"


def test_a_judged_metric_has_its_bounds_as_well() -> None:
    plain = Result(metric="failure", status=Status.OK, definition="1", value=0.01)
    unjudged = result_as_json("shop", "exposure", HOUR, plain)
    most = replace(plain, threshold=0.02, bound="max")
    shown = result_as_json("shop", "exposure", HOUR, most)
    assert shown == unjudged | {"threshold": 0.02, "bound": "max"}
    apart = result_as_json("shop", "exposure", HOUR, replace(most, clear=0.01))
    assert apart == shown | {"clear": 0.01}


def test_a_rule_has_its_violations_threshold_and_evidence_as_well() -> None:
    result = Result(
        kind=ResultKind.RULE,
        metric="rule",
        status=Status.VIOLATED,
        definition="1",
        labels={"rule": "blacklist", "kind": "hard"},
        value=0.25,
        violations=1,
        threshold=0.0,
        evidence=({"item_id": "<b>\n\0", "ts": datetime(2026, 1, 1, 10, 5), "score": float("inf")},),
    )
    shown = result_as_json("shop", "rules", HOUR, result)
    assert (shown["violations"], shown["threshold"]) == (1, 0.0)
    assert shown["evidence"] == [{"item_id": "<b>\n\0", "ts": "2026-01-01T10:05:00Z", "score": "Infinity"}]


def test_an_anomaly_says_what_was_found_and_shows_the_series() -> None:
    row = {
        "metric": "failure",
        "by": "pv",
        "of": "",
        "value": "<b>",
        "measured": 0.4,
        "deviation": float("inf"),
    }
    result = Result(
        kind=ResultKind.ANOMALY,
        metric="anomaly",
        status=Status.VIOLATED,
        definition="1",
        labels={"cause": "lists_empty"},
        value=1.0,
        threshold=0.0,
        detail="lists are empty",
        evidence=(row,),
    )
    shown = result_as_json("shop", "bands", HOUR, result)
    assert (shown["detail"], shown["evidence"]) == ("lists are empty", [{**row, "deviation": "Infinity"}])


def test_a_result_is_one_line_of_strict_json_for_any_log_content() -> None:
    result = Result(
        metric="gini",
        status=Status.OK,
        definition="1",
        value=float("nan"),
        labels={"value": "\udce9\n"},
        evidence=({"x": float("nan")},),
    )
    line = json.dumps(result_as_json("shop", "exposure", HOUR, result), allow_nan=False)
    assert "\n" not in line
    assert json.loads(line)["value"] is None
