"""Running all families: errors, interrupts, slices, switches, and what is shared between them."""

from __future__ import annotations

import re
from datetime import timedelta

import duckdb
import ibis
import pytest
from pydantic import ValidationError

from monitor.core.results import Status
from monitor.metrics import measure
from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.metrics.measure import measure_all, not_measured, resolved
from monitor.metrics.plans import Executor
from monitor.settings.metrics import EventSettings, MetricSettings
from tests.metrics.oracle import expected
from tests.metrics.worlds import START, World, by_name, catalog, lists, results_of, shared_of

LOGGED = ("score", "propensity", "scene", "shelf", "status", "latency", "ever_shown")
SHOWN = lists(
    ("u1", "abc"), ("u1", "abd"), ("u2", "a"), score=0.5, propensity=0.5, scene="home", shelf="a",
    status="ok", latency=0.1, ever_shown=True,
)  # fmt: skip
FULL = World(
    SHOWN,
    [{**row, "length": 2.0} for row in catalog(a="x", b="y", c="x", d="y")],
    feedback=[
        {
            "user_id": "u1",
            "item_id": item,
            "event": "click",
            "ts": START + timedelta(minutes=minute),
            "value": 1.0,
        }
        for minute, item in ((5, "a"), (6, "b"))
    ],
    history=[("u1", "a", 1)],
    history_actions=[("u1", "b")],
    yesterday=[("u1", "a")],
    today=[("u1", "b")],
    columns=LOGGED,
    catalog_columns=("category", "length"),
    feedback_columns=("request_id", "value"),
)


class Broken:
    """A table whose query fails when it runs, and not before."""

    def __init__(self, error):
        self.error = error

    def to_pyarrow(self):
        raise self.error


def test_a_full_set_of_logs_gives_every_metric_of_the_catalogue():
    events = {"click": EventSettings(length="length")}
    rating = {"event": "click", "distortion": {1: {1: 0.0}}}
    settings = MetricSettings(
        score_range=(0, 1), novelty=("category",), seed_item="shelf", events=events, rating=rating
    )
    found = by_name(results_of(FULL, settings))
    declared = {(spec.name, by) for spec in SPECS.values() for by in (spec.by or ("",))}
    assert {key[:2] for key in found} == declared - {("novelty", "tag")}
    few = {key for key in found if key[0] == "latency"}  # three requests have no quantile
    assert {found[key].status for key in few} == {Status.UNDEFINED}
    assert {result.status for key, result in found.items() if key not in few} == {Status.OK}
    assert not_measured(shared_of(FULL), settings) == {}


def test_results_have_only_declared_metrics_labels_and_intervals():
    for result in results_of(FULL):
        spec = SPECS[result.metric]
        assert result.labels.get("by", "") in (spec.by or ("",))
        assert result.labels.keys() - {"by"} == set(spec.labels)
        if result.lower is not None:
            assert spec.interval
        if spec.unit == "ratio" and result.metric != "update_rate":
            assert 0 <= result.value <= 1


def test_every_metric_of_the_catalogue_has_exactly_one_family():
    given = {
        (spec.name, by) for family in FAMILIES for spec, values in family.outputs for by in values or ("",)
    }
    assert {name for name, _ in given} == SPECS.keys()
    assert all(SPECS[spec.name] is spec for family in FAMILIES for spec, _ in family.outputs)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_exposures_alone_give_their_own_metrics_and_a_reason_for_each_other_family():
    world = World(SHOWN, columns=())
    found = {result.metric for result in results_of(world)}
    # A need in brackets is that of some of a metric's values; the history is there, and empty.
    assert found == {
        spec.name
        for spec in SPECS.values()
        if all(need in ("exposures", "history") or need.endswith(")") for need in spec.requires)
    }
    reasons = not_measured(shared_of(world), MetricSettings(disable=("update_rate",)))
    assert reasons["gini"] == "needs the log catalog"
    assert reasons["score_health"] == "needs the column score of the log exposures"
    assert reasons["update_rate"] == "switched off"


def test_without_categories_the_families_that_need_them_are_not_measured():
    world = World(SHOWN, [{"item_id": "a"}], FULL.feedback, columns=(), catalog_columns=())
    reasons = not_measured(shared_of(world), MetricSettings())
    for name in ("category_entropy", "intra_list_diversity", "serendipity"):
        assert reasons[name] == "needs the column category of the log catalog"
    assert "gini" not in reasons


def test_an_error_of_one_family_is_the_error_of_its_metrics_alone(monkeypatch):
    family = next(f for f in FAMILIES if f.name == "gini")
    monkeypatch.setattr(
        type(family), "measure", lambda *_: Broken(duckdb.OutOfMemoryException("no room\nLINE 1"))
    )
    found = by_name(results_of(FULL, kept=False))
    assert found["gini", ""].status is Status.ERROR
    assert found["gini", ""].detail == "OutOfMemoryException: no room"
    assert found["gini", ""].value is None
    assert [key for key, r in found.items() if r.status is Status.ERROR] == [("gini", "")]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"score_range": (0, 1), "rating": {"event": "click"}, "k": (3,)},
        {"seed_item": "shelf", "events": {"click": EventSettings(length="length"), "buy": EventSettings()}},
    ],
    ids=["default", "range and rating", "lengths and seeds"],
)
def test_an_error_has_the_series_of_a_good_window_and_no_other(settings):
    given, shared = MetricSettings(**settings), shared_of(FULL)
    families = {family.name: family for family in FAMILIES}
    for measured in measure_all(shared, given):
        failed = families[measured.family].without_rows(resolved(given, shared), Status.ERROR, "broken")
        assert by_name(failed).keys() == by_name(measured.results).keys(), measured.family


def test_an_error_in_a_slice_leaves_the_overall_value_alone(monkeypatch):
    family = next(f for f in FAMILIES if f.name == "personalization")
    whole = type(family).measure

    def fails_by_slice(self, shared, settings, key=None):
        return whole(self, shared, settings) if key is None else Broken(RuntimeError("no"))

    monkeypatch.setattr(type(family), "measure", fails_by_slice)
    found = by_name(results_of(FULL, dimensions={"scene": "scene"}, kept=False))
    assert found["personalization", ""].status is Status.OK
    assert found["personalization", "", "scene", ""].status is Status.ERROR


def test_an_interrupt_is_not_an_error_of_the_family(monkeypatch):
    family = next(f for f in FAMILIES if f.name == "gini")
    monkeypatch.setattr(type(family), "measure", lambda *_: Broken(duckdb.InterruptException("interrupted")))
    with pytest.raises(duckdb.InterruptException):
        results_of(FULL, kept=False)


def test_an_interrupt_within_a_slice_is_raised_too(monkeypatch):
    family = next(f for f in FAMILIES if f.name == "gini")
    whole = type(family).measure

    def stopped_by_slice(self, shared, settings, key=None):
        return (
            whole(self, shared, settings) if key is None else Broken(duckdb.InterruptException("interrupted"))
        )

    monkeypatch.setattr(type(family), "measure", stopped_by_slice)
    with pytest.raises(duckdb.InterruptException):
        results_of(FULL, dimensions={"scene": "scene"}, kept=False)


def test_a_family_is_measured_only_when_the_iterator_reaches_it():
    seen = []
    shared = shared_of(FULL)
    whole = shared.once
    shared.once = lambda name, *rest, **options: seen.append(name) or whole(name, *rest, **options)  # type: ignore[method-assign]
    families = measure_all(shared, MetricSettings())
    assert seen == []
    first = next(families)
    assert first.family == "volume"
    assert first.seconds > 0
    assert set(seen) == {"requests", "list_users", "item_counts"}


def test_shared_tables_are_made_once_a_window():
    made = []

    def keep(name, expression):
        made.append(name)
        return ibis.memtable(expression.to_pyarrow())

    shared = shared_of(FULL)
    shared._asked = Executor(keep)
    list(measure_all(shared, MetricSettings(), {"scene": "scene"}))
    assert len(made) == len(set(made))
    assert {"requests", "user_items", "item_counts", "requests_by_scene", "item_counts_by_scene"} <= set(made)


def test_switched_off_metrics_give_no_results():
    found = {r.metric for r in results_of(FULL, MetricSettings(disable=("coverage", "gini", "score_health")))}
    assert not found & {"coverage", "gini", "score_health"}
    assert {"failure", "coverage_unknown_items"} <= found


def test_slices_have_their_name_and_value_and_null_is_unknown():
    rows = [{**r, "scene": None if r["user_id"] == "u2" else "<b>'"} for r in SHOWN]
    results = results_of(World(rows), dimensions={"place": "scene"}, only=("coverage",))
    found = by_name(results)
    assert found["coverage", "pv", "place", "<b>'"].samples == 2
    assert found["coverage", "pv", "place", "unknown"].samples == 1
    assert found["coverage", "pv"].samples == 3


def test_a_slice_of_numbers_has_its_values_as_text():
    found = by_name(results_of(World(SHOWN), dimensions={"rank": "score"}, only=("coverage",)))
    assert found["coverage", "pv", "rank", "0.5"].samples == 3


def test_an_empty_window_is_never_ok_and_only_its_counts_have_a_value_of_0():
    from dataclasses import replace

    world = replace(FULL, exposures=[], feedback=[], yesterday=[], today=[])
    results = results_of(world, MetricSettings(score_range=(0, 1)), {"scene": "scene"})
    results = [r for r in results if r.metric != "catalog_items"]  # of the catalog, which is not empty
    assert {r.status for r in results} == {Status.NO_DATA}
    assert all(r.detail for r in results)
    values = {r.metric: r.value for r in results}
    counts = ("volume", "action_volume")
    assert values == {name: 0.0 if name in counts else None for name in values}
    assert set(counts) < values.keys()
    assert not [r for r in results if "dimension" in r.labels]


def test_requests_without_any_item_have_failed():
    world = World(lists(("u1", ""), ("u2", ""), score=None), FULL.catalog, columns=("score",))
    found = by_name(results_of(world))
    assert found["failure", "pv"].value == 1.0
    assert found["gini_exposed", ""].status is found["novelty", "item"].status is Status.NO_DATA
    wanted = expected(world, MetricSettings())
    statuses = {key: one if isinstance(one, str) else one[0] for key, one in wanted.items()}
    assert {key: result.status.value for key, result in found.items()} == statuses


def test_the_same_window_gives_the_same_numbers_twice():
    first, second = (results_of(FULL, dimensions={"scene": "scene"}) for _ in range(2))
    assert first == second


def test_the_definition_is_the_version_and_every_changed_setting():
    assert by_name(results_of(FULL))["novelty", "item"].definition == "1"
    long = MetricSettings(history="14d")
    assert by_name(results_of(FULL, long))["novelty", "item"].definition == "1;history=1209600s"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"score_range": [1, 0]}, "the lower one first"),
        ({"score_range": [0, "inf"]}, "finite"),
        ({"history": "0d"}, "longer than 0"),
        ({"valid_list_length": 0}, "greater than or equal to 1"),
        ({"min_propensity": 0}, "greater than 0"),
        ({"similarity": "colour"}, "category"),
        ({"valid_lenght": 1}, "Extra inputs"),
    ],
)
def test_invalid_settings_are_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        MetricSettings(**values)


def test_every_metric_says_what_it_answers_and_where_it_misleads():
    for spec in SPECS.values():
        for text in (spec.help, spec.formula, spec.answers, spec.misleads, spec.samples, spec.no_data):
            assert text, spec.name
            assert not re.search(r"\{_?[A-Z]+\}", text), f"{spec.name}: a sentence was not filled in"
        assert spec.requires


def test_an_error_message_is_one_printable_line_of_bounded_length():
    text = measure.explain(ValueError("x" * 1000 + "\x1b[31m"))
    assert len(text) == 300
    assert measure.explain(ValueError("a\x00b\nsecret")) == "ValueError: a b"
    assert measure.explain(ValueError()) == "ValueError"


def test_only_the_named_metrics_are_sliced():
    asked = list(
        measure_all(shared_of(FULL), MetricSettings(), {"scene": "scene"}, sliced=("failure", "gini"))
    )
    found = [one for measured in asked for one in measured.results]
    assert {one.metric for one in found if "dimension" in one.labels} == {"failure", "gini"}
    every = list(measure_all(shared_of(FULL), MetricSettings(), {"scene": "scene"}))
    whole = [one for measured in every for one in measured.results if "dimension" not in one.labels]
    assert [one for one in found if "dimension" not in one.labels] == whole
