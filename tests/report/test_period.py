"""A report on a period: state, incidents, changes, trends and the period before, of a real judged history."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from monitor.config.load import load_config
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.readonly import ReadOnlyHistory
from monitor.history.reads import Evaluated, StoredResult
from monitor.history.store import Store
from monitor.report.judged_page import style_hash
from monitor.report.numbers import signed_share
from monitor.report.period import PeriodReport, period_report, read_period
from monitor.report.period_page import as_html, as_text
from monitor.settings.recommender import RecommenderSettings
from tests.anomalies.banded import SHOP, a_check, changed, hour, judge, store_hour, usual_hour
from tests.report.period_world import DAY, END, FIRST, HOSTILE, SECOND, judged, rows
from tests.shop import three_weeks, three_weeks_file  # noqa: F401 - fixtures

NOW = END + DAY


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged(tmp_path_factory.mktemp("period"))


def read(path: Path, start: datetime, end: datetime, now: datetime = NOW) -> PeriodReport:
    settings = load_config(path)
    with ReadOnlyHistory.open(settings.history.location(settings.state)) as history:
        return read_period(history, settings.recommenders[0], Window(start, end), now)


@pytest.fixture(scope="module")
def report(world: Path) -> PeriodReport:
    return read(world, SECOND, END)


@pytest.fixture(scope="module")
def page(report: PeriodReport) -> str:
    return as_html([report], NOW)


class Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_state_is_the_worst_verdict_of_each_window(report: PeriodReport) -> None:
    ok, bad = Status.OK, Status.VIOLATED
    assert [cell.status for cell in report.cells] == [ok, ok, bad, bad]
    assert report.judged == {ok: 2, bad: 2}
    assert report.judged_before == {bad: 4}  # an objective that was too strict
    assert report.not_judged == 0


def test_a_window_that_was_never_judged_is_not_ok(world: Path) -> None:
    longer = read(world, SECOND, END + DAY / 2)
    assert [cell.status for cell in longer.cells][-2:] == [None, None]
    assert longer.not_judged == 2
    assert read(world, SECOND, END + DAY / 2, now=END).not_judged == 0  # they have not ended yet


def test_windows_of_another_length_are_judged_ones_too() -> None:
    """Windows had an hour; since noon they have half an hour, and one of them is missing."""
    noon, half = FIRST + DAY / 2, timedelta(minutes=30)
    hours = [Window(FIRST + n * 2 * half, FIRST + (n + 1) * 2 * half) for n in range(12)]
    halves = [Window(noon + n * half, noon + (n + 1) * half) for n in range(23)]
    bad = hours[3]
    windows = [
        Evaluated(
            "shop", "logs", one, "1", Status.VIOLATED if one == bad else Status.OK, "a", 1, one.end,
            seconds=0.1, revision=1,
        )
        for one in (*hours, *halves)
    ]  # fmt: skip
    days = Evaluated("shop", "platform", Window(FIRST, SECOND), "1", Status.LATE, "a", 1, END, 0.1, 1)
    settings = RecommenderSettings.model_validate(
        {"name": "shop", "window": "30m", "logs": {"exposures": {"path": "x"}}}
    )
    counts = [
        StoredResult(
            "shop", "exposure", one,
            Result(metric="volume", labels={"by": "requests"}, status=Status.OK, definition="1",
                   value=one.length / half),
        )
        for one in (*hours, *halves)
    ]  # fmt: skip
    report = period_report(settings, Window(FIRST, SECOND), counts, [*windows, days], NOW)
    assert report.judged == {Status.OK: 34, Status.VIOLATED: 1}
    assert report.not_judged == 1
    assert [n for n, cell in enumerate(report.cells) if cell.status is Status.VIOLATED] == [6, 7]
    assert [n for n, cell in enumerate(report.cells) if cell.status is None] == [47]
    (volume,) = report.compared
    assert (volume.now, volume.windows) == ("1", 23)  # a count of an hour is no count of half an hour


def test_bands_that_are_still_learnt_leave_healthy_windows_ok(tmp_path: Path) -> None:
    check = a_check(sliced=[])
    settings = RecommenderSettings.model_validate({"name": SHOP, "logs": {"exposures": {"path": "x"}}})
    first = Window(hour(0).start, hour(2).end)
    with Store.open(tmp_path / "history.sqlite") as store:
        for number in range(3):
            store_hour(store, number, usual_hour(number))
            assert judge(store, check, number).status is Status.NO_DATA
        assert read_period(store, settings, first, first.end).judged == {Status.OK: 3}


def test_an_incident_has_its_times_evidence_and_what_changed_before_it(report: PeriodReport) -> None:
    rule = next(one for one in report.incidents if one.what == "rule blacklist (hard)")
    assert (rule.since, rule.until, rule.windows) == ("2026-03-03 12:00 UTC", "", 2)
    assert "violate the rule" in rule.detail
    assert any("alert(1)" in row for row in rule.evidence)
    assert any("serves most, before it m1" in one for one in rule.changes)
    assert any("a new home page" in one for one in rule.changes)


def test_a_violation_that_ended_in_the_period_began_before_it(report: PeriodReport) -> None:
    objective = next(one for one in report.incidents if one.what == "personalization")
    assert objective.since == "before 2026-03-03 00:00 UTC"
    assert objective.until == "2026-03-03 00:00 UTC"
    assert objective.windows == 4
    assert report.incidents_before == 1


def test_the_violation_of_a_replaced_model_ends_with_it() -> None:
    """m6's gap is violated for three windows; then m7 takes its place."""
    stored, windows = [], []
    for number in range(8):
        window = Window(FIRST + number * DAY / 4, FIRST + (number + 1) * DAY / 4)
        model, status = ("m6", Status.VIOLATED) if number < 3 else ("m7", Status.OK)
        gap = Result(
            kind=ResultKind.GAP, metric="auc_gap", labels={"pair": "test_online", "model": model},
            definition="1", status=status, value=0.09, threshold=0.02, bound="max",
        )  # fmt: skip
        stored.append(StoredResult("shop", "models", window, gap))
        windows.append(
            Evaluated("shop", "models", window, "1", status, "a", 1, window.end, seconds=0.1, revision=1)
        )
    settings = RecommenderSettings.model_validate(
        {"name": "shop", "window": "6h", "logs": {"samples": {"path": "x"}}}
    )

    def report_of(start: datetime) -> PeriodReport:
        own = [one for one in stored if one.window.start < start + DAY]
        return period_report(settings, Window(start, start + DAY), own, windows[: len(own)], NOW)

    (gap,) = report_of(FIRST).incidents
    assert (gap.since, gap.windows) == ("2026-03-02 00:00 UTC", 3)
    assert gap.until == "2026-03-02 18:00 UTC, when it was no longer judged"
    later = report_of(SECOND)
    assert (later.incidents, later.incidents_before) == ((), 1)


def test_models_lists_rules_objectives_and_what_was_declared_are_changes(report: PeriodReport) -> None:
    found = {(one.kind, f"{one.at:%H:%M}", re.sub(r"[0-9a-f]{12}", "*", one.text)) for one in report.changes}
    assert ("config", "00:00", "the objective on personalization is max 0.99, before it max 0.5") in found
    assert ("declared", "05:00", "a new home page") in found
    assert ("list", "18:00", "the list of rule blacklist is version *, before it *") in found
    assert any(one[:2] == ("declared", "03:00") and "maintenance until" in one[2] for one in found)
    assert any(one[:2] == ("model", "12:00") and "serves most, before it m1" in one[2] for one in found)
    assert any(one[:2] == ("config", "00:00") and one[2].endswith("is new") for one in found)
    assert [one.at for one in report.changes] == sorted(one.at for one in report.changes)


def test_both_periods_are_compared_by_means(report: PeriodReport, world: Path) -> None:
    by_name = {one.name: one for one in report.compared}
    lengths = by_name["list_length"]
    assert (lengths.now, lengths.before, lengths.windows, lengths.windows_before) == ("3", "3", 4, 4)
    requests = by_name["volume by=requests"]
    logged = rows()
    now, earlier = (
        logged[(logged.ts >= day) & (logged.ts < day + DAY)].request_id.nunique() / 4
        for day in (SECOND, FIRST)
    )
    assert (requests.now, requests.before) == (f"{now:g}", f"{earlier:g}")
    assert requests.size == pytest.approx(now / earlier - 1)
    assert requests.change == signed_share(requests.size)
    blocked = by_name["rule blacklist (hard)"]
    assert blocked.before.startswith("0")
    assert blocked.change == ""  # nothing is so many percent more than 0
    assert not any("dimension" in name for name in by_name)


def test_a_trend_has_its_objective_and_a_red_dot_for_each_violated_window(world: Path) -> None:
    first = read(world, FIRST, SECOND)
    trend = next(one for one in first.trends if one.name == "personalization")
    assert first.trends[0] == trend  # what was violated comes first
    assert len(trend.violated) == 4
    assert trend.bound is not None
    xs = [float(point.split(",")[0]) for point in trend.lines[0].split()]
    assert xs == sorted(xs)
    assert len(xs) == 4


def test_the_page_is_one_file_that_can_load_and_run_nothing(page: str) -> None:
    parsed = Page(page)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(parsed.tags)
    names = {name for name, _ in parsed.attributes}
    assert not {"src", "href", "style", "action"} & names
    assert not any(name.startswith("on") for name in names)
    assert "http://" not in page.replace("http-equiv", "")
    assert "https://" not in page
    style = page.partition("<style>")[2].partition("</style>")[0]
    (policy,) = [value for _, value in parsed.attributes if value and "default-src" in value]
    assert (
        policy == f"default-src 'none'; style-src '{style_hash(style)}'; base-uri 'none'; form-action 'none'"
    )
    assert parsed.tags["svg"] >= 10
    assert parsed.tags["rect"] == 4
    assert len(page) < 150_000


def test_names_of_a_log_are_text_on_the_page_and_in_the_summary(report: PeriodReport, page: str) -> None:
    parsed = Page(page)
    assert "alert(1)" in parsed.text
    for text in (page, as_text([report])):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert HOSTILE not in page


def test_the_summary_for_a_chat_has_incidents_changes_and_the_largest_differences(
    report: PeriodReport,
) -> None:
    lines = as_text([report]).splitlines()
    assert lines[0] == "shop, 2026-03-03 00:00 to 2026-03-04 00:00 UTC"
    assert (
        lines[1] == f"{len(report.incidents)} incidents; 1 in the period before. Windows: 2 ok, 2 violated."
    )
    assert "✗ rule blacklist (hard): since 2026-03-03 12:00 UTC, still violated at the end" in lines
    assert any(line.startswith("config: 2026-03-03 00:00 UTC: ") for line in lines)
    assert lines[-1].endswith("; 4 windows, before 3")
    assert len(lines) < 25


def test_a_period_before_that_was_not_judged_is_not_said_to_have_no_incidents(world: Path) -> None:
    first = read(world, FIRST, FIRST + DAY)
    (line,) = [one for one in as_text([first]).splitlines() if "period before" in one]
    assert "; nothing is known about the period before. Windows: " in line
    longer = read(world, FIRST + DAY / 2, END)
    assert f"{longer.incidents_before} in the period before (2 judged windows)." in as_text([longer])


def test_an_empty_period_says_so_and_is_never_well(world: Path) -> None:
    empty = read(world, END + DAY, END + 2 * DAY, now=END + 3 * DAY)
    assert empty.is_empty
    assert empty.not_judged == 4
    text = Page(as_html([empty], NOW)).text
    assert "No window of this period was judged: nothing is known about it." in text
    assert "Nothing was judged, so no incident is known." in text
    assert "Nothing was violated" not in text
    assert "No window of this period was judged" in as_text([empty])


def test_windows_without_data_know_of_no_incident_and_are_not_said_to_have_none() -> None:
    window = Window(FIRST, FIRST + DAY)
    stored = Evaluated(
        "shop", "logs", window, "1", Status.NO_DATA, "a", 0, window.end, seconds=0.1, revision=1
    )
    settings = RecommenderSettings.model_validate(
        {"name": "shop", "window": "1d", "logs": {"exposures": {"path": "x"}}}
    )
    report = period_report(settings, window, [], [stored], NOW)
    text = Page(as_html([report], NOW)).text
    assert "No incident is known, because nothing was judged; " in as_text([report])
    assert "Windows: 1 no data." in text
    assert "Nothing was judged, so no incident is known." in text
    assert "Nothing was violated" not in text


def test_the_same_period_gives_the_same_report_whenever_it_is_made(report: PeriodReport, world: Path) -> None:
    assert read(world, SECOND, END, now=NOW + 30 * DAY) == report


def test_an_anomaly_is_an_incident_with_its_cause_and_bands_are_drawn(three_weeks: Store) -> None:  # noqa: F811
    """Requests are halved for six hours: the bands judge it, and an objective breaks at the same time."""
    from monitor.settings.recommender import RecommenderSettings

    check = a_check(sliced=[])
    start = 22 * 24
    for number in range(start, start + 24):
        factor = 0.4 if 10 <= number - start < 16 else 1.0
        values = {("failure", ""): 0.2} if factor < 1 else {}
        store_hour(three_weeks, number, changed(usual_hour(number, factor), values))
        judge(three_weeks, check, number)
    day = Window(hour(start).start, hour(start + 23).end)
    settings = RecommenderSettings.model_validate({"name": SHOP, "logs": {"exposures": {"path": "x"}}})
    report = read_period(three_weeks, settings, day, datetime(2026, 5, 1, tzinfo=UTC))
    names = [one.what for one in report.incidents]
    assert "anomaly: traffic lost" in names
    lost = report.incidents[names.index("anomaly: traffic lost")]
    assert lost.since == f"{hour(start + 10).start:%Y-%m-%d %H:%M} UTC"
    assert lost.until == f"{hour(start + 16).start:%Y-%m-%d %H:%M} UTC"
    assert not any(name.startswith("deviation") for name in names)
    volume = next(one for one in report.trends if one.name == "volume by=requests")
    assert volume.bands
    assert len(volume.violated) >= 6
    assert report.judged[Status.VIOLATED] >= 6
    assert timedelta(hours=1) == settings.window
