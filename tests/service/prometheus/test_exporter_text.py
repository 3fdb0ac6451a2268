"""The scrape as a whole: how large it may be, the forms of its text, and what promtool says of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as classic_families

from monitor.core.results import Kind, Status
from monitor.history.snapshot import Snapshot, Violation
from monitor.service.prometheus.exporter import Exporter
from monitor.service.prometheus.families import all_families
from tests.service import pictures
from tests.service.prometheus.scrapes import find, samples, scrape, without_process

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def test_the_number_of_series_is_the_number_of_series():
    for snapshot in (pictures.full(), pictures.empty(), pictures.wide(50)):
        text = scrape(snapshot, series_limit=300)
        assert find(text, "recsys_series") == len(samples(text))


def test_above_the_limit_slices_go_first_whole_families_and_are_counted():
    snapshot = pictures.wide(300)
    everything = scrape(snapshot, series_limit=100_000)
    limited = scrape(snapshot, series_limit=700)
    assert find(everything, "recsys_series_dropped", recommender="shop") == 0
    assert find(limited, "recsys_series") <= 700
    dropped = find(limited, "recsys_series_dropped", recommender="shop")
    assert dropped == find(everything, "recsys_series") - find(limited, "recsys_series")
    gone = {name for name, _ in samples(everything)} - {name for name, _ in samples(limited)}
    assert gone
    assert all(name.startswith("recsys_slice_") for name in gone)
    again = samples(scrape(snapshot, series_limit=700))
    assert without_process(samples(limited)) == without_process(again)


def test_families_that_alerts_need_are_kept_even_above_the_limit():
    text = scrape(pictures.full(), series_limit=100)
    assert find(
        text, "recsys_rule_status", recommender="shop", rule="blacklist", kind="hard", status="violated"
    )
    assert find(text, "recsys_series") > find(text, "recsys_series_limit")
    assert "recsys_gini{" not in text


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text;version=latest", "text/plain;version=1.x", "\x00;version=é"]
)
def test_an_accept_header_with_a_wrong_version_gets_the_plain_text(accept: str) -> None:
    exporter = Exporter(pictures.full, version="1", url="u")
    body, content_type = exporter.scrape(accept)
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert list(classic_families(body.decode()))


@pytest.mark.parametrize(
    ("accept", "parse"),
    [
        ("", classic_families),
        pytest.param(
            OPENMETRICS,
            openmetrics_families,
        ),
    ],
)
def test_both_text_forms_can_be_parsed_and_say_the_same(accept, parse):
    parsed = list(parse(scrape(pictures.full(), accept)))
    found = {(s.name, frozenset(s.labels.items())): s.value for family in parsed for s in family.samples}
    assert without_process(found) == without_process(samples(scrape(pictures.full())))


def test_openmetrics_is_served_on_request():
    exporter = Exporter(pictures.full, version="1", url="u")
    body, content_type = exporter.scrape(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")
    assert exporter.scrape("*/*")[1].startswith("text/plain; version=0.0.4")


def _one_series_for_every_family() -> Snapshot:
    from monitor.catalogue import ALL_SPECS

    numbers = {"value": 0.5, "lower": 0.4, "upper": 0.6, "samples": 7}
    of_slice = {"dimension": "d", "value": "v"}
    results = []
    for name, spec in ALL_SPECS.items():
        own = dict.fromkeys(spec.labels, "x")
        results.append(pictures.metric(name, "x", labels=own, **numbers))
        if spec.sliced:
            results.append(pictures.metric(name, "x", labels=own | of_slice, **numbers))
    results.append(pictures.metric("gini", labels=of_slice, threshold=0.4, bound="max", **numbers))
    results.append(pictures.metric("novelty", status=Status.NO_DATA))
    results.append(pictures.rule("all", Kind.SOFT, violations=1, **numbers))
    every = tuple(pictures.series(result) for result in results)
    return Snapshot(pictures.NOW, (replace(pictures.shop(), series=every),), config_loaded_at=pictures.NOW)


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(pictures.full, id="full"),
        pytest.param(pictures.empty, id="empty"),
        pytest.param(_one_series_for_every_family, id="every family"),
    ],
)
def test_promtool_accepts_the_scrape(snapshot):
    promtool = shutil.which("promtool")
    if promtool is None:
        assert os.environ.get("CI") != "true", "promtool is missing: install the prometheus package"
        pytest.skip("promtool is missing: install the prometheus package to run this test")
    text = scrape(snapshot(), series_limit=100_000)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr + done.stdout) == (0, "")


def test_every_declared_family_can_be_exported():
    objective = pictures.series(pictures.metric("gini", value=0.1, threshold=0.5, bound="max"))
    off = {"metric": "gini", "by": "", "of": "", "dimension": "d", "value": "v"}
    deviation = pictures.series(pictures.metric("deviation", status=Status.VIOLATED, labels=off, value=9.0))
    told = [
        pictures.metric(
            "anomaly",
            status=Status.VIOLATED,
            labels={"cause": "other"},
            evidence=({"metric": "gini", "measured": 1.0, "expected": 0.5},),
        ),
        pictures.metric(
            "auc_gap_cause",
            status=Status.VIOLATED,
            labels={"pair": "test_online", "model": "m", "cause": "pruned_features"},
        ),
        pictures.metric("drift", status=Status.VIOLATED, labels=off, detail="fell from 2 to 1"),
        pictures.metric(
            "forecast_correlation",
            status=Status.VIOLATED,
            labels={"target": "ctr", "metric": "auc", "by": "", "of": "split=test", "role": "used"},
            value=0.1,
            detail="no longer predicts",
        ),
        pictures.metric(
            "substitution",
            status=Status.VIOLATED,
            labels={"total": "orders", "system": "search"},
            detail="taken",
        ),
    ]
    blacklist = pictures.rule("blacklist", status=Status.VIOLATED, evidence=({"item_id": "b7"},))
    offending = replace(pictures.series(blacklist), violation=Violation(pictures.LAST, blacklist))
    (state,) = _one_series_for_every_family().recommenders
    snapshot = Snapshot(
        pictures.NOW,
        (
            replace(
                state, series=(objective, deviation, offending, *map(pictures.series, told), *state.series)
            ),
        ),
        counters={
            ("recsys_store_errors_total", (("fault", "busy"),)): 1.0,
            ("recsys_undefined_total", (("metric", "gini"), ("recommender", "shop"))): 1.0,
        },
        config_loaded_at=pictures.NOW,
        shared_history="abc123",
    )
    text = scrape(snapshot, series_limit=100_000, grafana_url="https://grafana.test")
    assert {name for name, _ in samples(text)} == set(all_families())
