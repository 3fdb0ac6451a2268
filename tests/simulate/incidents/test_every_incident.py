"""What all incidents have in common."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
import yaml

from monitor.anomalies.causes import CAUSES
from monitor.history.store import Store
from monitor.metrics.catalogue import SPECS
from monitor.service.tally import Tally
from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.describe import page
from monitor.simulate.incidents.incident import SIZES, Caught, StruckHour
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.samples import WEIGHTS
from monitor.simulate.simulation import Simulation
from tests.conftest import ROOT
from tests.simulate.incidents.conftest import (
    LATER,
    SHOP,
    SINCE,
    columns,
    differing,
    is_sound,
    repeats,
    rows_of,
)

WHOLE_LISTS = {"items", "scores", "lengths", "impressions"}
TOUCHED = {  # the columns of the lists that an incident may change; it changes the first of them
    "blacklist": {"items"},
    "expired": {"items"},
    "duplicates": {"items"},
    "empty_scene": WHOLE_LISTS,
    "empty_new_users": WHOLE_LISTS,
    "empty_everyone": WHOLE_LISTS,
    "lists_short": WHOLE_LISTS,
    "lists_stale": WHOLE_LISTS,
    "novelty_gone": WHOLE_LISTS,
    "popularity_collapse": {"items"},
    "category_takeover": {"items"},
    "personalization_lost": {"items"},
    "score_nan": {"scores"},
    "score_infinite": {"scores"},
    "score_constant": {"items", "scores", "impressions"},
    "score_saturated": {"scores"},
    "score_underflown": {"scores"},
    "order_broken": {"items", "scores", "impressions"},
    "zero_denominators": {"impressions"},
    "sample_ratio_mismatch": {"arms"},
    "bucket_hash_broken": {"buckets", "arms"},
}
STAGES = ("lists", "feedback", "samples", "catalog", "deliver")
HELD_UP = {"log_stops", "log_slows"}  # a pipeline that has files of the hour before in it
NEW_MODEL = {"overfit_model", "time_travel"}  # of any size comes under a new name
WITHOUT_CLICKS = {"empty_everyone", "click_logging_broken"}  # at their large sizes
OF_LISTS = [name for name, one in INCIDENTS.items() if one.lists]


def struck_since_34_hours(name, size, healthy=None):
    incident = INCIDENTS[name]
    return Struck(healthy or Simulation(SHOP), incident, incident.sizes.get(size, size), SINCE)


def same_rows(one, other):
    if one.schema != other.schema:
        return False
    nulls = [[column.null_count for column in table.columns] for table in (one, other)]
    return nulls[0] == nulls[1] and one.to_pandas().equals(other.to_pandas())  # where NaN equals NaN


def same_files(one, other):
    told = [[(each.log, each.name, each.arrives) for each in files] for files in (one, other)]
    return told[0] == told[1] and all(
        same_rows(first.table, second.table) for first, second in zip(one, other, strict=True)
    )


def test_the_catalogue_has_the_incidents_of_every_file_once():
    folder = ROOT / "monitor" / "simulate" / "incidents"
    files = {one.stem for one in folder.glob("*.py") if "\nINCIDENTS: Final = (" in one.read_text("utf-8")}
    found = [
        one.name for file in files for one in import_module(f"monitor.simulate.incidents.{file}").INCIDENTS
    ]
    assert len(found) >= 37
    assert sorted(found) == sorted(INCIDENTS)
    assert [one.name for one in INCIDENTS.values()] == list(INCIDENTS)


def test_every_incident_has_a_stage_or_an_operation():
    for one in INCIDENTS.values():
        stages = [stage for stage in STAGES if getattr(one, stage) is not None]
        assert len(stages) + (one.operation is not None) == 1, one.name
    assert set(TOUCHED) == set(OF_LISTS)


def test_sizes_rise_and_every_text_is_given():
    for one in INCIDENTS.values():
        small, middle, large = (one.sizes[size] for size in SIZES)
        assert 0 < small < middle < large, one.name
        assert one.title, one.name
        assert one.knob[-1:] not in ("", "."), one.name
        assert one.says.endswith("."), one.name
        assert not one.knob.startswith("share") or large <= 1, one.name
        assert set(one.unseen) <= {"small"}, one.name
        assert one.caught_by, one.name
        assert one.windows in (2, 72), one.name
        assert one.hard or all(each.alert != "RecsysHardRuleViolated" for each in one.caught_by), one.name


def test_every_expected_alert_rule_and_cause_exists(tmp_path: Path) -> None:
    alerts: dict[str, str] = {}
    rules: set[str] = set()
    for path in (ROOT / "rules" / "alerts").glob("*.yaml"):
        groups = yaml.safe_load(path.read_text("utf-8"))["groups"]
        alerts |= {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}
    for path in (ROOT / "rules" / "business").glob("*.yaml"):
        rules |= {one["meta"]["rule"] for one in yaml.safe_load(path.read_text("utf-8"))["expectations"]}
    with Store.open(tmp_path / "history.sqlite") as store:
        faults = {dict(labels).get("fault") for _, labels in Tally(store).shown()}
    for one in INCIDENTS.values():
        for caught in one.caught_by:
            assert caught.alert in alerts, one.name
            kept = " ".join(re.findall(r"by \(([^)]*)\)", alerts[caught.alert]))
            assert set(caught.labels) <= set(kept.replace(",", "").split()), one.name
            assert caught.rule is None or caught.rule in rules, one.name
            assert caught.cause is None or caught.cause in CAUSES, one.name
            assert caught.metric is None or caught.metric in SPECS, one.name
            assert caught.feature is None or caught.feature in WEIGHTS, one.name
            assert caught.fault is None or caught.fault in faults, one.name


def test_an_alert_matches_by_name_and_labels():
    meant = Caught("RecsysHardRuleViolated", rule="blacklist")
    alert = {"alertname": "RecsysHardRuleViolated", "rule": "blacklist", "recommender": "shop"}
    assert meant.fits(alert)
    assert not meant.fits(alert | {"rule": "item_expired"})
    assert not meant.fits(alert | {"alertname": "RecsysSoftRuleViolated"})
    assert not meant.fits({"alertname": "RecsysHardRuleViolated"})
    assert str(meant) == "RecsysHardRuleViolated (rule=blacklist)"


def test_a_drift_or_skew_of_something_else_does_not_match():
    slow, default = INCIDENTS["slow_drift"].caught_by, INCIDENTS["feature_default"].caught_by
    for metric, fits in (("action_rate", True), ("conversion", True), ("volume", False)):
        alert = {"alertname": "RecsysDrift", "metric": metric, "by": "pv", "of": "event=click"}
        assert any(one.fits(alert) for one in slow) == fits
    for feature, fits in (("affinity", True), ("log_price", False)):
        alert = {"alertname": "RecsysFeatureSkew", "model": "m1", "feature": feature}
        assert any(one.fits(alert) for one in default) == fits


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "incidents.md").read_text("utf-8") == page() + "\n"


def test_the_example_of_the_page_runs():
    code = page().split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)
    lists = names["lists"]
    search = lists.scenes == [scene.name for scene in names["healthy"].world.scenes].index("search")
    assert search.any()
    assert (lists.lengths[search] == 0).all()
    assert (lists.lengths[~search] > 0).mean() > 0.99


@pytest.mark.parametrize("name", INCIDENTS)
def test_hours_before_the_incident_are_unchanged(name, healthy):
    before = SINCE - timedelta(hours=1)
    found, planned = struck_since_34_hours(name, "large", healthy).files(before), healthy.files(before)
    if name in HELD_UP:  # test_delivery holds which of these files come when
        rows = {(one.log, one.name): one.table for one in found}
        assert len(rows) == len(planned)
        found = [replace(one, table=rows[one.log, one.name]) for one in planned]
    assert same_files(found, planned)


@pytest.mark.parametrize("name", [name for name in INCIDENTS if name not in NEW_MODEL])
def test_a_size_of_0_changes_nothing(name, healthy):
    assert same_files(struck_since_34_hours(name, 0.0, healthy).files(LATER), healthy.files(LATER))


@pytest.mark.parametrize("name", INCIDENTS)
def test_files_do_not_depend_on_earlier_calls(name, healthy):
    one, other = struck_since_34_hours(name, "middle", healthy), struck_since_34_hours(name, "middle")
    one.files(SINCE)
    assert same_files(one.files(LATER), other.files(LATER))


@pytest.mark.parametrize(("name", "size"), [(name, size) for name in OF_LISTS for size in SIZES])
def test_an_incident_changes_only_its_columns(name, size, hour, healthy, strike):
    struck = strike(name, size)
    changes = differing(struck.lists(SINCE), hour)
    assert changes
    assert set(changes) <= TOUCHED[name]
    assert is_sound(struck.lists(SINCE))
    assert (repeats(struck.lists(SINCE)) > 0) == (name == "duplicates")
    assert struck.catalog(SINCE).equals(healthy.catalog(SINCE))
    assert struck.samples(SINCE).equals(healthy.samples(SINCE))


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_keeps_columns_and_types(name, healthy, strike):
    expected = {one.log: one.table.schema for one in healthy.files(LATER)}
    files = strike(name, "large").files(LATER)
    assert {one.log: one.table.schema for one in files} == {
        log: schema for log, schema in expected.items() if log in {one.log for one in files}
    }
    gone = set(expected) - {one.log for one in files}
    assert gone == ({"feedback"} if name in WITHOUT_CLICKS else set())


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("name", OF_LISTS)
def test_an_hour_with_no_or_one_request_works(name, rows, hour, healthy):
    few = rows_of(hour, np.arange(rows))
    incident = INCIDENTS[name]
    for size in SIZES:
        moment = StruckHour(healthy, SINCE, SINCE, incident.sizes[size], np.random.default_rng(0))
        kept = {column: values.copy() for column, values in columns(few).items()}
        found = incident.lists(few, moment)
        assert len(found) == rows
        assert set(differing(found, few)) <= TOUCHED[name]
        assert is_sound(found)
        assert all(np.array_equal(values, columns(few)[column]) for column, values in kept.items())


@pytest.mark.parametrize("name", OF_LISTS)
def test_an_hour_of_empty_lists_is_unchanged(name, hour, healthy):
    blank = rows_of(hour, np.flatnonzero(hour.lengths == 0))
    assert len(blank) > 0
    incident = INCIDENTS[name]
    moment = StruckHour(healthy, SINCE, SINCE, incident.sizes["large"], np.random.default_rng(0))
    assert set(differing(incident.lists(blank, moment), blank)) <= {"arms", "buckets"}


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("blacklist", {"blacklisted": 0}),
        ("expired", {"expired": 0}),
        ("sample_ratio_mismatch", {"arms": ("all",)}),
        ("category_takeover", {"items": 24, "short_share": 0.0}),
        ("lists_stale", {}),
        ("novelty_gone", {}),
    ],
)
def test_an_incident_that_lacks_what_the_page_names_changes_nothing(name, lacks):
    world = replace(SHOP, **lacks)
    since = SINCE if lacks else world.start  # nobody came before the world began
    healthy = Simulation(world)
    struck = Struck(healthy, INCIDENTS[name], INCIDENTS[name].sizes["large"], since)
    assert f"`{name}`" in page().split("## blacklist")[0]
    assert not differing(struck.lists(since), healthy.lists(since))


@pytest.mark.parametrize("name", [name for name, one in INCIDENTS.items() if one.lists or one.feedback])
def test_the_healthy_simulation_is_not_modified(name, hour, healthy):
    incident = INCIDENTS[name]
    kept = {column: values.copy() for column, values in columns(hour).items()}
    moment = StruckHour(healthy, SINCE, SINCE, incident.sizes["large"], np.random.default_rng(0))
    if incident.lists:
        incident.lists(hour, moment)
    else:
        incident.feedback(healthy.feedback(hour), hour, moment)
    assert all(values.tobytes() == columns(hour)[column].tobytes() for column, values in kept.items())


def test_random_numbers_depend_only_on_hour_stage_and_incident(healthy):
    drawn = []

    def draws(table, *given):
        drawn.append(float(given[-1].rng.random()))
        return table

    for name in ("one", "other"):
        like = replace(INCIDENTS["lists_short"], name=name, lists=draws, catalog=draws)
        for size in (0.1, 0.2):
            struck = Struck(healthy, like, size, SINCE)
            for at in (SINCE, LATER):
                struck.lists(at)
                struck.catalog(at)
    assert len(drawn) == 16
    assert len(set(drawn)) == 8


def test_an_incident_begins_with_a_full_hour_of_the_world(healthy):
    with pytest.raises(ValueError, match="full hour"):
        Struck(healthy, INCIDENTS["blacklist"], 1, SINCE + timedelta(minutes=1))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("lists_short", 1.1), ("click_fraud", 1.1), ("lists_short", -0.1)),
        *(("blacklist", -1), ("blacklist", float("inf")), ("blacklist", float("nan"))),
    ],
)
def test_a_size_that_the_knob_cannot_have_is_refused(name, size, healthy):
    with pytest.raises(ValueError, match=f"the size of {name} .* got {size}"):
        Struck(healthy, INCIDENTS[name], size, SINCE)


def test_an_incident_in_a_simulation_that_has_one_is_refused(healthy):
    first = Struck(healthy, INCIDENTS["blacklist"], 1, SINCE)
    with pytest.raises(ValueError, match="one incident, and this one has blacklist"):
        Struck(first, INCIDENTS["expired"], 1, SINCE)


def test_the_day_before_an_incident_has_24_hours_also_on_the_day_of_a_clock_change():
    world = replace(SHOP, start=datetime(2026, 3, 27, tzinfo=UTC))
    since = datetime(2026, 3, 29, 12, tzinfo=UTC)
    local = since.astimezone(ZoneInfo("Europe/London"))
    stale = INCIDENTS["lists_stale"]
    found = [Struck(Simulation(world), stale, 1.0, at).lists(since) for at in (local, since)]
    assert not differing(*found)


def test_clicks_are_changed_one_hour_at_a_time(strike):
    struck = strike("click_fraud", "large")
    with pytest.raises(ValueError, match="one hour"):
        struck.feedback(struck.lists(SINCE, 2))
    before = SINCE - timedelta(hours=2)
    assert len(struck.feedback(struck.lists(before, 2))) > 0
