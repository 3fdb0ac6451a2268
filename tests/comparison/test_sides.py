"""What a side of a comparison may be, and which rows it has."""

from __future__ import annotations

import pytest

from monitor.comparison.sides import Side, SideError, correlations
from monitor.core.results import Result, Status
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import USER_GROUP, RecommenderSettings


def settings(**more: object) -> RecommenderSettings:
    logs = {"exposures": {"path": "log/*.parquet", "only": {"scene": "home"}}, "feedback": {"path": "x"}}
    return RecommenderSettings.model_validate({"name": "shop", "logs": logs} | more)


@pytest.mark.parametrize(
    ("text", "name", "rows", "span"),
    [
        ("shop", "shop", ("", ""), ("", "")),
        ("shop:model=m7", "shop", ("model", "m7"), ("", "")),
        ("shop:model=a=b", "shop", ("model", "a=b"), ("", "")),
        ("shop:users.plan=pro", "shop", ("users.plan", "pro"), ("", "")),
        ("shop@2026-01-01/2026-01-08", "shop", ("", ""), ("2026-01-01", "2026-01-08")),
        (
            "shop:model=m7@2026-01-01T10:00:00Z/2026-01-08",
            "shop",
            ("model", "m7"),
            ("2026-01-01T10:00:00Z", "2026-01-08"),
        ),
    ],
)
def test_a_side_is_a_name_with_rows_and_a_span(text, name, rows, span) -> None:
    side = Side.parse(text)
    assert (side.text, side.recommender) == (text, name)
    assert ((side.column, side.value), (side.start, side.end)) == (rows, span)


@pytest.mark.parametrize(
    "text",
    ["", ":model=m7", "shop:", "shop:model", "shop:model=", "shop:=m7", "shop@", "shop@2026-01-01",
     "shop@/2026-01-01", "shop@2026-01-01/", "@2026-01-01/2026-01-02"],
)  # fmt: skip
def test_what_is_no_side_is_an_error_that_says_how_to_write_one(text) -> None:
    with pytest.raises(SideError, match="write it as NAME"):
        Side.parse(text)


def judged_by(side: str, **more: object) -> tuple[RecommenderSettings, RecommenderSettings | None]:
    found = Side.parse(side)
    return found.for_metrics(settings(**more)), found.for_rules(settings(**more))


def test_the_whole_is_measured_without_slices_experiments_and_health() -> None:
    given = {
        "slices": {"by": ["scene"]},
        "experiments": [{"name": "lists", "split": {"a": 1, "b": 1}}],
        "health": {"parts": [{"metric": "failure", "labels": {"by": "pv"}, "zero": 0.1, "one": 0.0}]},
        "objectives": [{"metric": "failure", "labels": {"by": "pv"}, "max": 0.1}],
    }
    measured, ruled = judged_by("shop", **given)
    assert ruled is not None
    assert (measured.slices.by, ruled.slices.by) == ((USER_GROUP,), ())
    for one in (measured, ruled):
        assert (one.experiments, one.health, one.objectives) == ((), None, ())
    assert measured.logs == settings().logs
    assert set(ruled.metrics.disable) == set(SPECS)


def test_metrics_of_a_part_are_slices_and_its_rules_see_only_its_rows() -> None:
    measured, ruled = judged_by("shop:model=m7", rules=[{"pack": "lists"}])
    assert measured.slices.by == ("model",)
    assert (measured.rules, len(ruled.rules)) == ((), 1)
    assert measured.logs.exposures.only == {"scene": "home"}  # an action finds its list among all lists
    assert ruled.logs.exposures.only == {"scene": "home", "model": "m7"}
    assert ruled.slices.by == ()


def test_rules_have_no_rows_by_a_column_of_another_log() -> None:
    for side in ("shop:users.plan=pro", "shop:hour=10"):
        assert judged_by(side)[1] is None


def test_it_may_not_choose_other_rows_than_the_config() -> None:
    assert judged_by("shop:scene=home")[1] is not None
    with pytest.raises(SideError, match=r"already chooses rows by 'scene'"):
        judged_by("shop:scene=cart")


def test_its_own_results_are_those_of_its_value() -> None:
    def result(**labels: str) -> Result:
        return Result(metric="gini", status=Status.OK, definition="1", labels=labels)

    of_m7 = result(by="pv", dimension="model", value="m7")
    every = [result(by="pv"), of_m7, result(by="pv", dimension="model", value="m6")]
    assert [one.labels for one in Side.parse("shop:model=m7").own(every)] == [{"by": "pv"}]
    assert Side.parse("shop").own(every) == every


def test_the_groups_of_users_say_how_both_sides_vary_together() -> None:
    def results(values: dict[int | str, float | None], metric: str = "ndcg") -> list[Result]:
        return [
            Result(
                metric=metric, status=Status.OK, definition="1", value=value,
                labels={"k": "5", "dimension": USER_GROUP, "value": str(group)},
            )
            for group, value in values.items()
        ]  # fmt: skip

    values: dict[int | str, float | None] = {group: (group * 37 % 101) / 101 for group in range(100)}
    every = [*results(values), *results({**values, "(none)": 9e9, 3: None}, "mrr")]
    others = [*results({**values, "(none)": -9e9}, "mrr"), *results({1: 0.5}, "ndcg")]
    assert correlations(every, every).keys() == {("ndcg", (("k", "5"),)), ("mrr", (("k", "5"),))}
    assert correlations(every, others) == {("mrr", (("k", "5"),)): 1.0}  # requests of nobody are no group
    whole = Result(metric="ndcg", status=Status.OK, definition="1", labels={"k": "5"}, value=0.5)
    assert Side.parse("shop").own([*every, whole]) == [whole]
    asked = Side.parse("shop").for_metrics(settings(), metrics=("ndcg", "blacklist")).slices
    assert (asked.by, asked.metrics) == ((USER_GROUP,), ("ndcg",))
    with_slices = settings(slices={"by": ["scene"], "budget": 3})
    own = Side.parse("shop").for_metrics(with_slices, slices=True).slices
    assert (own.by, own.budget) == (("scene", USER_GROUP), 3)
