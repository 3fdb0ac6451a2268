"""A recommender that another monitor judges: on its page, and not in /metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from monitor.history.snapshot import Snapshot
from tests.service import pictures
from tests.service.made import HOSTILE
from tests.service.prometheus.scrapes import samples
from tests.service.web.test_left_out import client


def shared(address: str | None) -> Snapshot:
    """The shop is judged at this address, the news here."""
    full = pictures.full()
    shop = replace(next(one for one in full.recommenders if one.name == "shop"), judged_by=address)
    return replace(full, recommenders=(shop, pictures.news()), shared_history="abc123")


def test_the_page_links_to_the_monitor_that_judges_it_and_still_shows_its_results() -> None:
    with client(shared("http://other.example:9108")) as web:
        page = web.get("/recommenders/shop").text
        assert 'Another monitor judges this recommender: <a href="http://other.example:9108"' in page
        assert "blacklist" in page
        assert "Another monitor" not in web.get("/recommenders/news").text


@pytest.mark.parametrize("address", ["", "javascript:alert(1)", HOSTILE])
def test_what_is_no_address_of_a_page_becomes_no_link(address: str) -> None:
    with client(shared(address)) as web:
        page = web.get("/recommenders/shop").text
    assert "No monitor judges this recommender at the moment" in page
    assert "javascript:" not in page
    assert HOSTILE not in page


def test_only_what_is_judged_here_is_exported() -> None:
    with client(shared("http://other.example:9108")) as web:
        found = samples(web.get("/metrics").text)
    own = {
        dict(labels)["recommender"]: value
        for (name, labels), value in found.items()
        if name == "recsys_lease"
    }
    assert own == {"shop": 0, "news": 1}
    assert found["recsys_shared_history_info", frozenset({("history", "abc123")})] == 1
    of_shop = {name for name, labels in found if ("recommender", "shop") in labels}
    assert of_shop == {"recsys_lease"}
    assert any(("recommender", "news") in labels for name, labels in found if name != "recsys_lease")


def test_a_history_of_one_monitor_has_no_leases() -> None:
    with client(pictures.full()) as web:
        names = {name for name, _ in samples(web.get("/metrics").text)}
    assert not names & {"recsys_lease", "recsys_shared_history_info"}
