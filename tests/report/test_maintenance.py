"""What the page says of maintenance, and of an objective with two bounds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from monitor.core.results import Status
from monitor.history.snapshot import MaintenanceState, RecommenderState
from monitor.report.page import recommender_page
from monitor.report.rows import objective_row
from tests.service import pictures


def held(reason: str = "", left: timedelta = timedelta(hours=2)) -> RecommenderState:
    return replace(pictures.news(), maintenance=MaintenanceState(pictures.NOW + left, reason))


def said(state: RecommenderState) -> str:
    found = recommender_page(replace(pictures.full(), recommenders=(state,)), state.name, pictures.NOW)
    view = found.recommender
    return view.maintenance


def test_maintenance_is_shown_with_its_end_and_its_reason() -> None:
    assert said(held("a move")) == "Maintenance until 2026-03-09 16:07 UTC: a move. Nobody is alerted."
    assert said(held()) == "Maintenance until 2026-03-09 16:07 UTC. Nobody is alerted."
    assert said(pictures.news()) == ""


def test_the_page_says_that_alerts_are_still_held_back_after_the_end() -> None:
    assert said(held("a move", timedelta(0))) == (
        "Maintenance until 2026-03-09 14:07 UTC is over: a move. "
        "Alerts are held back until all of it is judged."
    )


def test_marks_that_turn_a_text_around_are_shown_as_such() -> None:
    assert "\u202e" not in said(held("a\u202eb"))


@pytest.mark.parametrize(
    ("bound", "clear", "text"),
    [
        ("max", 0.01, "fires above 2 %, clears at 1 %"),
        ("min", 0.05, "fires below 2 %, clears at 5 %"),
        ("max", None, "at most 2 %"),
        ("min", None, "at least 2 %"),
    ],
)
def test_an_objective_says_where_it_fires_and_where_it_clears(
    bound: str, clear: float | None, text: str
) -> None:
    result = pictures.metric("failure", "pv", value=0.01, threshold=0.02, bound=bound, clear=clear)
    row = objective_row(pictures.series(result, standing=Status.OK), pictures.NOW)
    assert row.bound.replace("\xa0", " ") == text
