"""What the API says: the same as the pages and `check --format json`, behind the same passwords."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

import bcrypt
import httpx
import pytest

from monitor.core.results import Kind, Result, Status
from monitor.history.counters import RULE_VIOLATIONS, UNDEFINED, key
from monitor.history.read_snapshot import read_snapshot
from monitor.history.snapshot import RecommenderState, RuleInfo, Snapshot
from monitor.history.store import Store
from monitor.report.page import RecommenderView
from monitor.report.result_json import result_as_json
from monitor.service.web.api.badge import drawn
from tests.service.made import NASTY
from tests.service.web.api.judged_shop import LAST, JudgedShop
from tests.service.web.api.recorded import NOON, SHOP, Recorded, measured, recorded
from tests.service.web.test_app import client


def test_a_result_has_the_keys_and_values_of_check_format_json(
    api: httpx.Client, judged_shop: JudgedShop
) -> None:
    store = judged_shop.daemon.store
    start, end = LAST, LAST.replace(hour=LAST.hour + 1)
    stored = [
        result_as_json(one.recommender, one.check, one.window, one.result)
        for one in store.results(recommenders=["shop"], start=start, end=end)
    ]
    asked = {"window_start": start.isoformat(), "window_end": end.isoformat(), "limit": 50}
    found = Recorded(api, store).every(f"{SHOP}/results", **asked)
    assert {"violations" in one for one in found} == {"evidence" in one for one in found} == {True, False}

    def shown(rows: list[dict]) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in rows)

    assert shown(found) == shown(stored)


def test_the_last_window_is_that_of_each_check(api: httpx.Client, judged_shop: JudgedShop) -> None:
    (state,) = [one for one in judged_shop.daemon.publisher.current().recommenders if one.name == "shop"]
    found = Recorded(api, judged_shop.daemon.store).every(f"{SHOP}/results")
    assert len(found) == len(state.series)
    assert {one["check"] for one in found} >= {"rules", "exposure", "feedback", "models", "bands", "health"}


def test_the_state_is_that_of_the_page(api: httpx.Client, judged_shop: JudgedShop) -> None:
    snapshot = judged_shop.daemon.publisher.current()
    rows = {row["name"]: row for row in api.get("/api/v1/recommenders").json()["data"]}
    for state in snapshot.recommenders:
        view = RecommenderView(state, snapshot, judged_shop.now)
        row = rows[state.name]
        assert row["status"] == view.verdict.key
        attention = [*row["violated"], *row["unjudged"]]
        shown = {problem.since.iso for problem in view.problems if problem.since}
        assert shown <= {one["since"] for one in attention}
        assert bool(shown) == bool(attention)
    assert {one["what"] for one in rows["shop"]["violated"]} >= {
        "rule blacklist",
        "anomaly lists_empty",
        "failure by=pv",
        "AUC test minus online of model ranker-v7",
    }
    assert rows["news"]["error"].startswith("no file matches")
    assert rows["shop"]["health"]["value"] == pytest.approx(0.3, abs=0.2)


def test_every_link_to_evidence_leads_to_rows_and_every_page_exists(
    api: httpx.Client, judged_shop: JudgedShop
) -> None:
    real = Recorded(api, judged_shop.daemon.store)
    rows = [
        *api.get("/api/v1/recommenders").json()["data"][1]["violated"],
        *real.every(f"{SHOP}/violations"),
        *real.every(f"{SHOP}/anomalies"),
        *real.every(f"{SHOP}/rules"),
        *real.every(f"{SHOP}/series", kind="cause"),
    ]
    assert len(rows) > 20
    with_evidence = [row for row in rows if row.get("evidence_url")]
    assert {row["kind"] for row in with_evidence} == {"rule", "anomaly"}
    for row in with_evidence:
        (result,) = real.follow(row["evidence_url"])
        assert result["evidence"]
    for url in {row["page_url"] for row in rows}:
        assert url.startswith("https://monitor.test/recommenders/shop")
        page = api.get(urlsplit(url).path)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for row in real.every(f"{SHOP}/windows", limit=5)[:3]:
        assert {one["window_start"] for one in real.follow(row["results_url"])} == {row["window_start"]}
    for row in real.every(f"{SHOP}/series", metric="failure"):
        assert {one["metric"] for one in real.follow(row["history_url"])} == {"failure"}


def test_an_anomaly_has_its_sentence_and_the_series_behind_it(api: httpx.Client) -> None:
    one = api.get(f"{SHOP}/anomalies/lists_empty").json()
    assert one["standing"] == "violated"
    assert one["sentence"].startswith(one["meaning"])
    assert one["runbook"].endswith("/runbooks/causes/lists_empty")
    assert api.get(urlsplit(one["runbook"]).path).status_code == 200
    assert one["severity"] > 0.5
    assert {"failure"} <= {row["metric"] for row in one["result"]["evidence"]}


def test_slices_can_be_left_out_or_be_all_that_is_shown(api: httpx.Client) -> None:
    address, asked = f"{SHOP}/series/failure", {"label": "by=pv", "limit": 1000}
    every = api.get(address, params=asked).json()["data"]
    whole = api.get(address, params={**asked, "sliced": "false"}).json()["data"]
    slices = api.get(address, params={**asked, "sliced": "true"}).json()["data"]
    assert {repr(row["labels"]) for row in whole} == {"{'by': 'pv'}"}
    assert {"dimension" in row["labels"] for row in slices} == {True}
    assert len(whole) + len(slices) == len(every)


def test_changes_are_those_of_the_config_and_of_the_history(api: httpx.Client) -> None:
    rows = api.get(f"{SHOP}/changes").json()["data"]
    assert {row["kind"]: row["at"] for row in rows} == {
        "declared": "2026-03-01T10:00:00Z",
        "maintenance": "2026-03-02T05:30:00Z",
        "model": "2026-03-02T20:00:00Z",
        "season": "2026-12-20T00:00:00Z",
    }
    within = {"from": "2026-03-02T06:00:00Z", "to": "2026-03-02T10:00:00Z"}
    assert [row["kind"] for row in api.get(f"{SHOP}/changes", params=within).json()["data"]] == [
        "maintenance"
    ]


def test_rules_show_what_they_ask_of_which_table(api: httpx.Client) -> None:
    rule = api.get(f"{SHOP}/rules/positions").json()
    assert (rule["expectation"], rule["table"], rule["threshold"]) == (
        "expect_column_values_to_be_between",
        "exposures",
        0.0,
    )
    assert rule["arguments"] == {"column": "position", "min_value": 1, "max_value": 2}
    banned = api.get(f"{SHOP}/rules/blacklist").json()
    assert (banned["pack"], banned["standing"], banned["severity"]) == ("blacklist", "violated", "critical")
    assert banned["violations_total"] >= 3


def test_experiments_have_their_arms_and_models_their_gaps(api: httpx.Client) -> None:
    experiment = api.get(f"{SHOP}/experiments/ranking").json()
    assert [(one["arm"], one["share"], one["is_control"]) for one in experiment["arms"]] == [
        ("control", 0.25, True),
        ("new", 0.75, False),
    ]
    assert {one["labels"]["experiment"] for one in experiment["results"]} == {"ranking"}
    model = api.get(f"{SHOP}/models/ranker-v7").json()
    gaps = {gap["pair"]: gap for gap in model["gaps"]}
    assert gaps["test_online"]["standing"] == model["status"] == "violated"
    assert "serving_skew" in {one["labels"]["cause"] for one in gaps["test_online"]["causes"]}


def test_the_badge_is_a_picture_with_the_state_that_other_sites_may_show(api: httpx.Client) -> None:
    answer = api.get(f"{SHOP}/badge.svg")
    root = ElementTree.fromstring(answer.text)
    count = sum(
        one["standing"] == "violated" for one in api.get("/api/v1/recommenders").json()["data"][1]["violated"]
    )
    assert root.attrib["aria-label"] == f"shop: violated ({count})"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert api.get(f"{SHOP}/status").headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("text", [*NASTY, '" onload="x', "]]>&amp;", "￾\x0b"])
def test_a_badge_of_any_text_is_well_formed(text: str) -> None:
    root = ElementTree.fromstring(drawn(text, "ok", "#000"))
    assert {one.tag.rsplit("}", 1)[1] for one in root.iter()} == {"svg", "title", "rect", "path", "g", "text"}
    assert set(root.attrib) == {"width", "height", "role", "aria-label"}


@pytest.mark.parametrize("status", Status)
def test_the_status_says_each_state_in_words(status: Status, tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.sqlite") as store, recorded(store) as shop:
        objective = {"threshold": 0.5, "bound": "max"}
        one = measured("failure", 0.7, by="pv")
        shop.record(0, type(one)(metric="failure", labels={"by": "pv"}, status=status, definition="1",
                                 value=0.7 if status is Status.VIOLATED else 0.1, **objective))  # fmt: skip
        answer = shop.web.get(f"{SHOP}/status").json()
    word = status.value.replace("_", " ")
    if status is Status.UNDEFINED:  # it does not count
        assert answer["status"] == "no_data"
        return
    assert answer["status"] == status.value
    assert answer["text"].startswith(f"shop: {word}")
    assert ("failure by=pv" in answer["text"]) == (status is not Status.OK)
    assert (answer["violated"], answer["unjudged"]) == {
        Status.VIOLATED: (1, 0),
        Status.OK: (0, 0),
    }.get(status, (0, 1))


def test_the_counters_are_those_of_metrics(tmp_path: Path) -> None:
    """Not of rules that left the config or changed their kind, of older versions, or 0 without a meaning."""
    rule = RuleInfo("blacklist", Kind.HARD)
    counters = {
        key(name, {"recommender": "shop", **labels}): value
        for name, labels, value in (
            (
                RULE_VIOLATIONS,
                {"rule": "blacklist", "kind": "hard"},
                0.0,
            ),  # never violated
            (RULE_VIOLATIONS, {"rule": "blacklist", "kind": "soft"}, 3.0),
            (RULE_VIOLATIONS, {"rule": "gone", "kind": "hard"}, 7.0),
            (UNDEFINED, {"metric": "coverage"}, 0.0),
            (UNDEFINED, {"metric": "failure"}, 2.0),
            ("recsys_of_an_older_version_total", {}, 1.0),
        )
    }
    other = {key(RULE_VIOLATIONS, {"recommender": "other", "rule": "blacklist", "kind": "hard"}): 5.0}
    state = RecommenderState("shop", rules=(rule,))
    with Store.open(tmp_path / "h.sqlite") as store:
        with client(Snapshot(NOON, (state,), counters=counters | other), store=store) as web:
            shown = web.get(SHOP).json()["counters"]
        unknown = replace(state, rules=(), error="its rules cannot be read")
        with client(Snapshot(NOON, (unknown,), counters=counters | other), store=store) as web:
            all_rules = web.get(SHOP).json()["counters"]
    assert [(one["name"], one["value"]) for one in shown] == [(RULE_VIOLATIONS, 0), (UNDEFINED, 2)]
    assert [one["value"] for one in all_rules] == [0, 7, 3, 2]


def test_the_sentence_of_the_status_names_only_what_has_this_status(tmp_path: Path) -> None:
    bounded = partial(Result, definition="1", threshold=0.5, bound="max")
    empty = bounded(metric="coverage", status=Status.NO_DATA)
    failed = bounded(metric="failure", status=Status.ERROR, detail="it broke")
    with Store.open(tmp_path / "h.sqlite") as store, recorded(store) as shop:
        shop.record(0, empty, replace(failed, status=Status.OK, value=0.1))
        shop.record(1, empty, failed)
        answer = shop.web.get(f"{SHOP}/status").json()
        state = read_snapshot(store, ["shop"], NOON).recommenders[0]
    assert answer["text"] == "shop: error since 2026-01-01 01:00 UTC: failure."
    assert (answer["violated"], answer["unjudged"]) == (0, 2)

    without = tuple(one for one in state.series if one.standing is not Status.ERROR)
    stuck = replace(state, series=without, error="no file matches /logs")
    with client(Snapshot(NOON, (stuck,)), store=store) as web:
        assert web.get(f"{SHOP}/status").json()["text"] == "shop: error: no file matches /logs."


def test_the_api_asks_for_the_password_of_the_pages(judged_shop: JudgedShop, tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    path = tmp_path / "web.yaml"
    path.write_text(f"basic_auth_users: {{alice: {hashed}}}")
    with judged_shop.serving(web_config=path) as web:
        for address in ("/api/v1/recommenders", "/api/v1/openapi.json", f"{SHOP}/badge.svg", "/api/v1/x"):
            refused = web.get(address)
            assert (refused.status_code, refused.text) == (401, "Unauthorized\n")
            assert web.get(address, auth=("alice", "wrong")).status_code == 401
        assert web.get("/api/v1/recommenders", auth=("alice", "secret")).status_code == 200


def test_a_history_that_is_down_is_a_503_and_the_last_state_is_still_shown(
    api: httpx.Client, judged_shop: JudgedShop
) -> None:
    folder = judged_shop.folder / "state"
    away = folder / "away"
    away.mkdir()
    names = [path.name for path in folder.glob("history.sqlite*")]
    for name in names:
        (folder / name).rename(away / name)
    try:
        answer = api.get(f"{SHOP}/windows")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert "was moved or deleted" in answer.json()["detail"]
        assert api.get(f"{SHOP}/status").json()["status"] == "violated"
    finally:
        for name in names:
            (away / name).rename(folder / name)
        away.rmdir()
    assert api.get(f"{SHOP}/windows").status_code == 200


def test_a_failure_inside_is_a_500_that_tells_nothing_of_the_inside(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("monitor.service.web.api.recommenders.attention_of", fails)
    answer = api.get(f"{SHOP}/status")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "hunter2" not in answer.text
    assert api.get("/-/healthy").status_code == 200  # by now the failure is in the log
    assert f"GET {SHOP}/status failed" in caplog.messages


def test_without_a_history_there_is_no_api_and_the_pages_remain(tmp_path: Path) -> None:
    with client() as web:
        assert web.get("/api/v1/recommenders").status_code == 404
        assert web.get("/").status_code == 200
