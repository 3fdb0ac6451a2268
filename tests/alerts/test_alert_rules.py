from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.service.prometheus.families import all_families
from tests.promql import families_in, mistakes

ROOT = Path(__file__).resolve().parents[2]
RULES = sorted((ROOT / "rules" / "alerts").glob("*.yaml"))
TESTS = sorted((ROOT / "rules" / "alerts" / "tests").glob("*.yaml"))
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES_OF: dict[str, dict[str, dict[str, Any]]] = {
    path.stem: {
        rule["alert"]: rule
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
    }
    for path in RULES
}
ALERTS = {name: rule for rules in RULES_OF.values() for name, rule in rules.items()}
ABOUT_RULES = {*RULES_OF["rules"], *RULES_OF["burn"]}
ABOUT_MODELS = {*RULES_OF["models"]}
ABOUT_CAUSES = {"RecsysAnomaly", "RecsysAnomalySevere"}
ABOUT_THE_MONITOR = {
    "RecsysConfigReloadFailed", "RecsysHistoryErrors", "RecsysMonitorDown", "RecsysSeriesBudgetReached",
    "RecsysSpareMonitorDown", "RecsysWatchdog",
}  # fmt: skip
ABOUT_A_PAGE = {
    "RecsysDrift", "RecsysObjectiveViolated", "RecsysSliceObjectiveViolated", "RecsysZeroSum",
}  # fmt: skip


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which("promtool") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("promtool is missing; deploy/install-test-services installs it")
        pytest.skip("promtool is missing; deploy/install-test-services installs it")
    # Its tests take little memory: to collect garbage less often, and on one core, is a quarter less work.
    environment = {**os.environ, "GOGC": "800", "GOMAXPROCS": "1"}
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_prometheus_accepts_the_rules(path: Path) -> None:
    answer = promtool("check", "rules", path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "SUCCESS" in answer.stdout


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_every_file_of_rules_has_unit_tests_that_pass(path: Path) -> None:
    found = [one for one in TESTS if re.sub("_(hours|days)$", "", one.stem) == path.stem]
    assert found
    answer = promtool("test", "rules", *found)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_unit_test_with_a_wrong_expectation_is_noticed(tmp_path: Path) -> None:
    text = (ROOT / "rules" / "alerts" / "tests" / "bands.yaml").read_text(encoding="utf-8")
    wrong = yaml.safe_load(text.replace("12 series of", "13 series of"))
    wrong["rule_files"] = [str(RULES[0].parent / "bands.yaml")]
    wrong["tests"] = [one for one in wrong["tests"] if "13 series of" in str(one)][:1]
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(wrong), encoding="utf-8")
    answer = promtool("test", "rules", tmp_path / "wrong.yaml")
    assert answer.returncode != 0
    assert "RecsysAnomaly" in answer.stdout + answer.stderr


def test_every_alert_is_tested_while_it_fires_and_while_it_is_silent() -> None:
    firing, silent = set(), set()
    for path in TESTS:
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            for case in test["alert_rule_test"]:
                (firing if case.get("exp_alerts") else silent).add(case["alertname"])
    assert firing == set(ALERTS)
    assert silent == set(ALERTS)


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    pages = {path.stem for path in RUNBOOKS.glob("*.md")} - {"README"}
    assert pages == set(ALERTS) | {"RecsysDrill"}, "the drill has no rule: `recsys-monitor drill` sends it"


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_a_runbook_says_what_it_means_how_to_see_what_to_do_and_how_to_silence(name: str) -> None:
    page = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {name}\n")
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == [
        "What it means",
        "How to see it",
        "What to do",
        "How to silence it",
    ]
    words = {"page": "**Page.**", "ticket": "**Ticket.**", "none": "**For a machine.**"}
    assert words[ALERTS[name]["labels"]["severity"]] in page
    assert f"amtool silence add alertname={name}" in page
    assert len(page.splitlines()) < 60, "too long for 3 a.m."


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_a_runbook_names_only_families_and_pages_that_exist(name: str) -> None:
    page = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    for family in re.findall(r"\brecsys_[a-z_]+[a-z]\b", page):
        assert family in all_families(), family
    for link in re.findall(r"\]\(([^)]+\.md)\)", page):
        if "metrics/README.md" not in link:  # written with the metrics
            assert (RUNBOOKS / link).is_file(), link


def test_the_list_of_runbooks_has_every_alert_with_its_receiver() -> None:
    page = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \| ([a-z-]+) \|", page, re.MULTILINE))
    goes = {name: alert["labels"]["severity"].replace("none", "nobody") for name, alert in ALERTS.items()}
    assert listed == goes | {"RecsysWatchdog": "dead-man"}


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_an_alert_reads_only_families_and_labels_that_are_exported(name: str) -> None:
    assert mistakes(ALERTS[name]["expr"], all_families()) == []
    assert families_in(ALERTS[name]["expr"])


@pytest.mark.parametrize(
    ("expression", "mistake"),
    [
        ("recsys_no_such_thing > 0", "'recsys_no_such_thing' is no exported family"),
        ('recsys_pending_windows{rule="x"}', "recsys_pending_windows has no label rule"),
        ("max by (rule) (recsys_pending_windows)", "rule is no label of recsys_pending_windows"),
        (
            "max by (rule) (max by (recommender) (recsys_rule_window_violations))",
            "rule is no label of max by",
        ),
        (
            "recsys_rule_window_violations and on (log) recsys_log_files",
            "log is no label of recsys_rule_window_violations",
        ),
        ("increase(recsys_no_such_total[5m])", "'recsys_no_such_total' is no exported family"),
    ],
)
def test_a_family_or_label_that_is_not_exported_is_found(expression: str, mistake: str) -> None:
    assert any(mistake in found for found in mistakes(expression, all_families()))


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_the_texts_of_an_alert_use_only_labels_that_the_alert_has(name: str) -> None:
    alert = ALERTS[name]
    labels = {label for rule in (alert["expr"],) for group in re.findall(r"by \(([^)]*)\)", rule)
              for label in re.split(r",\s*", group)}  # fmt: skip
    if "up{" in alert["expr"]:
        labels |= {"job", "instance"}
    for text in (*alert["annotations"].values(), alert["labels"].get("owner", "")):
        used = set(re.findall(r"\$labels\.(\w+)", text))
        assert used <= labels, f"{used - labels} would be empty"
        for family in re.findall(r"\brecsys_[a-z_]+[a-z]\b", text):
            assert family == "recsys_docs" or family in all_families()


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_an_alert_carries_a_severity_a_summary_a_description_and_a_runbook(name: str) -> None:
    alert = ALERTS[name]
    assert re.fullmatch(r"Recsys([A-Z][a-z]+)+", name)
    assert set(alert["labels"]) == {"severity"} | (set() if name in ABOUT_THE_MONITOR else {"owner"})
    assert alert["labels"]["severity"] in ("page", "ticket", "none")
    offenders = {"offenders"} if name in ABOUT_RULES - {"RecsysRuleError", "RecsysRuleNotJudged"} else set()
    expected = (
        {"summary", "description", "dashboard", "runbook_url"}
        | offenders
        | ({"evidence"} if name in {*ABOUT_RULES, *ABOUT_MODELS, *ABOUT_CAUSES, *ABOUT_A_PAGE} else set())
    )
    assert set(alert["annotations"]) == expected
    runbook = alert["annotations"]["runbook_url"]
    assert runbook.startswith(
        f"{{{{ with $externalLabels.recsys_docs }}}}{{{{ . }}}}/docs/runbooks/{name}.md{{{{ else"
    )
    assert "recsys_web_info" in runbook
    assert runbook.endswith(f"/runbooks/{name}{{{{ end }}}}")


def test_all_links_to_evidence_are_built_in_the_same_way() -> None:
    ends = ((ABOUT_RULES, "/rules/"), (ABOUT_MODELS, "#models"), (ABOUT_CAUSES, "/anomalies/"))
    for about, end in ends:
        links = {alert["annotations"]["evidence"] for name, alert in ALERTS.items() if name in about}
        (place,) = {link.split("{{ end -}}")[1] for link in links}  # after the base, which is the monitor's
        assert end in place


@pytest.mark.parametrize(
    "name", sorted(name for name, one in ALERTS.items() if "evidence" in one["annotations"])
)
def test_the_base_of_a_link_to_evidence_is_that_of_a_monitor_that_has_the_series(name: str) -> None:
    link = ALERTS[name]["annotations"]["evidence"]
    ((written, count),) = re.findall(r'printf "((?:[^"\\]|\\.)*)"((?: \$labels\.\w+)+) \| query', link)
    expression = written.replace('\\"', '"').replace("%q", '"x"')
    assert written.count("%q") == len(count.split())
    assert expression.startswith("sort_desc(2 * recsys_web_info and on (job, instance) ")
    assert families_in(expression) > {"recsys_web_info", "recsys_recommender_error"}


def test_only_the_watchdog_and_inhibiting_alerts_are_neither_page_nor_ticket() -> None:
    neither = {name for name, alert in ALERTS.items() if alert["labels"]["severity"] == "none"}
    assert neither == {
        "RecsysWatchdog",
        "RecsysMaintenance",
        "RecsysFeedbackReturns",
        "RecsysLogReturns",
        "RecsysNotRecorded",
    }


@pytest.mark.parametrize("log", ["Feedback", "Log"])
def test_what_holds_back_after_a_silence_begins_with_the_alert_about_the_silence(log: str) -> None:
    stalled, returns = ALERTS[f"Recsys{log}Stalled"], ALERTS[f"Recsys{log}Returns"]
    assert (returns["expr"], returns.get("for")) == (stalled["expr"], stalled.get("for"))
