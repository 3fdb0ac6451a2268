from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.generate import dashboards, flat
from monitor.catalogue import ALL_SPECS
from monitor.core.results import Status
from monitor.metrics.catalogue import adds_up
from monitor.metrics.exported import metric_family_name
from monitor.metrics.family import MODEL_LABEL, Theme
from monitor.service.prometheus.families import MONITOR, RULES, STATUSES, all_families
from monitor.service.prometheus.process import PROCESS
from tests.end_to_end.panel_queries import filled
from tests.promql import families_in, mistakes

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "grafana"
BOARDS: dict[str, dict[str, Any]] = {
    path.name: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((GRAFANA / "dashboards").glob("*.json"))
}
PANELS = [
    pytest.param(panel, id=panel["title"])
    for board in BOARDS.values()
    for panel in flat(board["panels"])
    if panel["type"] != "row"
]


def expressions(panel: dict[str, Any]) -> Iterator[str]:
    """The queries of a panel, with the variables of Grafana filled in."""
    for target in panel["targets"]:
        yield filled(target["expr"])


def every_expression() -> Iterator[str]:
    for parameter in PANELS:
        yield from expressions(parameter.values[0])  # type: ignore[arg-type]
    for board in BOARDS.values():
        for annotation in board["annotations"]["list"]:
            if "expr" in annotation:
                yield filled(annotation["expr"])


def test_the_dashboards_in_the_repository_are_those_that_the_code_writes() -> None:
    assert set(dashboards()) == set(BOARDS)
    for name, text in dashboards().items():
        kept = (GRAFANA / "dashboards" / name).read_text(encoding="utf-8")
        assert kept == text, "run: python -m grafana.generate"


def test_the_code_writes_the_same_text_in_another_process() -> None:
    code = "import sys; from grafana.generate import dashboards as d; sys.stdout.write(''.join(d().values()))"
    command = [sys.executable, "-c", code]
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert again == "".join(dashboards().values())


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_has_a_title_a_description_and_a_unit(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"]


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_asks_only_for_families_and_labels_that_are_exported(panel: dict[str, Any]) -> None:
    for expression in expressions(panel):
        assert "$" not in expression, "a variable that the dashboard lacks"
        assert mistakes(expression, all_families()) == []
        assert families_in(expression)


def test_prometheus_itself_understands_every_expression(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("promtool is missing; deploy/install-test-services installs it")
        pytest.skip("promtool is missing; deploy/install-test-services installs it")
    rules = [{"record": f"panel:{n}", "expr": expression} for n, expression in enumerate(every_expression())]
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    answer = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert f"{len(rules)} rules found" in answer.stdout


@pytest.mark.parametrize("panel", PANELS)
def test_a_ratio_is_shown_in_percent_and_a_time_in_seconds(panel: dict[str, Any]) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    names = {name for expression in expressions(panel) for name in families_in(expression)}
    names -= {"recsys_build_info"}  # which only says that a program is a monitor
    units = {all_families()[name].unit for name in names if name in all_families()}
    if units == {"ratio"}:
        assert unit == "percentunit"
    is_rate = any("rate(process_cpu_seconds_total" in expression for expression in expressions(panel))
    if units == {"seconds"}:
        assert unit == ("percentunit" if is_rate else "s"), "seconds a second are a share of a core"
    if units == {"bits"}:
        assert unit == "suffix: bit"


@pytest.mark.parametrize("panel", PANELS)
def test_a_legend_names_labels_that_the_query_keeps(panel: dict[str, Any]) -> None:
    for target, expression in zip(panel["targets"], expressions(panel), strict=True):
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            known = {label for name in families_in(expression) for label in all_families()[name].labels}
            assert label in known | {"instance", "bound"}, label


@pytest.mark.parametrize("name", sorted(ALL_SPECS))
def test_every_metric_of_the_catalogue_has_a_panel_and_its_interval_with_it(name: str) -> None:
    shown = {family for expression in every_expression() for family in families_in(expression)}
    spec = ALL_SPECS[name]
    assert metric_family_name(spec) in shown
    if spec.interval:
        assert metric_family_name(spec, "lower") in shown
        assert metric_family_name(spec, "upper") in shown


@pytest.mark.parametrize("name", [spec.name for spec in ALL_SPECS.values() if spec.of_samples])
def test_what_is_measured_of_samples_and_of_exposures_alike_is_never_in_one_panel(name: str) -> None:
    found = {}
    for board, made in BOARDS.items():
        asked = " ".join(
            target["expr"] for panel in flat(made["panels"]) for target in panel.get("targets", ())
        )
        selectors = re.findall(rf"\brecsys_{name}(?:_lower|_upper)?(\{{[^}}]*}})", asked)
        if selectors:
            found[board] = {re.findall(r'\bsplit(!?=)""', selector)[0] for selector in selectors}
    of_one = {"recommender.json": {"="}} if name == "auc" else {}
    assert found == {"feedback.json": {"="}, "models.json": {"!="}} | of_one


def test_what_is_told_of_models_alone_is_on_their_dashboard_alone() -> None:
    own = {metric_family_name(spec) for spec in ALL_SPECS.values() if MODEL_LABEL in spec.labels}
    shown = {name: own & set(re.findall(r"\brecsys_\w+", json.dumps(made))) for name, made in BOARDS.items()}
    assert shown == {name: own if name == "models.json" else set() for name in BOARDS}


def test_every_family_of_rules_and_of_the_monitor_is_shown_or_left_out_on_purpose() -> None:
    shown = {family for expression in every_expression() for family in families_in(expression)}
    on_the_status_page = {
        "recsys_anomaly_worst",
        "recsys_anomaly_worst_expected",
        "recsys_dashboards_info",
        "recsys_recommender_info",
        "recsys_rule_info",
        "recsys_rule_offender_rows",
    }
    for_the_alerts = {"recsys_rule_violated_timestamp_seconds", "recsys_shared_history_info"}
    inside_python = {
        "process_virtual_memory_bytes",
        "python_info",
        "python_gc_objects_collected_total",
        "python_gc_objects_uncollectable_total",
        "python_gc_collections_total",
    }
    declared = {family.name for family in (*STATUSES, *RULES, *MONITOR, *PROCESS)}
    assert declared - shown == on_the_status_page | for_the_alerts | inside_python


def test_the_states_have_the_words_of_the_monitor() -> None:
    timelines = [p.values[0] for p in PANELS if p.values[0]["type"] == "state-timeline"]
    assert len(timelines) >= 17
    for panel in timelines:
        options = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
        assert {value["text"].replace(" ", "_") for value in options.values()} == {s.value for s in Status}
        for code, value in options.items():
            state = value["text"].replace(" ", "_")
            assert f"{code} * (recsys_" in panel["targets"][0]["expr"]
            assert f'status="{state}"' in panel["targets"][0]["expr"].split(f"{code} * (")[1].split(")")[0]


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_panels_have_ids_of_their_own_and_do_not_overlap(board: dict[str, Any]) -> None:
    panels = list(flat(board["panels"]))
    ids = [panel["id"] for panel in panels]
    assert len(set(ids)) == len(ids)
    assert 0 not in ids
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
        assert not taken & cells, panel["title"]
        taken |= cells


def test_the_data_source_and_the_folder_of_dashboards_are_provisioned_as_composed() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    sources = yaml.safe_load((GRAFANA / "provisioning" / "datasources" / "prometheus.yaml").read_text())
    (source,) = sources["datasources"]
    assert source["type"] == "prometheus"
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose
    providers = yaml.safe_load((GRAFANA / "provisioning" / "dashboards" / "recsys.yaml").read_text())[
        "providers"
    ]
    assert f"./grafana/dashboards:{providers[0]['options']['path']}:ro" in compose["grafana"]["volumes"]


def test_every_metric_of_the_dashboard_of_what_users_did_has_a_theme() -> None:
    rows = [panel["title"] for panel in BOARDS["feedback.json"]["panels"] if panel["type"] == "row"]
    assert rows == [theme for theme in Theme if theme not in (Theme.OTHER, Theme.EXPERIMENTS)]


def test_days_and_weeks_have_a_row_of_their_own_with_the_series_of_roll_ups_alone() -> None:
    board = BOARDS["recommender.json"]["panels"]
    (row,) = [panel for panel in board if panel["type"] == "row" and panel["title"] == "Days and weeks"]
    asked = [target["expr"] for panel in row["panels"] for target in panel["targets"]]
    selectors = {one for expression in asked for one in re.findall(r"recsys_slice_\w+\{([^,]*),", expression)}
    assert selectors == {'dimension="rollup"'}
    families = {one for expression in asked for one in families_in(expression)}
    of_days = {
        metric_family_name(spec, part, sliced=True)
        for spec in ALL_SPECS.values()
        for part in ("", "lower", "upper")
        if any(adds_up(spec.name, by) for by in spec.by or ("",))
    }
    assert families <= of_days
    assert all(panel["title"].endswith(" of days and weeks") for panel in row["panels"])
