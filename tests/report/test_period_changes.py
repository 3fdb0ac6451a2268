"""Which bounds count as changed by the config, and which model serves most."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from monitor.core.results import Result, Status, Window
from monitor.history.reads import StoredResult
from monitor.report.period_changes import changes_of
from monitor.settings.recommender import RecommenderSettings

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
SHOP = RecommenderSettings.model_validate({"name": "shop", "logs": {"exposures": {"path": "e.csv"}}})
OK, LATE, NO_DATA, ERROR = Status.OK, Status.LATE, Status.NO_DATA, Status.ERROR


def changes(metric: str, *windows: tuple[Status, float | None]) -> list[str]:
    """The texts of the changes over windows with these statuses and bounds."""
    stored = [
        StoredResult(
            "shop",
            "exposure",
            Window.of(START + place * HOUR, HOUR),
            Result(metric=metric, status=status, definition="1", value=0.1, threshold=bound,
                   bound=None if bound is None else "max"),
        )
        for place, (status, bound) in enumerate(windows)
    ]  # fmt: skip
    return [one.text for one in changes_of(stored, SHOP, Window(START, START + timedelta(days=1)))]


@pytest.mark.parametrize("unjudged", [LATE, NO_DATA, ERROR])
def test_a_window_that_was_not_judged_says_nothing_of_an_objective(unjudged: Status) -> None:
    assert changes("gini", (OK, 0.5), (unjudged, None), (OK, 0.5)) == []
    assert changes("gini", (OK, 0.5), (unjudged, None), (OK, 0.9)) == [
        "the objective on gini is max 0.9, before it max 0.5"
    ]


def test_another_definition_of_a_metric_is_one_change_for_all_of_its_series() -> None:
    stored = [
        StoredResult(
            "shop",
            "feedback",
            Window.of(START + place * HOUR, HOUR),
            Result(metric="recall", labels={"k": k}, status=OK, definition=definition, value=0.1),
        )
        for place, definition in enumerate(("1", "1;attribution=2h"))
        for k in ("5", "10")
    ]
    found = changes_of(stored, SHOP, Window(START, START + timedelta(days=1)))
    assert [one.text for one in found] == ["recall has another definition: 1;attribution=2h, before it 1"]


def test_a_new_and_a_removed_objective_are_changes() -> None:
    assert changes("gini", (OK, None), (OK, 0.5), (OK, None)) == [
        "the objective on gini is new: max 0.5",
        "the objective on gini was removed: max 0.5",
    ]


def test_the_bound_on_lost_actions_stands_where_they_cannot_be_judged() -> None:
    assert changes("unattributed", (OK, 0.7), (OK, None), (OK, 0.7)) == []
    assert changes("unattributed", (OK, 0.7), (OK, None), (OK, 0.2)) == [
        "the objective on unattributed is max 0.2, before it max 0.7"
    ]


def test_the_slice_of_all_other_models_is_no_model() -> None:
    served = [(40, 0, 30), (40, 0, 45), (40, 0, 30), (10, 30, 45)]
    stored = [
        StoredResult("shop", "exposure", Window.of(START + place * HOUR, HOUR), requests(model, count))
        for place, counts in enumerate(served)
        for model, count in zip(("m1", "m2", "other"), counts, strict=True)
    ]
    found = changes_of(stored, SHOP, Window(START, START + timedelta(days=1)))
    assert [(one.at, one.text) for one in found] == [(START + 3 * HOUR, "model m2 serves most, before it m1")]


def requests(model: str, count: float) -> Result:
    labels = {"by": "requests", "dimension": "model", "value": model}
    return Result(metric="volume", labels=labels, status=OK, definition="1", value=count)
