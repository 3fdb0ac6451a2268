"""The registry of checks: all are in it, and one more needs nothing but its line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import pytest

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, Status
from monitor.judging import registry
from monitor.logs.windows import PARTS
from monitor.window.check import HISTORY, Check, Recommender, WindowJob
from tests.shop import Shop, hour, one, rows


class RequestsCheck(Check[WindowJob]):
    """A check as a newcomer would write it."""

    name = "requests"
    part = EXPOSURES

    def __init__(self, column: str) -> None:
        self._column = column

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        return [cls("request_id" if recommender.settings.name == "shop" else "gone")]

    def run(self, job: WindowJob) -> list[Result]:
        count = job.tables().shared.exposures[self._column].nunique().to_pyarrow().as_py()
        return [Result(metric="requests", status=Status.OK, definition="1", value=float(count))]

    def failed(self, why: str) -> list[Result]:
        return [Result(metric="requests", status=Status.ERROR, definition="1", detail=why)]


def every(kind: type[Check[Any]]) -> set[type[Check[Any]]]:
    """The checks of monitor/ at any depth below this class, without the classes that others inherit from."""
    below = {one for one in kind.__subclasses__() if one.__module__.startswith("monitor.")}
    return {each for one in below for each in every(one) or {one}}


def test_every_check_is_in_the_registry() -> None:
    assert every(Check) == set(registry.CHECKS)


def test_each_part_of_a_window_has_a_check_that_marks_it_as_judged() -> None:
    assert {one.part for one in registry.CHECKS} == {*PARTS, HISTORY}
    assert all(registry.MARKERS[part] in registry.CHECKS_OF[part] for part in PARTS)


@pytest.mark.parametrize("name", ["shop", "other"])
def test_a_check_needs_its_file_and_its_line_alone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(registry, "CHECKS", (*registry.CHECKS, RequestsCheck))
    shop.config["name"] = name
    shop.write("logs/0.parquet", rows(0))
    found = shop.judge(hour(0))
    checks = [run.check for run in found.runs]
    assert checks[-1] == "requests"
    assert {"logs", "rules", "exposure"} <= set(checks)
    result = one(found, "requests")
    if name == "shop":
        assert (result.status, result.value) == (Status.OK, 10.0)
    else:
        assert result.status is Status.ERROR
        assert "gone" in result.detail
        assert found.runs[-1].outcome == "error"
    assert one(found, "coverage", by="pv").status is Status.OK
