"""What a side of a comparison may be, and which rows it has."""

from __future__ import annotations

import ibis
import numpy as np
import pandas as pd
import pytest

from monitor.comparison.compare import Verdict, compare
from monitor.comparison.sides import Side, SideError, of_users, requests_of_part
from monitor.core.results import Result, Status
from monitor.metrics.catalogue import SPECS
from monitor.settings.recommender import USER_GROUP, RecommenderSettings, user_group_within
from monitor.statistics.intervals import wilson


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


def test_the_whole_is_judged_without_slices_experiments_and_health() -> None:
    given = {
        "slices": {"by": ["scene"], "budget": 3},
        "experiments": [{"name": "lists", "split": {"a": 1, "b": 1}}],
        "health": {"parts": [{"metric": "failure", "labels": {"by": "pv"}, "zero": 0.1, "one": 0.0}]},
        "objectives": [{"metric": "failure", "labels": {"by": "pv"}, "max": 0.1}],
        "rules": [{"pack": "lists"}],
    }
    whole = Side.parse("shop")
    judged = whole.for_whole(settings(**given))
    assert (judged.slices.by, judged.slices.metrics, len(judged.rules)) == ((USER_GROUP,), (), 1)
    assert (judged.experiments, judged.health, judged.objectives) == ((), None, ())
    assert judged.logs == settings().logs
    assert not whole.is_part
    asked = whole.for_whole(settings(**given), metrics=("ndcg", "blacklist")).slices
    assert (asked.by, asked.metrics) == ((USER_GROUP,), ("ndcg",))
    sliced = whole.for_whole(settings(**given), slices=True).slices
    assert (sliced.by, sliced.budget) == (("scene", USER_GROUP), 3)


def test_metrics_of_a_part_are_slices_and_its_rules_see_only_its_rows() -> None:
    side, of_shop = Side.parse("shop:model=m7"), settings(rules=[{"pack": "lists"}])
    measured, ruled = side.for_metrics(of_shop), side.for_rules(of_shop)
    assert side.is_part
    assert measured.slices.by == ("model", user_group_within("model", "m7"))
    assert ruled is not None
    assert (measured.rules, len(ruled.rules)) == ((), 1)
    assert set(ruled.metrics.disable) == set(SPECS)
    assert measured.logs.exposures.only == {"scene": "home"}  # an action finds its list among all lists
    assert ruled.logs.exposures.only == {"scene": "home", "model": "m7"}
    assert ruled.slices.by == ()


def test_a_run_is_a_log_of_its_own() -> None:
    run = Side.parse("shop:run=r1").as_run(["exposures", "feedback"])
    assert not run.is_part
    judged = run.for_whole(settings(rules=[{"pack": "lists"}]))
    assert judged.logs.exposures.only == {"scene": "home", "run": "r1"}
    assert judged.logs.feedback.only == {"run": "r1"}
    assert judged.slices.by == (USER_GROUP,)
    shown = run.as_run(["exposures"]).for_whole(settings())
    assert shown.logs.feedback.only == {}  # the actions of the logged lists count for each run
    with pytest.raises(SideError, match=r"logs.exposures.only of 'shop' already chooses rows by 'scene'"):
        Side.parse("shop:scene=cart").as_run(["exposures"]).for_whole(settings())


ROWS = {
    "request_id": ["r1", "r1", "r2", "r2", "r1", "r1", "r3", None, "r4"],
    "position": [0, 1, 0, 1, 0, 1, 0, 0, 0],
    "run": ["a", "a", "a", "a", "b", "b", "b", "a", None],
}


def test_requests_that_other_rows_answer_too_are_counted() -> None:
    rows = ibis.memtable(pd.DataFrame(ROWS))
    assert requests_of_part(rows, "run", "a") == (4, 2)
    assert requests_of_part(rows.drop("position"), "run", "a") == (2, 1)
    assert requests_of_part(rows, "run", "c") == (0, 0)
    blended = ibis.memtable(
        pd.DataFrame({"request_id": ["r1"] * 4, "position": [0, 1, 2, 3], "run": [*"abab"]})
    )
    assert requests_of_part(blended, "run", "a") == (2, 0)
    assert requests_of_part(rows.limit(0), "run", "a") == (0, 0)


def test_rules_have_no_rows_by_a_column_of_another_log() -> None:
    for side in ("shop:users.plan=pro", "shop:hour=10"):
        assert Side.parse(side).for_rules(settings()) is None


def test_it_may_not_choose_other_rows_than_the_config() -> None:
    assert Side.parse("shop:scene=home").for_rules(settings()) is not None
    with pytest.raises(SideError, match=r"already chooses rows by 'scene'"):
        Side.parse("shop:scene=cart").for_rules(settings())


def test_its_own_results_are_those_of_its_value() -> None:
    def result(**labels: str) -> Result:
        return Result(metric="gini", status=Status.OK, definition="1", labels=labels)

    of_m7 = result(by="pv", dimension="model", value="m7")
    every = [result(by="pv"), of_m7, result(by="pv", dimension="model", value="m6")]
    assert [one.labels for one in Side.parse("shop:model=m7").own(every)] == [{"by": "pv"}]
    assert Side.parse("shop").own(every) == every


def groups_of(
    values: dict[int | str, float | None], metric: str = "ndcg", dimension: str = USER_GROUP
) -> list[Result]:
    return [
        Result(
            metric=metric, status=Status.OK, definition="1", value=value, samples=100,
            labels={"k": "5", "dimension": dimension, "value": str(group)},
        )
        for group, value in values.items()
    ]  # fmt: skip


def whole(metric: str, half: float = 0.1) -> Result:
    return Result(
        metric=metric, status=Status.OK, definition="1", labels={"k": "5"}, value=0.5, lower=0.5 - half,
        upper=0.5 + half, samples=10_000,
    )  # fmt: skip


VALUES: dict[int | str, float | None] = {group: (group * 37 % 101) / 101 for group in range(100)}


def test_the_groups_of_users_say_how_both_sides_vary_together() -> None:
    wholes = [whole("ndcg"), whole("mrr")]
    every = [*wholes, *groups_of(VALUES), *groups_of({**VALUES, "(none)": 9e9, 3: None}, "mrr")]
    within = user_group_within("model", "m7")
    others = [*wholes, *groups_of({**VALUES, "(none)": -9e9}, "mrr", within), *groups_of({1: 0.5}, "ndcg")]
    ndcg, mrr = (("ndcg", (("k", "5"),)), ("mrr", (("k", "5"),)))
    assert {key: one.correlation for key, one in of_users(every, every).items()} == {ndcg: 1.0, mrr: 1.0}
    # Requests of nobody are no group, and one group says nothing.
    assert {key: one.correlation for key, one in of_users(every, others).items()} == {ndcg: 0.0, mrr: 1.0}
    assert Side.parse("shop").own([*every, *others]) == [*wholes, *wholes]
    assert of_users(every, wholes) == {}


def test_the_interval_is_as_wide_as_that_between_users_if_that_is_wider() -> None:
    error = 1.959964 * (1 / 12 / 100) ** 0.5  # of the mean of 100 groups, spread evenly over 0 to 1
    for half, expected in ((error / 3, 3.0), (error, 1.0), (error * 2, 1.0), (0.0, 1.0)):
        (found,) = of_users(*[[whole("ndcg", half), *groups_of(VALUES)]] * 2).values()
        assert found.wider == pytest.approx(expected, rel=0.03)
        assert found.wider_other == found.wider
    few = groups_of({group: VALUES[group] for group in range(19)})
    (found,) = of_users([whole("ndcg", 0.001), *few], [whole("ndcg", 0.001), *few]).values()
    assert found.wider == 1.0


def _equal_side(rng: np.random.Generator, users: int = 1000) -> list[Result]:
    """A share over the rows of users who differ, with the interval of independent rows and the groups."""
    shown = rng.integers(1, 60, users)
    clicks = rng.binomial(shown, rng.beta(0.5, 4.5, users))
    group = rng.integers(0, 100, users)
    rows, hits = (np.bincount(group, of, 100) for of in (shown, clicks))
    interval = wilson(int(hits.sum()), int(rows.sum()))
    assert interval is not None

    def result(value: float, samples: int, **more: object) -> Result:
        return Result(
            metric="auc", status=Status.OK, definition="1", value=value, samples=samples, **more
        )  # fmt: skip

    whole = result(hits.sum() / rows.sum(), int(rows.sum()), lower=interval.lower, upper=interval.upper)
    return [
        whole,
        *(
            result(hit / row, int(row), labels={"dimension": USER_GROUP, "value": str(number)})
            for number, (hit, row) in enumerate(zip(hits, rows, strict=True))
            if row
        ),
    ]


def test_equal_sides_with_alike_rows_seldom_differ() -> None:
    """300 comparisons of equal sides: over rows a third are verdicts, between users one of twenty."""
    rng = np.random.default_rng(9)
    false = {"rows": 0, "users": 0}
    for _ in range(300):
        one, other = _equal_side(rng), _equal_side(rng)
        for name, users in (("rows", {}), ("users", of_users(one, other))):
            (found,) = compare(one[:1], other[:1], margin=0.0, users=users)
            false[name] += found.verdict in (Verdict.BETTER, Verdict.WORSE)
    assert false["rows"] > 90
    assert false["users"] <= 25
