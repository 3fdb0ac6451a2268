"""Verdicts: kept line by line, and given to what an incident is compared with first."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.jobs import Job
from benchmarks.scoreboard.messages import Message
from benchmarks.scoreboard.series import Key, Recorded
from benchmarks.scoreboard.verdicts import Verdict, Verdicts
from benchmarks.scoreboard.worlds import Plan
from monitor.simulate.world import World
from tests.conftest import need

PLAN = Plan(World(), timedelta(days=3), (timedelta(days=2),))
HEALTHY, RESTART = Job(PLAN), Job(PLAN, hours=4)
BLACKLIST = Job(PLAN, "blacklist", "small")
LINE = {
    "rules": "a",
    "name": "blacklist-small-seed-1",
    "messages": [{"moment": 90, "receiver": "page", "group": [["recommender", "x"]], "told": [[["a", "A"]]]}],
    "episodes": [{"labels": {"alertname": "A"}, "since": 60, "until": None}],
    "ordinary": ["B"],
}


def test_verdicts_belong_to_the_rules_that_gave_them(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(LINE | {"name": "healthy-seed-1"})[:40], "utf-8")
    known = Verdicts(path, "a")
    assert known[BLACKLIST] == Verdict(
        "blacklist-small-seed-1",
        (Episode({"alertname": "A"}, 60, None),),
        (Message(90, "page", (("recommender", "x"),), ((("a", "A"),),)),),
        frozenset({"B"}),
    )
    assert Job(PLAN) not in known  # its line was cut off
    assert BLACKLIST not in Verdicts(path, "b")
    assert list(known.judge([BLACKLIST], tmp_path)) == []


def violated(rule: str, minute: int) -> tuple[Key, int]:
    labels = (("recommender", "shop"), ("rule", rule), ("kind", "hard"), ("status", "violated"))
    return ("recsys_rule_status", labels), minute


def record(job: Job, work: Path, *rules: tuple[Key, int]) -> None:
    """A run in which these rules are violated from a minute on."""
    recorded, start = Recorded(), int(PLAN.moments[0].timestamp()) // 60
    for minute in sorted({minute for _, minute in rules} | {-200}):
        recorded.take(start + minute, {key: 1.0 for key, since in rules if since <= minute})
    recorded.write(job.series(work))
    job.fork(work).mkdir(exist_ok=True)
    Recorded().write(job.fork(work) / "series.parquet")


def test_alerts_that_fire_without_the_incident_are_ordinary(tmp_path: Path) -> None:
    for program in ("prometheus", "promtool", "prometheus-alertmanager"):
        need(program, "prometheus")
    path = tmp_path / "verdicts.jsonl"
    record(HEALTHY, tmp_path, violated("lists", 20))
    record(BLACKLIST, tmp_path, violated("order", -60), violated("lists", 30), violated("blacklist", 76))
    verdicts = Verdicts(path, "a")
    assert list(verdicts.judge([BLACKLIST, HEALTHY], tmp_path)) == [(HEALTHY, ""), (BLACKLIST, "")]
    healthy, incident = verdicts[HEALTHY], verdicts[BLACKLIST]
    assert healthy.ordinary == frozenset()
    assert incident.ordinary == {f"RecsysHardRuleViolated (rule={rule})" for rule in ("lists", "order")}
    # What stands already has its group, which looks every five minutes: so is the incident told of.
    first, *_, last = incident.messages
    assert [dict(labels)["rule"] for labels in first.told] == ["order"]
    assert last.moment == PLAN.moments[0].timestamp() + 80 * 60 + 30
    assert [dict(labels)["rule"] for labels in last.told] == ["blacklist"]
    kept = Verdicts(path, "a")
    assert [kept[HEALTHY], kept[BLACKLIST]] == [healthy, incident]


def test_a_run_that_cannot_be_judged_has_a_reason_and_others_are_judged(tmp_path: Path) -> None:
    for program in ("prometheus", "promtool", "prometheus-alertmanager"):
        need(program, "prometheus")
    other = Job(Plan(World(seed=2), PLAN.lasts, PLAN.strikes))
    record(other, tmp_path)
    HEALTHY.series(tmp_path).write_text("no parquet")
    record(BLACKLIST, tmp_path, violated("blacklist", 76))
    verdicts = Verdicts(tmp_path / "verdicts.jsonl", "a")
    judged = verdicts.judge([HEALTHY, other, BLACKLIST], tmp_path, at_once=2)
    (first, why), second, (third, without) = judged
    assert (first, second, third) == (HEALTHY, (other, ""), BLACKLIST)
    assert why.startswith("ArrowInvalid: ")
    assert without == "LookupError: there is no verdict of healthy-seed-1 to compare it with"
    assert other in verdicts
    assert BLACKLIST not in verdicts


def test_more_than_one_batch_at_once_gives_each_run_its_own_verdict(tmp_path: Path) -> None:
    for program in ("prometheus", "promtool", "prometheus-alertmanager"):
        need(program, "prometheus")
    worlds = [Job(Plan(World(seed=seed), PLAN.lasts, PLAN.strikes)) for seed in range(4)]
    for job in worlds:
        record(job, tmp_path, violated(f"rule-{job.plan.world.seed}", 20))
    verdicts = Verdicts(tmp_path / "verdicts.jsonl", "a")
    assert list(verdicts.judge(worlds, tmp_path, at_once=2)) == [(job, "") for job in worlds]
    for job in worlds:
        assert {one.labels["rule"] for one in verdicts[job].episodes} == {f"rule-{job.plan.world.seed}"}
