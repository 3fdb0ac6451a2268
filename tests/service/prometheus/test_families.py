from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.catalogue import ALL_SPECS, DETECTABLE
from monitor.metrics.exported import ExportedFamily, metric_families
from monitor.metrics.family import MetricSpec
from monitor.service.prometheus import families, gauges
from monitor.service.prometheus.families import all_families
from monitor.service.prometheus.process import PROCESS

ROOT = Path(__file__).resolve().parents[3]
FAMILIES = list(all_families().values())


def spec(**fields: object) -> MetricSpec:
    given = {"name": "thing", "help": "A thing.", "formula": "", "answers": "", "misleads": "", **fields}
    return MetricSpec(**given)  # type: ignore[arg-type]


def test_no_two_families_share_a_name() -> None:
    declared = (
        *families.STATUSES,
        *families.RULES,
        *families.MONITOR,
        *PROCESS,
        DETECTABLE,
        *metric_families(ALL_SPECS.values()),
    )
    assert len({family.name for family in declared}) == len(declared)


def test_a_counter_and_a_gauge_never_differ_by_total_alone_which_is_one_name_to_openmetrics() -> None:
    bare = {family.name.removesuffix("_total").removesuffix("_info") for family in FAMILIES}
    assert len(bare) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_named_by_the_conventions_of_prometheus(family: ExportedFamily) -> None:
    assert re.fullmatch(r"(recsys|process|python)_[a-z][a-z0-9_]*[a-z0-9]", family.name)
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert family.name.endswith("_info") == (family.kind == "info" or family.name == "python_info")
    bare = family.name.removesuffix("_total")
    assert family.unit in ("", "bits") or bare.endswith("_" + family.unit)
    assert not family.name.endswith("_bits"), "promtool takes it for a size of data"
    for unit in ("ratio", "seconds"):
        assert not family.name.endswith("_" + unit) or family.unit == unit
    assert family.help.endswith(".") or family in PROCESS, "the library writes those of the process"
    assert "\n" not in family.help


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_has_the_recommender_first_and_no_label_that_prometheus_or_a_team_adds(
    family: ExportedFamily,
) -> None:
    assert len(set(family.labels)) == len(family.labels)
    assert "recommender" not in family.labels[1:]
    assert not {"detail", "message", "text", "description"} & set(family.labels), "free text"
    reserved = {"job", "instance", "service", "env", "type", "stage", "region", "owner", "le", "quantile"}
    assert not reserved & set(family.labels)


def test_a_ratio_with_an_interval_gives_value_bounds_and_samples_whole_and_by_slice() -> None:
    found = list(metric_families([spec(unit="ratio", by=("pv", "uv"), interval="Wilson")]))
    assert {family.name: family.labels for family in found} == {
        "recsys_thing_ratio": ("recommender", "by"),
        "recsys_thing_lower_ratio": ("recommender", "by"),
        "recsys_thing_upper_ratio": ("recommender", "by"),
        "recsys_thing_samples": ("recommender", "by"),
        "recsys_slice_thing_ratio": ("recommender", "by", "dimension", "value"),
        "recsys_slice_thing_lower_ratio": ("recommender", "by", "dimension", "value"),
        "recsys_slice_thing_upper_ratio": ("recommender", "by", "dimension", "value"),
        "recsys_slice_thing_samples": ("recommender", "by", "dimension", "value"),
    }
    assert [family.unit for family in found] == ["ratio", "ratio", "ratio", ""] * 2


def test_an_index_without_interval_gives_value_and_samples_only() -> None:
    found = list(metric_families([spec()]))
    assert [family.name for family in found] == [
        "recsys_thing",
        "recsys_thing_samples",
        "recsys_slice_thing",
        "recsys_slice_thing_samples",
    ]
    assert found[0].labels == ("recommender",)


def test_bits_of_information_are_a_unit_but_no_suffix() -> None:
    found = list(metric_families([spec(unit="bits")]))
    assert [(family.name, family.unit) for family in found[:2]] == [
        ("recsys_thing", "bits"),
        ("recsys_thing_samples", ""),
    ]


def test_a_metric_whose_values_of_by_come_from_the_settings_has_the_label() -> None:
    assert next(metric_families([spec(by_help="one a column")])).labels == ("recommender", "by")


def test_the_page_of_gauges_matches_the_code() -> None:
    page = (ROOT / "docs" / "gauges.md").read_text(encoding="utf-8")
    assert page == gauges.gauges_page(), "run: python -m monitor.service.prometheus.gauges > docs/gauges.md"


def test_the_command_of_the_page_writes_the_page() -> None:
    command = [sys.executable, "-m", "monitor.service.prometheus.gauges"]
    written = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert written == gauges.gauges_page()


def test_every_family_is_on_the_page() -> None:
    page = gauges.gauges_page()
    for family in FAMILIES:
        if not family.name.startswith("recsys_slice_"):
            assert f"`{family.name}`" in page


def test_further_labels_of_a_metric_are_labels_of_its_families() -> None:
    for family in metric_families([spec(by=("macro",), labels=("k", "event"))]):
        assert family.labels[:4] == ("recommender", "by", "k", "event")
