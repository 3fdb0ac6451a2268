"""Statements that are kept from window to window give what a window without a past gives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import duckdb
import ibis
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from monitor.engines.duckdb import Engine
from monitor.metrics.catalogue import SPECS
from monitor.metrics.measure import measure_all
from monitor.settings.metrics import MetricSettings
from tests.metrics.test_against_oracle import ONE_CATEGORY, VECTORS
from tests.metrics.worlds import START, Windows, World, by_name, catalog, lists, results_of

HOUR = timedelta(hours=1)
SETTINGS = MetricSettings(score_range=(0, 1))
FEW = MetricSettings(
    disable=[
        name for name in SPECS if name not in ("volume", "gini", "novelty", "action_rate", "serendipity")
    ]
)
SLICES = {"scene": "scene"}


class Measured(Windows):
    """Windows whose results come by name."""

    def by_name(self, world: World, dimensions=SLICES, given_settings=SETTINGS):
        return by_name(self.measure(world, given_settings, dimensions))


@pytest.fixture
def windows():
    return Measured()


def click(user, item, request=None, at=timedelta(minutes=5)):
    return {"user_id": user, "item_id": item, "event": "click", "request_id": request, "ts": START + at}


FIRST = World(
    lists(("u1", "abc"), ("u2", "a"), scene="home", score=0.5),
    catalog(a="x", b="y"),
    feedback=[click("u1", "b", "r0"), click("u2", "a")],
    history=[("u1", "a", 1)],
    history_actions=[("u1", "b")],
    columns=("score", "scene"),
)
SECOND = replace(
    FIRST,
    exposures=lists(("u3", "ab"), ("u1", "cd"), ("u2", ""), scene="feed", score=0.25),
    feedback=[click("u3", "a", "r0"), click("u1", "d"), click("u1", "d")],
)


def fresh(world, dimensions=SLICES, given_settings=SETTINGS):
    return by_name(results_of(world, given_settings, dimensions, kept=False))


def test_later_windows_reuse_the_statements_of_the_first(windows, monkeypatch):
    assert windows.by_name(FIRST) == fresh(FIRST)
    wanted = fresh(SECOND)
    compiled = []
    monkeypatch.setattr(windows.engine, "select", compiled.append)
    assert windows.by_name(SECOND) == wanted
    assert compiled == []
    assert len(windows.made) == len(set(windows.made))
    assert {"requests", "attributed", "acted_by_scene"} <= set(windows.made)


def test_a_log_with_other_columns_gets_new_statements_and_so_does_the_next(windows):
    more = replace(SECOND, columns=("score", "scene", "propensity"))
    for world in (FIRST, more, SECOND, replace(SECOND, catalog=None), FIRST):
        assert windows.by_name(world, given_settings=FEW) == fresh(world, given_settings=FEW)


def test_actions_are_assigned_by_the_edges_of_the_current_window(windows):
    around = [*lists(("u", "a")), *({**row, "request_id": "later"} for row in lists(("u", "a")))]
    for row in around[1:]:
        row["ts"] = START + HOUR
    actions = [click("u", "a", "r0"), click("u", "a", "later", HOUR), click("u", "a", "later", HOUR)]
    found = []
    for start, shown in ((START, around[:1]), (START + HOUR, around[1:])):
        world = World(
            shown,
            feedback=actions,
            responses=actions,
            around=around,
            window=(start, start + HOUR),
            columns=(),
        )
        rates = windows.by_name(world, {})
        assert rates == fresh(world, {})
        found.append(rates["action_rate", "exposure", "click"].value)
    assert found == [1.0, 2.0]


def test_an_expression_never_holds_a_value_of_an_older_window(windows):
    def world(*vectors):
        items = [{"item_id": item, "vector": vector} for item, vector in zip("abc", vectors, strict=True)]
        return World(lists(("u1", "abc")), items, columns=(), catalog_columns=("vector",))

    longer = world([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    for one in (world([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]), longer):
        found = windows.by_name(one, {})
        assert found == fresh(one, {})
    assert found["intra_list_diversity", ""].value == 1.0


def test_slices_that_are_built_differently_get_new_statements(windows):
    def users(world, scene):
        shared = windows.next(world)
        shared.add_key("is", lambda rows: rows.mutate({"is": (rows.scene == scene).cast("string")}))
        found = [one for family in measure_all(shared, FEW, {"is": "is"}) for one in family.results]
        results = by_name(found)
        return {value: results["volume", "users", "is", value].value for value in ("true", "false")}

    both = replace(FIRST, exposures=[*FIRST.exposures, *lists(("v", "a"), scene="feed")])
    assert users(both, "home") == {"true": 2.0, "false": 1.0}
    assert users(both, "feed") == {"true": 1.0, "false": 2.0}
    assert users(both, "home") == {"true": 2.0, "false": 1.0}


def test_a_failed_build_leaves_no_statement_behind(windows):
    shared = windows.next(FIRST)
    with pytest.raises(ZeroDivisionError):
        shared.answer("one", None, lambda: FIRST.exposures[1 // 0])
    assert shared.answer("one", None, lambda: shared.item_counts().aggregate(n=shared.item_counts().count()))
    again = windows.next(SECOND)
    assert again.answer("one", None, lambda: pytest.fail("it is known")) == [{"n": 4}]


def test_a_table_with_other_columns_drops_the_statements_that_depend_on_it(windows):
    def ask(shared, expression, answer):
        return shared.answer(
            "sum", None, lambda: answer(shared.once("base", None, lambda: expression(shared)))
        )

    def wide(shared):
        shared._asked.varies()
        return shared.exposures.select("item_id", n=ibis.literal(1.5))

    def narrow(shared):
        shared._asked.varies()
        return shared.exposures.select("item_id", n=ibis.literal(2))

    first = windows.next(FIRST)
    first.once("base", None, lambda: wide(first))
    assert ask(first, wide, lambda table: table.aggregate(total=table.n.sum())) == [{"total": 6.0}]
    second = windows.next(FIRST)
    second.once("base", None, lambda: narrow(second))
    (row,) = ask(second, narrow, lambda table: table.aggregate(total=table.n.sum()))
    assert (row["total"], type(row["total"])) == (8, int)


def test_names_and_columns_of_a_log_are_quoted():
    engine = Engine(duckdb.connect())
    hostile = 'x"; DROP TABLE seen; --'
    seen = engine.backend.create_table("seen", pa.table({hostile: ["a", None]}))
    table = engine.fill(hostile, engine.filling(hostile, seen))
    assert table.schema() == seen.schema()
    assert engine.rows(engine.select(table), table.schema()) == [{hostile: "a"}, {hostile: None}]
    assert engine.fill(hostile, engine.filling(hostile, seen.limit(0)), table.schema()).count().execute() == 0
    engine.drop(hostile)
    assert engine.backend.list_tables() == ["seen"]


@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
@given(st.lists(ONE_CATEGORY | VECTORS, min_size=2, max_size=3))
def test_windows_in_sequence_give_the_same_results_as_each_window_alone(worlds):
    windows = Measured()
    for world in [*worlds, worlds[0]]:
        assert windows.by_name(world) == fresh(world)
