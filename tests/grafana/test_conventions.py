"""The conventions of Grafana's dashboard linter, by the names of its rules, and a few of our own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import promql_parser as pq
import pytest

from grafana.generate import flat
from grafana.names import NAMES
from monitor.catalogue import ALL_SPECS
from monitor.service.prometheus.families import all_families
from tests.end_to_end.panel_queries import filled
from tests.grafana.test_dashboards import BOARDS
from tests.promql import mistakes

MOST_QUERIES: Final = 60  # of a board in one refresh
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
# The units of Grafana that the boards use, and units of their own in its form `suffix:`.
UNITS: Final = {"short", "none", "percentunit", "s", "bytes", "suffix: bit", "suffix: sd"}
EACH = pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
PANELS = [
    pytest.param(panel, id=f"{name}: {panel['title']}")
    for name, board in BOARDS.items()
    for panel in flat(board["panels"])
    if panel["type"] != "row"
]
EVERY = pytest.mark.parametrize("panel", PANELS)


def variables(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in board["templating"]["list"]}


def selectors(expression: str) -> Iterator[pq.VectorSelector]:
    """Every series that a query reads; the variables keep their names as values of the matchers."""
    found: list[pq.VectorSelector] = []

    def note(node: pq.Expr) -> bool:
        if isinstance(node, pq.VectorSelector):
            found.append(node)
        if isinstance(node, pq.MatrixSelector):
            found.append(node.vector_selector)
        return True

    pq.walk(pq.parse(expression.replace("$__rate_interval", "1m")), note)
    yield from found


@EACH
def test_template_datasource_rule(board: dict[str, Any]) -> None:
    (source,) = [one for one in board["templating"]["list"] if one["type"] == "datasource"]
    assert (source["name"], source["label"], source["query"]) == ("datasource", "Data source", "prometheus")


@EACH
@pytest.mark.parametrize("name", ["job", "instance"])
def test_template_job_rule_and_template_instance_rule(board: dict[str, Any], name: str) -> None:
    variable = variables(board)[name]
    assert variable["label"] == name.capitalize()
    assert (variable["type"], variable["datasource"]) == ("query", SOURCE)
    assert (variable["multi"], variable["includeAll"], variable["allValue"]) == (True, True, ".+")


@EACH
def test_all_means_every_series_as_in_the_tests_of_the_queries(board: dict[str, Any]) -> None:
    for name, variable in variables(board).items():
        if variable.get("includeAll"):
            assert filled(f"${name}") == variable["allValue"]


@EACH
def test_grafana_escapes_a_value_that_a_query_matches_as_an_expression(board: dict[str, Any]) -> None:
    """It does so for a variable of several values alone. A column of a log may be called `price (EUR)`, and
    a link from another board may bring "All", which is several values too.
    """
    text = json.dumps(board)
    for name, variable in variables(board).items():
        if re.search(rf'=~\\"[^"]*\${name}\b', text):
            assert variable["multi"], name


@EACH
def test_template_label_promql_rule(board: dict[str, Any]) -> None:
    queries = {one["name"]: one["query"] for one in board["templating"]["list"] if one["type"] == "query"}
    for query in queries.values():
        ((series, label),) = re.findall(r"^label_values\((.+), (\w+)\)$", query)
        assert mistakes(filled(series), all_families()) == []
        (selector,) = selectors(series)
        assert label in {"job", "instance", *all_families()[selector.name or ""].labels}
        known = {matcher.value.removeprefix("$") for matcher in selector.matchers.matchers}
        assert known <= set(queries), "a variable that this board lacks"


@EACH
def test_template_on_time_change_reload_rule(board: dict[str, Any]) -> None:
    assert {one["refresh"] for one in board["templating"]["list"] if one["type"] == "query"} == {2}


@EACH
def test_uneditable_dashboard_rule(board: dict[str, Any]) -> None:
    assert board["editable"] is False, "a change in the browser would be lost with the next version"


@EVERY
def test_panel_datasource_rule(panel: dict[str, Any]) -> None:
    assert panel["datasource"] == SOURCE
    assert all(target["datasource"] == SOURCE for target in panel["targets"])


@EVERY
def test_panel_title_description_rule_and_panel_no_targets_rule(panel: dict[str, Any]) -> None:
    assert panel["title"].strip()
    assert panel["description"].strip()
    assert panel["targets"]


@EVERY
def test_panel_units_rule(panel: dict[str, Any]) -> None:
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS


@EVERY
def test_target_promql_rule_target_job_rule_and_target_instance_rule(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        found = list(selectors(target["expr"]))
        assert found, "a query that reads nothing"
        for selector in found:
            matchers = {one.name: (str(one.op), one.value) for one in selector.matchers.matchers}
            for label in ("job", "instance"):
                op, value = matchers[label]
                assert "Re" in op, "it must match several"
                assert value == f"${label}", selector


@EVERY
def test_target_rate_interval_rule_and_target_counter_agg_rule(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        expression = target["expr"]
        for function, span in re.findall(r"\b(\w+)\([^()\[\]]*\[([^\]]+)\]", expression):
            if function in ("rate", "irate"):
                assert span == "$__rate_interval"
            else:  # an increase is also asked for over a fixed span, such as the day of an error budget
                assert span in ("$__rate_interval", "1d"), function
        for counter, after in re.findall(r"(\w+_total)\{[^}]*\}(.?)", expression):
            assert after == "[", f"{counter} is used without rate or increase"


@EVERY
def test_a_variable_in_a_query_exists_on_the_board(panel: dict[str, Any]) -> None:
    (board,) = [one for one in BOARDS.values() if any(panel is each for each in flat(one["panels"]))]
    used = {
        name
        for target in panel["targets"]
        for name in re.findall(r"\$(\w+)", target["expr"])
        if not name.startswith("__")
    }
    assert used <= set(variables(board))


@EACH
def test_every_variable_is_used_on_its_board(board: dict[str, Any]) -> None:
    text = json.dumps([board["panels"], board["links"], board["annotations"], board["templating"]])
    for name in variables(board):
        assert re.search(rf"\$(\{{{name}\b|{name}\b)", text), name


@EACH
def test_a_board_sends_fewer_than_sixty_queries_a_refresh_with_any_one_row_opened(
    board: dict[str, Any],
) -> None:
    shown = sum(len(panel.get("targets", ())) for panel in board["panels"])
    annotations = sum("expr" in one for one in board["annotations"]["list"])
    looked_up = sum(one["type"] == "query" for one in board["templating"]["list"])
    rows = [sum(len(panel["targets"]) for panel in row.get("panels", ())) for row in board["panels"]]
    assert 0 < shown + annotations + looked_up + max(rows) < MOST_QUERIES


@EACH
def test_all_rows_but_the_first_are_closed(board: dict[str, Any]) -> None:
    rows = [panel for panel in board["panels"] if panel["type"] == "row"]
    assert [row["collapsed"] for row in rows] == [False, *[True] * (len(rows) - 1)]
    assert all(row["panels"] for row in rows[1:])
    assert not rows[0].get("panels")
    assert board["panels"][1]["type"] != "row", "the first row has panels"


def test_every_board_leads_to_every_other_with_its_time_and_variables() -> None:
    assert len({board["uid"] for board in BOARDS.values()}) == len(BOARDS) == 7
    for board in BOARDS.values():
        to_boards, to_page = board["links"]
        assert (to_boards["type"], to_boards["keepTime"], to_boards["includeVars"]) == (
            "dashboards",
            True,
            True,
        )
        assert all(set(to_boards["tags"]) <= set(other["tags"]) for other in BOARDS.values())
        assert to_page["url"] == "${monitor:raw}/"


@EVERY
def test_a_link_of_a_series_uses_labels_that_the_series_has(panel: dict[str, Any]) -> None:
    board_uids = {board["uid"] for board in BOARDS.values()}
    links = panel["fieldConfig"]["defaults"].get("links", [])
    kept = {
        label for target in panel["targets"] for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
    }
    aggregated = re.findall(r"^max by \(([^)]*)\)", panel["targets"][0]["expr"])
    kept |= {label for by in aggregated for label in by.split(", ")}
    for link in links:
        assert set(link) == {"title", "url", "targetBlank"}
        for label in re.findall(r"__field\.labels\.(\w+)", link["url"]):
            assert label in kept, label
        for uid in re.findall(r"^/d/([\w-]+)", link["url"]):
            assert uid in board_uids
    if panel["type"] == "state-timeline":
        (link,) = links
        assert link["url"].startswith("${__field.labels.url:raw}/recommenders/")


def test_panels_of_states_and_of_rules_link_to_their_evidence_and_others_to_the_recommender() -> None:
    urls = {
        one.values[0]["title"]: [link["url"] for link in one.values[0]["fieldConfig"]["defaults"]["links"]]  # type: ignore[index]
        for one in PANELS
        if one.values[0]["fieldConfig"]["defaults"].get("links")  # type: ignore[union-attr, index]
    }
    base = "${__field.labels.url:raw}/recommenders/${__field.labels.recommender:percentencode}"
    assert urls["Rules"] == [f"{base}/rules/${{__field.labels.rule:percentencode}}"]
    assert urls["Violation ratio and threshold"] == urls["Rules"]
    assert urls["Causes"] == [f"{base}/anomalies/${{__field.labels.cause:percentencode}}"]
    assert urls["AUC gaps"] == [f"{base}#models"]
    board, page = urls["Coverage"]
    assert board.startswith(
        "/d/recsys-recommender?var-recommender=${__field.labels.recommender:percentencode}&"
    )
    assert page == "${monitor:raw}/recommenders/${__field.labels.recommender:percentencode}"


@EACH
def test_alerts_maintenance_and_changes_are_drawn_on_every_board(board: dict[str, Any]) -> None:
    drawn = {one["name"]: one for one in board["annotations"]["list"]}
    assert set(drawn) == {
        "Annotations & Alerts",
        "Alerts",
        "Maintenance",
        "New model",
        "New list",
        "Declared change",
        "New configuration",
    }
    for name, one in drawn.items():
        if name == "Annotations & Alerts":
            continue
        assert (one["datasource"], one["enable"]) == (SOURCE, True)
        assert mistakes(filled(one["expr"]), all_families()) == []
        # A gauge that holds a time is drawn at that time, which Grafana takes in milliseconds.
        assert one["useValueForTime"] == ("timestamp" in one["expr"]) == one["expr"].startswith("1000 * ")
        for label in re.findall(r"\{\{(\w+)\}\}", one["textFormat"] + one["titleFormat"]):
            assert re.search(rf"max by \([^)]*\b{label}\b", one["expr"]), label


def test_metrics_have_the_names_that_people_use() -> None:
    titles = {one.values[0]["title"] for one in PANELS}  # type: ignore[index]
    assert {"nDCG", "MAE", "RMSE", "AUC", "MRR (reciprocal rank)", "F-score"} <= titles
    assert set(NAMES) <= set(ALL_SPECS), "a name of a metric that is gone"
    for title in titles:
        assert not re.search(r"\b(Mae|mae|Rmse|rmse|Ndcg|ndcg|Auc|auc|mrr|Ctr|ctr|P value)\b|_", title), title
