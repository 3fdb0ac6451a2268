"""Whom an alert goes to, what it names, and where it links: as /metrics says it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from monitor.core.results import Kind, Status
from monitor.history.snapshot import RecommenderState, RuleInfo, Series, Snapshot, Violation
from monitor.report import problems
from monitor.rules.evidence import readable_rows
from tests.service.made import LAST, NOW, rule, series
from tests.service.prometheus.scrapes import find, samples, scrape

ROWS = (
    *({"item_id": "b7", "scene": "home", "user_id": "u1"} for _ in range(4)),
    *({"item_id": "b9", "scene": None} for _ in range(3)),
    {"item_id": "a\nb"},
    {"item_id": "c"},
    {"item_id": None, "scene": ""},
)


def violated(**fields: object) -> Series:
    result = rule("blacklist", status=Status.VIOLATED, value=0.1, violations=9, evidence=ROWS)
    made = series(replace(result, evidence=()), check="rules")
    return replace(made, **{"violation": Violation(LAST, result), **fields})


def shop(*shown: Series, owner: str = "search", of_rule: str = "trust") -> Snapshot:
    info = RuleInfo("blacklist", Kind.HARD, owner=of_rule)
    return Snapshot(NOW, (RecommenderState("shop", owner=owner, series=shown, rules=(info,)),))


def offenders(snapshot: Snapshot) -> dict[tuple[str, str], float]:
    return {
        (dict(labels)["column"], dict(labels)["value"]): value
        for (name, labels), value in samples(scrape(snapshot)).items()
        if name == "recsys_rule_offender_rows"
    }


def test_a_recommender_and_its_rules_have_an_owner() -> None:
    text = scrape(shop())
    assert find(text, "recsys_recommender_info", recommender="shop", owned_by="search") == 1
    blacklist = {"recommender": "shop", "rule": "blacklist", "kind": "hard"}
    assert find(text, "recsys_rule_info", owned_by="trust", **blacklist) == 1


def test_the_three_most_frequent_values_of_the_evidence_are_exported_and_no_user() -> None:
    assert offenders(shop(violated())) == {
        ("item_id", "b7"): 4,
        ("item_id", "b9"): 3,
        ("item_id", "a[LF]b"): 1,
        ("scene", "home"): 4,
    }


def test_a_long_value_is_not_said_to_be_as_long_as_the_evidence_keeps_it() -> None:
    kept = readable_rows([{"item_id": "x" * 9999}], salt=None)
    result = rule("blacklist", status=Status.VIOLATED, value=0.1, violations=9, evidence=kept)
    (value,) = (value for _, value in offenders(shop(violated(violation=Violation(LAST, result)))))
    assert value == 60 * "x" + "…"
    (item,) = problems.offenders(kept, {})
    assert item.values == ((value, "1 of 1"),)


def test_offenders_outlive_the_verdict_for_a_day_and_are_left_out_in_maintenance() -> None:
    passed = violated(standing=Status.OK)
    assert len(offenders(shop(passed))) == 4
    day = timedelta(days=1)
    assert not offenders(replace(shop(passed), taken_at=LAST.end + day + timedelta(seconds=1)))
    assert not offenders(shop(violated(standing=Status.VIOLATED, excused=True)))
    assert not offenders(shop(series(rule("blacklist", value=0.0, violations=0), check="rules")))


def test_the_address_of_grafana_is_exported_if_it_is_set() -> None:
    assert "recsys_dashboards_info" not in scrape(shop())
    text = scrape(shop(), grafana_url="https://grafana.test")
    assert find(text, "recsys_dashboards_info", url="https://grafana.test") == 1
