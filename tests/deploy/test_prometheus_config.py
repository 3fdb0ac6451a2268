from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ALERTS = [
    (rule["alert"], rule["labels"]["severity"])
    for path in sorted((ROOT / "rules" / "alerts").glob("*.yaml"))
    for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
INHIBITIONS = yaml.safe_load((DEPLOY / "alertmanager.yml").read_text(encoding="utf-8"))["inhibit_rules"]


def tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which(name) is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{name} is missing; deploy/install-test-services installs it")
        pytest.skip(f"{name} is missing; deploy/install-test-services installs it")
    return subprocess.run([name, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_prometheus_accepts_its_configuration_and_finds_all_files_of_rules() -> None:
    answer = tool("promtool", "check", "config", DEPLOY / "prometheus.yml")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    files = len(list((ROOT / "rules" / "alerts").glob("*.yaml")))
    assert f"{files} rule files found" in answer.stdout


def test_the_rules_are_found_in_the_container_as_in_the_repository(tmp_path: Path) -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    for volume in compose["services"]["prometheus"]["volumes"]:
        source, target = volume.split(":")[:2]
        if source.startswith("./"):
            place = tmp_path / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, place)
    command = compose["services"]["prometheus"]["command"]
    config = next(word for word in command if word.startswith("--config.file=")).partition("=")[2]
    answer = tool("promtool", "check", "config", tmp_path / config.lstrip("/"))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "rule files found" in answer.stdout


def test_the_label_for_links_never_reaches_an_alert() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    drop = {"action": "labeldrop", "regex": "recsys_docs"}
    assert drop in config["alerting"]["alert_relabel_configs"]


def test_the_job_that_the_alerts_ask_for_is_scraped() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    assert "recsys-monitor" in {job["job_name"] for job in config["scrape_configs"]}
    assert 'up{job="recsys-monitor"}' in (ROOT / "rules" / "alerts" / "monitor.yaml").read_text(
        encoding="utf-8"
    )


def test_alertmanager_accepts_its_configuration() -> None:
    answer = tool("amtool", "check-config", DEPLOY / "alertmanager.yml")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "SUCCESS" in answer.stdout


@pytest.mark.parametrize(("alert", "severity"), ALERTS)
def test_every_alert_reaches_the_receiver_of_its_severity(alert: str, severity: str) -> None:
    receiver = {"page": "page", "ticket": "ticket", "none": "nobody"}[severity]
    if alert == "RecsysWatchdog":
        receiver = "dead-man"
    answer = tool(
        "amtool", "config", "routes", "test", f"--config.file={DEPLOY / 'alertmanager.yml'}",
        f"--verify.receivers={receiver}", f"alertname={alert}", f"severity={severity}", "recommender=shop",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_an_unknown_alert_becomes_a_ticket() -> None:
    answer = tool(
        "amtool", "config", "routes", "test", f"--config.file={DEPLOY / 'alertmanager.yml'}",
        "--verify.receivers=ticket", "alertname=SomethingElse",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_wrong_receiver_is_noticed() -> None:
    answer = tool(
        "amtool", "config", "routes", "test", f"--config.file={DEPLOY / 'alertmanager.yml'}",
        "--verify.receivers=ticket", "alertname=RecsysHardRuleViolated", "severity=page",
    )  # fmt: skip
    assert answer.returncode != 0


def written(matchers: list[str]) -> dict[str, tuple[str, str]]:
    """Label -> operator and value."""
    found = [re.fullmatch(r'(\w+) (=|!=|=~|!~) "(.*)"', one) for one in matchers]
    return {one[1]: (one[2], one[3]) for one in found if one}


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: rule["source_matchers"][0])
def test_an_inhibition_names_alerts_that_exist_and_only_maintenance_holds_back_a_violated_rule(
    rule: dict[str, list[str]],
) -> None:
    known = {name for name, _ in ALERTS} | {"RecsysDrill"}
    source, target = written(rule["source_matchers"]), written(rule["target_matchers"])
    assert len(target) == len(rule["target_matchers"])
    named = {name for side in (source, target) for name in side.get("alertname", ("", ""))[1].split("|")}
    assert named - {"", "Recsys.+"} <= known
    holds_tickets_alone = target.get("severity") == ("=", "ticket")
    if source.get("alertname") == ("=", "RecsysMaintenance"):
        spared = {"RecsysMaintenance", "RecsysWatchdog", "RecsysMonitorDown"}
        assert target["alertname"][0] == "!~"
        assert set(target["alertname"][1].split("|")) == spared
    elif not holds_tickets_alone:
        operator, names = target["alertname"]
        assert operator in ("=", "=~")
        assert not re.fullmatch(names, "RecsysHardRuleViolated")
    pages = [name for name, severity in ALERTS if severity == "page"]
    if not holds_tickets_alone and any(re.fullmatch(target["alertname"][1], name) for name in pages):
        assert {"recommender", "instance"} & set(rule["equal"]), "of the same recommender or monitor alone"


def test_alerts_that_inhibit_by_recommender_have_a_recommender_label() -> None:
    for rule in INHIBITIONS:
        source = written(rule["source_matchers"])
        if rule.get("equal") == ["recommender"] and "alertname" not in source:
            assert source["recommender"] == ("!=", "")


def test_the_addresses_in_the_repository_deliver_nothing_to_anybody() -> None:
    config = yaml.safe_load((DEPLOY / "alertmanager.yml").read_text(encoding="utf-8"))
    urls = [hook["url"] for receiver in config["receivers"] for hook in receiver.get("webhook_configs", ())]
    assert urls == ["http://page.invalid/", "http://ticket.invalid/", "http://dead-man.invalid/"]
