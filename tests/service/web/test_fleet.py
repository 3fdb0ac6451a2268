"""Two hundred recommenders on one page: small, quick to ask for again, searched and sorted by the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from tests.service import fleet
from tests.service.web.test_app import client

COUNT = 200
WRITTEN = 20  # as many scenes and phases of a health score as the page of 200 needs
MOST = 150_000  # bytes, before they are compressed


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> Snapshot:
    """Every second is violated. A page reads the snapshot alone, so only some have a history of their own."""
    path: Path = tmp_path_factory.mktemp("fleet") / "history.sqlite"
    with Store.open(path) as store:
        fleet.write(store, WRITTEN, violated=2)
        read = fleet.snapshot(store, WRITTEN)
    states = {one.name: one for one in read.recommenders}
    written = [states[name] for name in fleet.names(WRITTEN)]
    all_of_them = (
        replace(written[number % WRITTEN], name=name) for number, name in enumerate(fleet.names(COUNT))
    )
    return Snapshot(read.taken_at, tuple(all_of_them))


@pytest.fixture(scope="module")
def web(shown: Snapshot) -> Iterator[httpx.Client]:
    with client(shown) as opened:
        yield opened


def lines(text: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="\./recommenders/([^"]+)">', text)


def test_the_overview_of_200_recommenders_is_small_and_has_all_of_them(web):
    text = web.get("/").text
    assert sorted(lines(text)) == sorted(fleet.names(COUNT))
    assert len(text.encode()) < MOST
    assert text.count('<svg class="spark"') == COUNT
    assert text.count("<strong><bdi>blacklist</bdi></strong>") == COUNT // 2


def test_the_overview_stays_small_if_every_recommender_has_a_problem(shown):
    worst = next(one for one in shown.recommenders if one.name == fleet.names(1)[0])
    all_bad = tuple(replace(worst, name=name) for name in fleet.names(COUNT))
    with client(Snapshot(shown.taken_at, all_bad)) as web:
        text = web.get("/").text
    assert text.count("<strong><bdi>blacklist</bdi></strong>") == COUNT
    assert len(text.encode()) < MOST


def test_of_a_larger_fleet_the_most_urgent_are_shown_and_the_rest_is_counted(shown):
    ok = next(one for one in shown.recommenders if one.name == fleet.names(2)[1])
    more = tuple(replace(ok, name=f"more-{number}") for number in range(50))
    with client(Snapshot(shown.taken_at, (*more, *shown.recommenders))) as web:
        text = web.get("/").text
        found = lines(web.get("/?q=more-49").text)
    assert (len(lines(text)), found) == (COUNT, ["more-49"])
    assert "50 less urgent ones are not shown" in text
    assert "250 of 250 recommenders" in text
    with client(Snapshot(shown.taken_at, (*more[:1], *shown.recommenders))) as web:
        assert "1 less urgent one is not shown: search for its name." in web.get("/").text


def test_a_recommenders_page_is_small_and_its_sections_hold_the_rest(web):
    name = fleet.names(1)[0]
    text = web.get(f"/recommenders/{name}").text
    assert len(text.encode()) < MOST // 2
    hrefs = re.findall(r'data-src="\.\./([^"]+)"', text)
    keys = [href.rpartition("/sections/")[2] for href in hrefs]
    usual = ["rules", "health", "metrics", "slices/scene", "monitor"]
    assert [key for key in keys if key in usual] == usual
    for href in hrefs:
        section = web.get(f"/{href}")
        assert section.status_code == 200
        assert len(section.content) < MOST
    assert "intra_list_diversity" not in text
    assert "intra_list_diversity" in web.get(f"/recommenders/{name}/sections/metrics").text


def test_the_violated_come_first_and_say_what_since_when_and_how_they_are(web):
    found = lines(web.get("/").text)
    violated = fleet.names(COUNT)[::2]
    assert set(found[: COUNT // 2]) == set(violated)
    text = web.get(f"/?q={violated[0]}").text
    row = " ".join(re.sub("<[^>]+>", " ", text[text.index('<th scope="row">') :]).split())
    assert row.startswith(f"{violated[0]} violated blacklist 37 of 10,000 rows")
    assert "and 2 more" in row
    assert 'datetime="2026-03-09T12:00:00Z"' in text
    assert re.search(r"<td>9\d(\.\d+)?\s%</td>", text)  # the health score


def test_a_form_without_a_script_searches_and_filters(web):
    assert lines(web.get("/?q=HOME 00").text) == ["home-recommender-000", "home-recommender-008"]
    assert len(lines(web.get("/?state=violated").text)) == COUNT // 2
    both = web.get("/?state=ok&q=cart")
    assert set(lines(both.text)) == {name for name in fleet.names(COUNT)[1::2] if name.startswith("cart")}
    assert '<option value="ok" selected>ok (100)</option>' in both.text
    assert '<input id="q" name="q" type="search" value="cart"' in both.text
    nothing = web.get("/?q=%3Cscript%3Enobody").text
    assert lines(nothing) == []
    assert "No recommender fits the search." in nothing
    assert 'value="&lt;script&gt;nobody"' in nothing


def test_the_form_names_a_state_that_no_recommender_has(web):
    text = web.get("/?state=no_data").text
    assert lines(text) == []
    assert '<option value="no_data" selected>no data (0)</option>' in text
    assert text.count(" selected>") == 1
    assert '<option value="&lt;b&gt;" selected>&lt;b&gt; (0)</option>' in web.get("/?state=%3Cb%3E").text
    assert "(0)" not in web.get("/").text


def test_an_unchanged_page_is_not_sent_again(web):
    for path in ("/", f"/recommenders/{fleet.names(1)[0]}", "/static/style.css", "/static/page.js"):
        first = web.get(path)
        assert first.headers["cache-control"] == "private, no-cache"
        again = web.get(path, headers={"If-None-Match": first.headers["etag"]})
        if again.status_code == 200:  # a minute has passed, and an age with it
            again = web.get(path, headers={"If-None-Match": again.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert "content-security-policy" in again.headers
        other = web.get(path, headers={"If-None-Match": '"other"'})
        assert (other.status_code, len(other.content) > 0) == (200, True)


def test_the_etag_changes_with_what_is_shown(shown):
    state = shown.recommenders[1]
    current = [shown]
    with client(lambda: current[0]) as web:
        before = web.get("/").headers["etag"]
        rest = [one for one in shown.recommenders if one is not state]
        current[0] = Snapshot(shown.taken_at, tuple(rest))
        after = web.get("/", headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.headers["etag"] != before
