"""Pages of rows, entity tags and hostile labels, on histories that the tests record themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import encodable
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.history.store import Store
from monitor.service.web.api.endpoints import ENDPOINTS
from monitor.service.web.api.paging import page_of
from monitor.service.web.api.parameters import Paging
from monitor.settings.recommender import RecommenderSettings
from tests.history.recording import rule
from tests.service.made import NASTY
from tests.service.web.api.judged_shop import JudgedShop
from tests.service.web.api.recorded import NOON, SHOP, Recorded, keys, measured, recorded
from tests.service.web.test_app import client

PAGED = [one for one in ENDPOINTS if issubclass(one.query, Paging)]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Recorded]:
    with Store.open(tmp_path / "history.sqlite") as store, recorded(store) as made:
        yield made


@given(st.sets(st.tuples(st.integers(-9, 9), st.text(max_size=3))), st.integers(1, 8), st.booleans())
def test_pages_in_memory_hold_every_row_once_and_in_order(rows, limit, newest_first) -> None:
    found: list[Any] = []
    cursor = None
    while True:
        asked = Paging(limit=limit, cursor=cursor)
        page = page_of(rows, asked, key=lambda row: row, shown=lambda row: row, newest_first=newest_first)
        found += page.data
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == sorted(rows, reverse=newest_first)


@pytest.mark.parametrize("endpoint", PAGED, ids=lambda one: one.path)
def test_pages_of_any_size_hold_every_row_of_the_real_history_once(
    api: httpx.Client, judged_shop: JudgedShop, endpoint
) -> None:
    address = "/api/v1" + endpoint.path.format(recommender="shop", metric="failure")
    real = Recorded(api, judged_shop.daemon.store)
    whole = real.every(address, limit=1000)
    assert len(set(keys(whole))) == len(whole) > 0
    for limit in (1, 7) if len(whole) < 150 else (13, 100):
        assert real.every(address, limit=limit) == whole, limit


def test_a_window_recorded_between_two_pages_repeats_no_row_and_hides_none(shop: Recorded) -> None:
    for number in range(6):
        shop.record(number, measured("gini", 0.5, by="b"), measured("gini", 0.5, by="d"))
    for address in (f"{SHOP}/windows", f"{SHOP}/series/gini"):
        before = shop.every(address)
        first = shop.web.get(address, params={"limit": 1}).json()
        shop.record(10 + len(before), measured("gini", 0.7, by="b"), measured("gini", 0.7, by="d"))
        rows = [*first["data"], *shop.every(address, limit=1, cursor=first["next_cursor"])]
        assert len(set(keys(rows))) == len(rows)
        assert rows[: len(before)] == before
    first = shop.web.get(f"{SHOP}/series", params={"limit": 1}).json()
    everything = [measured("gini", 0.7, by=name) for name in "abcde"]
    shop.record(99, *everything)  # series before, between and after those of the first page
    rows = [*first["data"], *shop.every(f"{SHOP}/series", limit=1, cursor=first["next_cursor"])]
    assert [row["labels"]["by"] for row in rows] == ["b", "c", "d", "e"]


def test_the_tag_of_every_answer_on_windows_changes_with_a_new_window_and_not_before(shop: Recorded) -> None:
    shop.record(0, rule("a", 0), measured("gini", 0.5), check="rules")
    addresses = [
        "",
        "/status",
        "/results",
        "/series",
        "/series/gini",
        "/windows",
        "/violations",
        "/badge.svg",
    ]

    def tags() -> dict[str, str]:
        return {one: shop.web.get(SHOP + one).headers["etag"] for one in addresses}

    first = tags()
    assert tags() == first
    shop.record(0, rule("a", 0), measured("gini", 0.5), check="rules")  # judged again, the same
    assert tags() == first
    shop.record(1, rule("a", 3), measured("gini", 0.6), check="rules")
    second = tags()
    assert {one for one in addresses if first[one] == second[one]} == set()
    for one in addresses:
        stale = shop.web.get(SHOP + one, headers={"If-None-Match": first[one]})
        fresh = shop.web.get(SHOP + one, headers={"If-None-Match": second[one]})
        assert (stale.status_code, fresh.status_code) == (200, 304)


def test_a_violation_is_open_then_resolved_and_its_link_leads_to_the_evidence(shop: Recorded) -> None:
    for number, violations in enumerate([0, 2, 3, 0]):
        shop.record(number, rule("a", violations), rule("b", violations if number < 2 else 1))
    rows = {row["labels"]["rule"]: row for row in shop.every(f"{SHOP}/violations")}
    assert {name: row["state"] for name, row in rows.items()} == {"a": "resolved", "b": "open"}
    first = rows["a"]
    assert (first["since"], first["until"], first["windows"]) == (
        "2026-01-01T01:00:00Z",
        "2026-01-01T03:00:00Z",
        2,
    )
    assert "evidence" not in first["result"]
    (result,) = shop.follow(first["evidence_url"])
    assert result["window_start"] == "2026-01-01T02:00:00Z"
    assert result["evidence"] == [{"item_id": f"i{n}", "place": n} for n in range(3)]
    assert {key: value for key, value in result.items() if key != "evidence"} == first["result"]
    assert first["page_url"] == "https://monitor.test/recommenders/shop/rules/a"
    for state, names in {"open": ["b"], "resolved": ["a"], "gone": []}.items():
        found = shop.every(f"{SHOP}/violations", state=state)
        assert [row["labels"]["rule"] for row in found] == names
    shop.record(4, rule("a", 0))
    (gone,) = shop.every(f"{SHOP}/violations", state="gone")
    assert (gone["labels"]["rule"], gone["until"]) == ("b", None)


@pytest.mark.parametrize(
    ("begin", "end", "rules"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", []),
        ("2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z", ["a"]),
        ("2026-01-01T03:00:00Z", "2026-01-01T04:00:00Z", ["b"]),
        ("2026-01-01T02:00:00Z", "2026-01-01T04:00:00Z", ["b", "a"]),
        ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", ["b"]),
    ],
)
def test_violations_of_a_span_are_those_that_lasted_in_it(shop: Recorded, begin, end, rules) -> None:
    for number, (first, second) in enumerate([(0, 0), (1, 0), (1, 0), (0, 1)]):
        shop.record(number, rule("a", first), rule("b", second))
    found = shop.every(f"{SHOP}/violations", **{"from": begin, "to": end})
    assert [row["labels"]["rule"] for row in found] == rules


def test_a_series_has_its_violations_in_the_span_on_every_page(shop: Recorded) -> None:
    for number, (first, second) in enumerate([(1, 0), (0, 0), (0, 2), (0, 2), (0, 0), (1, 0)]):
        shop.record(number, rule("a", first), rule("b", second))
    asked = {"label": "rule=b", "limit": 1}
    page = shop.web.get(f"{SHOP}/series/rule", params=asked).json()
    span = {"since": "2026-01-01T02:00:00Z", "until": "2026-01-01T04:00:00Z", "windows": 2}
    assert page["violations"] == [{"check": "rules", "labels": {"rule": "b", "kind": "hard"}, **span}]
    second = shop.web.get(f"{SHOP}/series/rule", params={**asked, "cursor": page["next_cursor"]}).json()
    assert second["violations"] == page["violations"]
    late = shop.web.get(f"{SHOP}/series/rule", params={"from": "2026-01-01T04:00:00Z"}).json()
    assert [(one["labels"]["rule"], one["until"]) for one in late["violations"]] == [("a", None)]


def test_the_links_of_a_series_lead_to_it_alone_and_not_to_its_slices(shop: Recorded) -> None:
    home = {"dimension": "scene", "value": "home"}
    banned = rule("banned", 2)
    sliced = replace(banned, labels={**banned.labels, **home})
    shop.record(0, banned, sliced)
    shop.record(0, measured("gini", 0.5), measured("gini", 0.6, **home), check="exposure")
    for series in shop.every(f"{SHOP}/series"):
        (point,) = shop.follow(series["history_url"])
        assert point["labels"] == series["labels"]
    violations = shop.every(f"{SHOP}/violations")
    assert len(violations) == 2
    for violation in violations:
        (result,) = shop.follow(violation["evidence_url"])
        assert result["labels"] == violation["labels"]


def test_changes_of_one_time_and_text_are_all_on_some_page(tmp_path: Path) -> None:
    declared = [{"at": NOON, "what": "new model", "metrics": [one]} for one in ("auc", "gini", "coverage")]
    given = {"name": "shop", "logs": {"exposures": {"path": str(tmp_path)}}, "bands": {"changes": declared}}
    state = RecommenderState("shop", settings=RecommenderSettings.model_validate(given))
    with (
        Store.open(tmp_path / "history.sqlite") as store,
        client(Snapshot(NOON, (state,)), store=store) as web,
    ):
        found = Recorded(web, store).every(f"{SHOP}/changes", limit=1)
    assert sorted(one["metrics"] for one in found) == [["auc"], ["coverage"], ["gini"]]


def test_single_series_out_of_their_bands_are_violations_only_if_asked_for(shop: Recorded) -> None:
    out = replace(measured("deviation", 9.0, metric="gini", by="", of=""), kind=ResultKind.BAND,
                  status=Status.VIOLATED, threshold=6.0)  # fmt: skip
    shop.record(0, out, check="bands")
    assert shop.every(f"{SHOP}/violations") == []
    (row,) = shop.every(f"{SHOP}/violations", kind="band")
    assert row["what"] == "deviation of gini"


def test_a_series_has_the_band_of_each_window(shop: Recorded) -> None:
    of = {"metric": "gini", "by": "", "of": ""}
    for number, status in enumerate([Status.OK, Status.VIOLATED]):
        shop.record(number, measured("gini", 0.5 + number), check="exposure")
        expected = replace(measured("expected", 0.5, **of), kind=ResultKind.BAND, lower=0.4, upper=0.6)
        deviation = replace(measured("deviation", 8.0 * number, **of), kind=ResultKind.BAND, status=status)
        shop.record(number, expected, deviation, check="bands")
    shop.record(2, measured("gini", 0.5), check="exposure")
    rows = shop.every(f"{SHOP}/series/gini")
    band = {"expected": 0.5, "lower": 0.4, "upper": 0.6, "detail": ""}
    assert [row["band"] for row in rows] == [
        {**band, "deviation": 0.0, "status": "ok"},
        {**band, "deviation": 8.0, "status": "violated"},
        None,
    ]
    assert [row["value"] for row in rows] == [0.5, 1.5, 0.5]
    within = {"from": "2026-01-01T01:00:00Z", "to": "2026-01-01T02:00:00Z"}
    assert shop.every(f"{SHOP}/series/gini", **within) == rows[1:2]
    now = {row["metric"]: row["band"] for row in shop.every(f"{SHOP}/series")}
    assert now["gini"]["detail"] == "this window has not been compared yet"


hostile = st.one_of(st.sampled_from(NASTY), st.text(max_size=20), st.text(st.characters(), max_size=5))


@settings(deadline=None, max_examples=25)
@given(st.lists(hostile, min_size=1, max_size=4, unique_by=encodable), st.floats())
def test_labels_and_evidence_may_be_any_text_and_are_found_again(values, number) -> None:
    with (
        TemporaryDirectory() as folder,
        Store.open(Path(folder) / "h.sqlite") as store,
        recorded(store) as shop,
    ):
        results = [
            Result(
                kind=ResultKind.RULE, metric="rule", status=Status.VIOLATED, definition="1", value=0.5,
                labels={"rule": "a", "kind": "hard", "dimension": "scene", "value": value}, violations=1,
                samples=2, threshold=0.0, evidence=({"item_id": value, "score": number},), detail=value,
            )
            for value in values
        ]  # fmt: skip
        shop.record(0, *results)
        for address in (f"{SHOP}/results", f"{SHOP}/violations", f"{SHOP}/series/rule", f"{SHOP}/series"):
            rows = shop.every(address, limit=1)
            assert {row["labels"]["value"] for row in rows} == {encodable(value) for value in values}
            assert shop.web.get(address).content.isascii()
        for row in shop.every(f"{SHOP}/violations"):
            (result,) = shop.follow(row["evidence_url"])
            assert result["labels"] == row["labels"]
            assert len(result["evidence"]) == 1
        for value in values:
            asked = {"label": f"value={encodable(value)}"}
            (found,) = shop.every(f"{SHOP}/series/rule", **asked)
            assert found["labels"]["value"] == encodable(value)


def test_a_healthy_window_is_ok_while_its_bands_are_learnt(shop: Recorded) -> None:
    shop.record(0, replace(measured("gini", 0.2), threshold=0.5, bound="max"), check="exposure")
    unknown = replace(measured("gini", 0.2), status=Status.NO_DATA, value=None)
    shop.record(0, replace(unknown, metric="deviation", kind=ResultKind.BAND), check="bands")
    (window,) = shop.every(f"{SHOP}/windows")
    assert window["status"] == "ok"
    assert {one["check"]: one["status"] for one in window["checks"]} == {"exposure": "ok", "bands": "no_data"}
