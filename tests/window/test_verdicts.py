"""From measured to judged: objectives, and what an incomplete window may still say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.metrics.catalogue import SPECS
from monitor.settings.metrics import MetricSettings
from monitor.settings.recommender import Objective
from monitor.window.verdicts import apply_objectives, mark_late, window_status


def measured(value: float | None = 0.9, **given: Any) -> Result:
    fields = {"metric": "coverage", "labels": {"by": "pv"}, "status": Status.OK, "definition": "1", **given}
    return Result(value=value, **fields)


def rule(status: Status, kind: str = "hard", threshold: float = 0.0, **given: Any) -> Result:
    labels = {"rule": "r", "kind": kind}
    return Result(
        kind=ResultKind.RULE, metric="rule", labels=labels, status=status, definition="1",
        threshold=threshold, **given,
    )  # fmt: skip


def objective(**given: Any) -> Objective:
    return Objective.model_validate({"metric": "coverage", "labels": {"by": "pv"}, **given})


def judge(results: list[Result], objectives: list[Objective], **more: Any) -> list[Result]:
    return apply_objectives(results, objectives, MetricSettings(valid_list_length=3), **more)


@pytest.mark.parametrize(
    ("bounds", "value", "lower", "upper", "status"),
    [
        ({"min": 0.95}, 0.90, 0.85, 0.94, Status.VIOLATED),  # the whole interval lies below
        ({"min": 0.95}, 0.90, 0.85, 0.96, Status.OK),  # it reaches the bound: too few rows to tell
        ({"min": 0.95}, 0.90, 0.85, 0.95, Status.OK),
        ({"min": 0.95}, 0.90, None, None, Status.VIOLATED),  # no interval: the value itself
        ({"max": 0.10}, 0.20, 0.11, 0.30, Status.VIOLATED),
        ({"max": 0.10}, 0.20, 0.09, 0.30, Status.OK),
        ({"max": 0.10}, 0.05, 0.01, 0.20, Status.OK),
    ],
)
def test_an_objective_is_violated_only_if_the_whole_interval_is_beyond_its_bound(
    bounds: dict[str, float], value: float, lower: float | None, upper: float | None, status: Status
) -> None:
    (judged,) = judge([measured(value, lower=lower, upper=upper)], [objective(**bounds)])
    assert judged.status is status
    assert (judged.bound, judged.threshold) == next(iter(bounds.items()))
    assert bool(judged.detail) == (status is Status.VIOLATED)
    assert ("interval" in judged.detail) == (status is Status.VIOLATED and lower is not None)


def test_large_numbers_of_an_objective_are_written_in_full() -> None:
    of = {"metric": "volume", "labels": {"by": "requests"}}
    (judged,) = judge([measured(1_204_567.0, **of)], [objective(**of, min=2_000_000)])
    assert judged.detail == "1,204,567 is below the objective's minimum, 2,000,000"
    (judged,) = judge([measured(1.0, **of)], [objective(**of, min=1_234_567.5)])
    assert judged.detail == "1 is below the objective's minimum, 1,234,567.5"


def test_an_objective_does_not_judge_slices_of_its_series() -> None:
    others = [
        measured(0.1, labels={"by": "uv"}),
        measured(0.1, labels={"by": "pv", "dimension": "scene", "value": "home"}),
        measured(0.1, metric="failure"),
    ]
    mine = measured()
    assert judge([*others, mine], [objective(min=0.5)])[:3] == others


def test_an_objective_without_a_result_is_no_data() -> None:
    band = [objective(min=0.2), objective(max=0.8)]
    (missing,) = judge([], band)
    assert (missing.metric, missing.labels, missing.definition) == (
        "coverage",
        {"by": "pv"},
        "1;valid_list_length=3",
    )
    assert (missing.status, missing.value, missing.threshold) == (Status.NO_DATA, None, 0.2)
    assert missing.detail
    assert window_status([missing]) is Status.NO_DATA
    (failed,) = judge([], band, otherwise=(Status.ERROR, "took too long"))
    assert (failed.status, failed.detail, failed.threshold) == (Status.ERROR, "took too long", 0.2)


def test_a_broken_bound_is_shown_before_one_that_only_the_value_is_beyond() -> None:
    band = [objective(min=0.2), objective(max=0.8)]
    (above,) = judge([measured(0.9, lower=0.85, upper=0.95)], band)
    assert (above.status, above.bound, above.threshold) == (Status.VIOLATED, "max", 0.8)
    (near,) = judge([measured(0.9, lower=0.75, upper=0.95)], band)
    assert (near.status, near.bound) == (Status.OK, "max")  # so that a violation does not clear too soon
    (within,) = judge([measured(0.5, lower=0.4, upper=0.6)], band)
    assert (within.status, within.bound) == (Status.OK, "min")


@pytest.mark.parametrize(
    ("status", "judged"),
    [
        (Status.UNDEFINED, Status.NO_DATA),
        (Status.NO_DATA, Status.NO_DATA),
        (Status.ERROR, Status.ERROR),
        (Status.LATE, Status.LATE),
    ],
)
def test_a_result_without_a_value_is_never_ok_for_an_objective(status: Status, judged: Status) -> None:
    (found,) = judge([measured(None, status=status)], [objective(max=1.0)])
    assert (found.status, found.threshold) == (judged, 1.0)


@pytest.mark.parametrize(
    ("value", "status", "shown"),
    [
        (0.25, Status.VIOLATED, "max"),
        (0.18, Status.OK, "max"),  # below the most, and not yet back at 0.15
        (0.15, Status.OK, "min"),  # nothing is wrong: the first
        (0.08, Status.OK, "min"),  # not yet back at 0.1
        (0.04, Status.VIOLATED, "min"),
    ],
)
def test_the_objective_whose_violation_has_not_ended_is_shown(
    value: float, status: Status, shown: str
) -> None:
    band = [objective(min=0.05, clear=0.1), objective(max=0.2, clear=0.15)]
    (judged,) = judge([measured(value)], band)
    assert (judged.status, judged.bound, judged.clear) == (status, shown, {"min": 0.1, "max": 0.15}[shown])


def test_a_value_beyond_a_bound_is_shown_before_one_beyond_clear() -> None:
    (judged,) = judge(
        [measured(0.18, lower=0.1, upper=0.3)], [objective(min=0.15, clear=0.2), objective(max=0.17)]
    )
    assert (judged.status, judged.bound, judged.clear) == (Status.OK, "max", None)


def test_an_objective_has_exactly_one_bound() -> None:
    for bounds in ({}, {"min": 0.1, "max": 0.2}, {"min": float("nan")}):
        with pytest.raises(ValueError, match=r"exactly one|finite"):
            objective(**bounds)


@pytest.mark.parametrize(
    ("result", "status"),
    [
        (rule(Status.VIOLATED, violations=1, detail="1 of 9"), Status.VIOLATED),  # it has happened
        (rule(Status.VIOLATED, "numeric", violations=1), Status.VIOLATED),
        (rule(Status.VIOLATED, "soft", 0.1, violations=9), Status.LATE),  # a share of what is not all there
        (rule(Status.VIOLATED, "numeric", 0.1, violations=9), Status.LATE),
        (rule(Status.OK), Status.LATE),
        (rule(Status.NO_DATA), Status.LATE),
        (rule(Status.ERROR, detail="no column price"), Status.ERROR),
        (measured(0.2, status=Status.VIOLATED, threshold=0.5, bound="min"), Status.LATE),
        (measured(0.9), Status.LATE),
        (measured(None, status=Status.UNDEFINED), Status.LATE),
    ],
)
def test_in_an_incomplete_window_only_violations_proven_by_one_row_stay(
    result: Result, status: Status
) -> None:
    (late,) = mark_late([result], "the log has reached 10:20")
    assert late.status is status
    assert (late.value, late.violations) == (result.value, result.violations)
    if status is not Status.ERROR:
        assert "the log has reached 10:20" in late.detail
    assert result.detail in late.detail or status is Status.LATE


def test_log_loss_is_not_judged_as_a_result_of_the_log() -> None:
    loss = measured(None, metric="log_loss", labels={}, status=Status.NO_DATA)
    assert window_status([loss]) is Status.OK
    of_log = replace(loss, kind=ResultKind.LOG, metric="log_rows", labels={"log": "exposures"})
    assert window_status([of_log]) is Status.NO_DATA
    assert not any(spec.kind is ResultKind.LOG for spec in SPECS.values())


def test_a_window_has_the_worst_status_of_its_judged_results() -> None:
    nobodys = [measured(None, status=Status.UNDEFINED), measured(None, status=Status.NO_DATA), measured(0.1)]
    assert window_status([]) is Status.OK
    assert window_status(nobodys) is Status.OK
    assert window_status([*nobodys, rule(Status.NO_DATA)]) is Status.NO_DATA
    assert window_status([rule(Status.LATE), rule(Status.NO_DATA)]) is Status.LATE
    assert window_status([rule(Status.LATE), measured(None, status=Status.ERROR)]) is Status.ERROR
    assert window_status([rule(Status.ERROR), rule(Status.VIOLATED), rule(Status.OK)]) is Status.VIOLATED
    by_slice = {"by": "pv", "dimension": "scene", "value": "home"}
    assert window_status([measured(None, status=Status.ERROR, labels=by_slice)]) is Status.OK
    asked = measured(0.1, labels=by_slice, status=Status.VIOLATED, threshold=0.5, bound="min")
    assert window_status([rule(Status.OK), asked]) is Status.VIOLATED
