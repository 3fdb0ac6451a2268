"""Changes beside the numbers: those of the config, and those that the windows of a history show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from monitor.core.results import Result, Status
from monitor.history.snapshot import Point, Series
from monitor.history.store import Store
from monitor.report.changes import new_models
from monitor.report.known_changes import Change, ChangeKind, changes_of_config, changes_of_history
from monitor.settings.recommender import RecommenderSettings
from tests.history.conftest import hour
from tests.history.recording import record, rule


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "history.sqlite") as store:
        yield store


def requests(model: str, value: float) -> Result:
    labels = {"by": "requests", "dimension": "model", "value": model}
    return Result(metric="volume", status=Status.OK, definition="1", labels=labels, value=value)


def found(store: Store, first: int = 0, last: int | None = None) -> list[Change]:
    end = None if last is None else hour(last).end
    with store.reading() as connection:
        return list(changes_of_history(connection, "shop", hour(first).start, end))


def told(changes: list[Change]) -> list[tuple[datetime, str, str]]:
    return [(one.at, one.kind.value, one.what) for one in changes]


def test_the_model_with_most_requests_changes_where_another_one_has_more(history: Store) -> None:
    served = [(9, 1), (9, 1), (0, 0), (1, 9), (2, 9)]
    for number, (old, new) in enumerate(served):
        record(history, hour(number), [requests("old", old), requests("", new), requests("other", 99)])
    what = "the model without a name serves most requests; before, model old did"
    assert told(found(history)) == [(hour(3).start, "model", what)]
    assert found(history, last=2) == []
    assert found(history, first=3) == []


def test_the_page_calls_the_slice_of_all_other_models_no_model() -> None:
    served = {"m1": (40, 40, 40, 10), "m2": (1, 1, 1, 30), "other": (30, 45, 30, 45)}
    series = [
        Series(
            recommender="shop", check="exposure", window=hour(3), result=requests(model, counts[-1]),
            evaluated_at=hour(3).end, standing=Status.OK, since=hour(0).start,
            past=tuple(Point(hour(place), count, Status.OK) for place, count in enumerate(counts)),
        )
        for model, counts in served.items()
    ]  # fmt: skip
    (change,) = new_models(series)
    assert (change.at, change.what) == (hour(3).start, "model m2 serves the most requests")


def test_a_list_changes_where_the_evidence_has_another_version(history: Store) -> None:
    for number, version in enumerate(["a1", None, "a1", "b2"]):
        violated = rule("blacklist", 1)
        evidence = ({"item_id": "x", "list_version": version},)
        record(
            history, hour(number), [replace(violated, evidence=evidence) if version else rule("blacklist", 0)]
        )
    what = "the list of rule blacklist has version b2; before, a1"
    assert told(found(history)) == [(hour(3).start, "list", what)]


def test_a_definition_changes_once_for_all_series_of_a_metric_and_for_each_rule(history: Store) -> None:
    def results(definition: str, rules: str) -> list[Result]:
        series = [
            Result(metric="ndcg", status=Status.OK, definition=definition, labels={"k": k}, value=0.5)
            for k in ("5", "10")
        ]
        return [*series, replace(rule("empty", 0), definition=rules)]

    record(history, hour(0), results("1", "aa"))
    record(history, hour(1), results("1;events=buy", "aa"))
    record(history, hour(2), results("1;events=buy", "bb"))
    assert told(found(history)) == [
        (hour(1).start, "definition", "ndcg is measured by definition 1;events=buy; before, 1"),
        (hour(2).start, "definition", "rule empty is judged by another definition"),
    ]
    assert [one.metrics for one in found(history)] == [("ndcg",), ()]


def test_the_config_declares_changes_seasons_by_the_clock_of_the_users_and_maintenance() -> None:
    settings = RecommenderSettings.model_validate(
        {
            "name": "shop",
            "logs": {"exposures": {"path": "logs/*.parquet"}},
            "maintenance": [{"from": "2026-03-02T05:00:00Z", "until": "2026-03-02T06:00:00Z"}],
            "bands": {
                "timezone": "Europe/Berlin",
                "changes": [{"at": "2026-03-01T10:00:00Z", "what": "model\nm7", "metrics": ["ndcg"]}],
                "seasons": [{"from": "2026-11-20", "to": "2026-12-24", "what": "Christmas"}],
            },
        }
    )
    known = {one.kind: one for one in changes_of_config(settings)}
    assert known[ChangeKind.DECLARED] == Change(
        datetime(2026, 3, 1, 10, tzinfo=UTC), ChangeKind.DECLARED, "model[LF]m7", metrics=("ndcg",)
    )
    season = known[ChangeKind.SEASON]
    assert season.at == datetime(2026, 11, 19, 23, tzinfo=UTC)
    assert season.until == datetime(2026, 12, 24, 23, tzinfo=UTC)
    assert known[ChangeKind.MAINTENANCE].what == "maintenance"
    assert {one for one in ChangeKind if one.is_of_config} == set(known)
