"""The pages on the past, over a history that the real daemon judged, and over recorded ones."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote, quote_plus, urljoin, urlsplit

import httpx
import pytest

from monitor.core.results import Result, ResultKind, Status
from monitor.history.store import Store
from monitor.report.past import MOST_WINDOWS
from tests.history.recording import rule
from tests.service.made import HOSTILE
from tests.service.web.api.judged_shop import FIRST, HOUR, LAST, MODEL, NEXT_MODEL, JudgedShop
from tests.service.web.api.recorded import Recorded, measured, recorded
from tests.service.web.chromium import size
from tests.service.web.test_app import client

SHOP = "/recommenders/shop"
PV = f"{SHOP}/metrics/failure?label=by%3Dpv"
WHOLE = "from=2026-03-02T00:00&to=2026-03-03T16:00"
PAGES = [
    f"{SHOP}/metrics/failure",
    PV,
    f"{SHOP}/slices/scene/home",
    f"{SHOP}/slices/scene/{quote(HOSTILE, safe='')}",
    f"{SHOP}/experiments/ranking",
    f"{SHOP}/models/{quote(MODEL, safe='')}",
    f"{SHOP}/models/{quote(NEXT_MODEL, safe='')}",
    f"{SHOP}/rules/blacklist",
    f"{SHOP}/windows/2026-03-03T15:00:00Z",
]


def page(web: httpx.Client, address: str, status: int = 200) -> str:
    answer = web.get(address)
    assert answer.status_code == status, answer.text[:400]
    return answer.text


def links(text: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'href="([^"#][^"]*)"', text) if not one.startswith("data:")]


def names(text: str) -> list[str]:
    """The names of the pictures."""
    return [unescape(one) for one in re.findall(r"<figcaption>.*?<bdi>(.*?)</bdi>", text)]


@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_escaped_small_and_all_of_its_links_work(api: httpx.Client, address: str) -> None:
    text = page(api, address)
    assert "<script>document" not in text
    assert len(text) < 150_000
    own = urlsplit(str(api.base_url)).netloc
    for one in links(text):
        target = urljoin(str(api.get(address).url), one)
        assert urlsplit(target).netloc == own, one
        assert api.get(target).status_code == 200, one


def test_a_metric_has_a_picture_for_each_series_and_each_leads_to_its_own_page(api: httpx.Client) -> None:
    text = page(api, f"{SHOP}/metrics/failure")
    assert names(text) == ["failure by=pv", "failure by=uv"]  # the violated one first; slices apart
    (own,) = [one for one in links(text) if "label=by%3Duv" in one]
    alone = page(api, "/" + own.removeprefix("../../../"))
    assert names(alone) == ["failure by=uv"]
    assert alone.count('<rect class="column"') == 40
    assert "Share of requests, or of users, that got an empty list." in alone


def test_the_table_and_the_csv_have_the_stored_numbers(api: httpx.Client, judged_shop: JudgedShop) -> None:
    stored = [
        one
        for one in judged_shop.daemon.store.results(recommenders=["shop"], start=FIRST, end=LAST + HOUR)
        if one.result.metric == "failure" and one.result.labels == {"by": "pv"}
    ]
    answer = api.get(f"{PV}&{WHOLE}&format=csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) == len(stored) == 40
    for row, one in zip(rows, sorted(stored, key=lambda each: each.window.start), strict=True):
        assert datetime.fromisoformat(row["window_start"]) == one.window.start
        assert float(row["value"]) == one.result.value
        assert row["status"] == one.result.status
        assert int(row["samples"]) == one.result.samples
    assert [row["out_of_band"] for row in rows[-4:]] == ["false", "true", "true", "true"]
    assert float(rows[-1]["expected_upper"]) < float(rows[-1]["value"])
    table = page(api, f"{PV}&{WHOLE}").split("<h2>Windows</h2>")[1].split("</table>")[0]
    assert table.count("<tr class=") == 40
    assert "70\xa0%" in table.split("</tr>")[1]  # the newest window first


def test_the_span_of_the_address_is_shown_and_its_links_lead_beside_it(api: httpx.Client) -> None:
    text = page(api, f"{PV}&from=2026-03-02T10:00&to=2026-03-02T16:00%2B00:00")
    assert "2026-03-02 10:00 to 16:00 UTC" in text
    assert text.count('<rect class="column"') == 6
    assert 'value="2026-03-02T10:00"' in text
    steps = {name: unescape(href) for href, name in re.findall(r'<a href="(\?[^"]*)">(\w+)</a>', text)}
    assert set(steps) == {"earlier", "later", "newest"}
    spans = {name: re.search(r'class="summary">([^<]*)', page(api, f"{SHOP}/metrics/failure{href}"))
             for name, href in steps.items()}  # fmt: skip
    assert {name: found and found[1] for name, found in spans.items()} == {
        "earlier": "2026-03-02 04:00 to 10:00 UTC",
        "later": "2026-03-02 16:00 to 22:00 UTC",
        "newest": "2026-03-03 10:00 to 16:00 UTC",
    }
    empty = page(api, f"{PV}&from=2025-01-01&to=2025-01-02")
    assert "No window of this span has a result." in empty
    assert "Nothing was judged in this span" in empty


def test_violations_have_their_evidence_and_what_left_its_band_counts(api: httpx.Client) -> None:
    text = page(api, f"{SHOP}/rules/blacklist?{WHOLE}")
    past = text.split("<h2>Violations</h2>")[1]
    spans = re.findall(r"</strong> from ([^<]*?) (?:until ([^<,]*)|and not over), (\d+) windows?", past)
    assert spans == [
        ("2026-03-03 15:00 UTC", "", "1"),
        ("2026-03-02 30:00 UTC".replace("02 30", "03 06"), "2026-03-03 08:00 UTC", "2"),
    ]
    assert past.count("banned") >= 3
    of_band = page(api, f"{SHOP}/slices/scene/home?{WHOLE}").split("<h2>Violations</h2>")[1]
    assert "failure by pv scene = home out of its band</bdi></strong> from 2026-03-03 13:00 UTC" in of_band


def test_arms_stand_beside_each_other_with_the_intervals_of_the_newest_window(
    api: httpx.Client, judged_shop: JudgedShop
) -> None:
    text = page(api, f"{SHOP}/experiments/ranking").split("Arms in the newest window")[1].split("<form")[0]
    shares = {
        one.result.labels["arm"]: one.result
        for one in judged_shop.daemon.store.results(recommenders=["shop"], start=LAST, end=LAST + HOUR)
        if one.result.metric == "experiment_share"
    }
    assert set(shares) == {"control", "new"}
    said = re.findall(r"<li>(control|new): ([\d.]+)\xa0% \(([\d.]+)\xa0% to ([\d.]+)\xa0%\)</li>", text)
    by_arm = {arm: [float(one) / 100 for one in numbers] for arm, *numbers in said[-2:]}
    for arm, result in shares.items():
        assert by_arm[arm] == pytest.approx([result.value, result.lower, result.upper], abs=5e-5)


def test_a_model_has_what_it_served_and_its_samples(api: httpx.Client) -> None:
    served = names(page(api, f"{SHOP}/models/{quote(MODEL, safe='')}"))
    assert "failure by=pv dimension=model value=m/1 ?" in served
    assert page(api, f"{SHOP}/models/nobody", 404)


def test_a_window_has_every_result_and_leads_to_the_windows_beside_it(
    api: httpx.Client, judged_shop: JudgedShop
) -> None:
    text = page(api, f"{SHOP}/windows/2026-03-03T14:00:00Z")
    start = LAST - HOUR
    stored = [
        one.result
        for one in judged_shop.daemon.store.results(recommenders=["shop"], start=start, end=LAST)
        if one.result.kind is not ResultKind.BAND or one.result.status is Status.VIOLATED
    ]
    counted = [int(one) for one in re.findall(r'</h2> <span class="quiet">(\d+)</span></summary>', text)]
    assert sum(counted) == len(stored)
    assert text.count("<tr class=") == len(stored) + text.count("own-evidence")
    beside = re.findall(r'windows/([^?"]*)[^>]*>the window (before|after)', text)
    assert beside == [("2026-03-03T13:00:00Z", "before"), ("2026-03-03T15:00:00Z", "after")]
    last = page(api, f"{SHOP}/windows/2026-03-03T15:00:00Z")
    assert "evidence of <bdi>rule blacklist (hard)</bdi>: 2 rows" in last
    assert last.index("rule blacklist") < last.index("rule positions")  # the violated one first


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        (f"{SHOP}/metrics/nope", 404, "The history has no results of this metric"),
        (f"{SHOP}/metrics/failure?label=by%3Dx", 404, "The history has no results of this metric"),
        (f"{SHOP}/metrics/expected", 404, "The history has no results of this metric"),
        (
            f"{SHOP}/metrics/failure?from=soon",
            400,
            "such as 2026-03-01, 2026-03-01T10:00 or 2026-03-01T10:00:00Z",
        ),
        *(
            (f"{SHOP}/metrics/failure?from=2026-03-03T10:00&to={end}", 400, "expected is a `to` after `from`")
            for end in ("2026-03-02", "2026-03-03T10:00")
        ),
        (f"{SHOP}/metrics/failure?label=by", 400, "has no `=`"),
        (f"{SHOP}/metrics/failure?colour=red", 400, "no parameter"),
        (f"{SHOP}/metrics/failure?format=xls", 400, "csv"),
        (f"{SHOP}/metrics/nope?format=csv", 404, "no such series"),
        (f"{SHOP}/windows/soon", 404, "2026-03-01T10:00:00Z"),
        (f"{SHOP}/windows/2020-01-01T00:00:00Z", 404, "No judged window"),
        ("/recommenders/shoes/metrics/failure", 404, "no recommender of this name"),
    ],
)
def test_a_wrong_address_says_what_is_expected(
    api: httpx.Client, address: str, status: int, said: str
) -> None:
    assert said in unescape(page(api, address, status))


def test_a_wrong_query_is_answered_with_a_page_that_leads_on_and_quotes_it_escaped(api: httpx.Client) -> None:
    text = page(api, f"{SHOP}/metrics/failure?from={quote('<b>soon</b>')}", 400)
    assert "<h1>Not understood</h1>" in text
    assert "&#39;&lt;b&gt;soon&lt;/b&gt;&#39;; expected is a time" in text
    assert "../../../" in links(text)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Recorded]:
    with Store.open(tmp_path / "history.sqlite") as store, recorded(store) as made:
        yield made


def test_a_week_before_is_drawn_beside_the_span_and_compared(shop: Recorded) -> None:
    week = 7 * 24
    for number, value in ((0, 0.125), (1, 0.375), (week, 0.5), (week + 1, 0.5)):
        shop.record(number, measured("gini", value), check="exposure")
    text = page(shop.web, f"{SHOP}/metrics/gini?from=2026-01-08&to=2026-01-08T02:00")
    assert text.count('class="before"') == 1
    assert "Mean 0.5, a week before 0.25 (+100\xa0%)." in text
    early = page(shop.web, f"{SHOP}/metrics/gini?from=2026-01-01&to=2026-01-01T02:00")
    assert 'class="before"' not in early
    assert "a week before 0" not in early
    both = page(shop.web, f"{SHOP}/metrics/gini?from=2026-01-01&to=2026-01-08T02:00")
    assert "Mean 0.375 of 4 windows, a week before 0.25 of 2 windows (+50\xa0%)." in both


def test_a_span_of_too_many_windows_is_cut_and_says_so(shop: Recorded) -> None:
    shop.record(0, measured("gini", 0.2), check="exposure")
    shop.record(MOST_WINDOWS + 1, measured("gini", 0.4), check="exposure")
    last = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=MOST_WINDOWS + 2)
    text = page(shop.web, f"{SHOP}/metrics/gini?from=2026-01-01&to={last:%Y-%m-%dT%H:%M}")
    assert "The newest 2,000 windows of the span are shown." in text
    assert text.count('<rect class="column"') == 1


def test_texts_of_a_log_are_no_formulas_in_a_spreadsheet(shop: Recorded) -> None:
    result = Result(metric="gini", status=Status.ERROR, definition="1", detail="=HYPERLINK('x')")
    shop.record(0, result, check="exposure")
    (row,) = csv.DictReader(io.StringIO(shop.web.get(f"{SHOP}/metrics/gini?format=csv").text))
    assert row["detail"] == "'=HYPERLINK('x')"
    assert (row["status"], row["value"]) == ("error", "")
    text = page(shop.web, f"{SHOP}/metrics/gini")
    assert "=HYPERLINK(&#39;x&#39;)" in text  # instead of a picture
    assert '<svg class="trend' not in text


def test_while_the_history_is_gone_a_rule_shows_its_last_window_and_the_past_says_why_not(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path / "history.sqlite") as store:
        for file in tmp_path.iterdir():
            file.unlink()
        with client(store=store) as web:
            answer = web.get("/recommenders/shop/rules/blacklist")
            assert answer.status_code == 200
            assert "Evidence</h2>" in answer.text
            assert "<h2>Past</h2>" not in answer.text
            assert "The history cannot be read now" in page(web, f"{SHOP}/metrics/failure", 503)
            assert "The history cannot be read now" in page(web, f"{SHOP}/windows/2026-03-03T15:00:00Z", 503)


def test_a_metric_in_error_is_no_measurement_of_its_window(shop: Recorded) -> None:
    failed = Result(metric="gini", status=Status.ERROR, definition="1", detail="it broke")
    shop.record(0, failed, measured("coverage", 0.5, by="pv"), check="exposure")
    text = page(shop.web, f"{SHOP}/windows/2026-01-01T00:00:00Z")
    assert 'class="summary">1 error, 1 measured<' in text
    assert "edge-error" in text


def test_a_series_without_a_result_in_the_span_does_not_lead_to_itself(shop: Recorded) -> None:
    shop.record(0, measured("coverage", 0.5, by="pv"), check="exposure")
    text = page(shop.web, f"{SHOP}/metrics/coverage?from=2026-01-02&to=2026-01-03")
    assert "No window of this span has a result." in text
    assert "Further series" not in text


def test_a_rule_that_does_not_apply_leaves_the_window_ok(shop: Recorded) -> None:
    other = replace(rule("position_gaps", 0), status=Status.UNDEFINED, value=None, detail="not applicable")
    shop.record(0, rule("blacklist", 0), other)
    text = page(shop.web, f"{SHOP}/windows/2026-01-01T00:00:00Z")
    assert 'class="summary">1 undefined, 1 ok<' in text
    assert "edge-ok" in text


def test_causes_while_bands_are_learnt_leave_the_window_ok(shop: Recorded) -> None:
    cause = Result(
        kind=ResultKind.ANOMALY, metric="anomaly", labels={"cause": "traffic_lost"}, status=Status.NO_DATA,
        definition="1",
    )  # fmt: skip
    shop.record(0, rule("blacklist", 0))
    shop.record(0, cause, check="bands")
    text = page(shop.web, f"{SHOP}/windows/2026-01-01T00:00:00Z")
    assert 'class="summary">1 no data, 1 ok<' in text
    assert "edge-ok" in text


def test_a_violation_is_over_once_no_window_judges_its_series(shop: Recorded) -> None:
    low = replace(measured("coverage", 0.1, by="pv"), status=Status.VIOLATED, threshold=0.2, bound="min")
    other = measured("coverage", 0.5, by="uv")
    shop.record(0, low, other, check="exposure")
    shop.record(1, other, check="exposure")
    text = page(shop.web, f"{SHOP}/metrics/coverage?from=2026-01-01&to=2026-01-02")
    assert "until 2026-01-01 01:00 UTC, when it was no longer judged, 1 window" in text
    later = page(shop.web, f"{SHOP}/metrics/coverage?from=2026-01-01T02:00&to=2026-01-02")
    assert "Nothing was judged in this span" in later
    assert "until 2026" not in later


def test_a_span_after_all_windows_is_empty(shop: Recorded) -> None:
    shop.record(0, measured("gini", 0.2), check="exposure")
    text = page(shop.web, f"{SHOP}/metrics/gini?from=2026-01-02")
    assert "2026-01-02 00:00 to 01:00 UTC" in text
    assert "No window of this span has a result." in text
    assert "Nothing was judged in this span" in text
    assert "Nothing was violated" not in text


def test_a_slice_whose_value_is_blank_can_be_seen_and_its_link_works(shop: Recorded) -> None:
    values = (" ", "\u3000", "home")
    shop.record(
        0,
        *(measured("gini", 0.2, dimension="scene", value=value) for value in values),
        check="exposure",
    )
    text = page(shop.web, f"{SHOP}/sections/slices/scene")
    for value in values[:2]:
        (own,) = [one for one in links(text) if one.endswith(f"value%3D{quote_plus(value)}")]
        assert f'<a href="{escape(own)}"><bdi>&#34;{value}&#34;</bdi></a>' in text
        assert f'scene = "{value}"' in unescape(page(shop.web, f"{SHOP}/slices/scene/{quote(value)}"))
        assert f'all of scene = "{value}"' in unescape(page(shop.web, "/" + own.removeprefix("../")))


def test_a_field_of_the_form_without_a_time_asks_for_no_time(shop: Recorded) -> None:
    for number in range(3):
        shop.record(number, measured("gini", 0.2), check="exposure")
    address = f"{SHOP}/metrics/gini"
    assert "01:00 to 03:00 UTC" in page(shop.web, f"{address}?from=2026-01-01T01:00&to=")
    assert page(shop.web, f"{address}?from=&to=+") == page(shop.web, address)
    assert page(shop.web, f"{SHOP}/windows/2026-01-01T00:00:00Z?to=")


def test_a_query_that_the_page_would_not_heed_is_refused_with_what_it_takes(shop: Recorded) -> None:
    shop.record(0, measured("gini", 0.2), measured("gini", 0.3, dimension="scene", value="home"))
    text = unescape(page(shop.web, f"{SHOP}/metrics/gini?sliced=true", 400))
    assert "There is no parameter 'sliced' at this address. It takes check, format, from, label, to." in text
    text = unescape(page(shop.web, f"{SHOP}/metrics/gini?label=by", 400))
    assert "label 'by' has no `=`; expected is name=value, such as by=pv." in text
    text = unescape(page(shop.web, f"{SHOP}/windows/2026-01-01T00:00:00Z?to=soon", 400))
    assert "to is 'soon'; expected is a time in ISO 8601" in text


def test_a_slice_by_a_column_with_a_slash_has_its_page(shop: Recorded) -> None:
    labels = {"dimension": "place/scene", "value": "ä%2F/?\n"}
    shop.record(0, measured("gini", 0.2, **labels), check="exposure")
    section = f"{SHOP}/sections/slices/place%2Fscene"
    (own,) = [one for one in links(page(shop.web, section)) if "/gini?" in one]
    (around,) = [one for one in links(page(shop.web, urljoin(section, own))) if "/slices/" in one]
    text = page(shop.web, urljoin(f"{SHOP}/metrics/gini", around))
    assert "Slice <bdi>place/scene = ä%2F/?[LF]</bdi>" in text
    assert names(text) == ["gini dimension=place/scene value=ä%2F/?[LF]"]


def test_one_window_is_no_windows(shop: Recorded) -> None:
    shop.record(0, measured("gini", 0.2), check="exposure")
    assert "1 window: lowest" in page(shop.web, f"{SHOP}/metrics/gini")


def test_many_violations_are_counted_and_the_newest_shown(shop: Recorded) -> None:
    for number in range(50):
        shop.record(number, rule("a", 1 + number % 2 if number % 2 else 0))
    text = page(shop.web, f"{SHOP}/rules/a?from=2026-01-01&to=2026-01-04")
    assert text.count("and not over") + text.count(" until 2026") == 20
    assert "5 older violations of this span are not shown" in text
    default = page(shop.web, f"{SHOP}/rules/a")  # a week, without the days before the first result
    assert 'name="from" value="2026-01-01T00:00"' in default
    assert 'name="to" value="2026-01-03T02:00"' in default
    assert text.index("2026-01-03 01:00") < text.index("from 2026-01-02 23:00")


def test_the_pages_in_chromium_have_no_errors_and_fit_a_phone(browser, judged_shop: JudgedShop) -> None:
    with judged_shop.serving() as client:
        for address in (f"{PV}&{WHOLE}", f"{SHOP}/experiments/ranking", PAGES[-1], PAGES[-2]):
            for width in (1200, 390):
                size(browser, width)
                browser.get(f"{client.base_url}{address}".replace("//rec", "/rec"))
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width, address
            loud = [one["message"] for one in browser.get_log("browser") if "favicon" not in one["message"]]
            assert loud == []
        size(browser, 1200)
        browser.get(f"{client.base_url}{PV}&{WHOLE}".replace("//rec", "/rec"))
        said, shown = browser.execute_script(
            "const all = [...document.querySelectorAll('svg.trend .column')]; const last = all.at(-1);"
            "const box = last.getBoundingClientRect();"
            "const at = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);"
            "return [last.querySelector('title').textContent, at === last];"
        )
        assert said.startswith("2026-03-03 15:00 UTC: 70\xa0%, expected 0\xa0% to ")
        assert said.endswith(", violated")
        assert shown  # nothing lies over the window that the reader points at
        before = browser.execute_script(
            "return document.querySelector('svg.trend').getBoundingClientRect().width"
        )
        assert before > 900


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00"])
def test_a_time_beyond_the_calendar_has_no_page(api: httpx.Client, time: str) -> None:
    page(api, f"{SHOP}/windows/{quote(time)}", 404)
    page(api, f"{SHOP}/metrics/failure?from={quote(time)}", 400)
