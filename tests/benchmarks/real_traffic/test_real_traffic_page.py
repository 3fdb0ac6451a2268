"""From alerts to figures, and from figures to the page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from benchmarks.real_traffic import page, peers, results
from benchmarks.real_traffic.incidents import INCIDENTS
from benchmarks.real_traffic.outcomes import Figures, outcome
from benchmarks.real_traffic.sweep import LEARNED, Sample, Struck, Swept
from benchmarks.real_traffic.traffic import DAY, HOUR, Hours
from benchmarks.scoreboard.alerts import Episode
from benchmarks.scoreboard.rates import Share
from monitor.core.results import Window

START = datetime(2014, 9, 2, tzinfo=UTC)
STRUCK = START + LEARNED + timedelta(hours=10)
HOURS = Hours(START, np.full((LEARNED + 14 * DAY) // HOUR, 100.0), [])
SEVERE: Mapping[str, str] = {"alertname": "RecsysAnomalySevere", "severity": "page", "cause": "traffic_lost"}
LOST: Mapping[str, str] = {"alertname": "RecsysAnomaly", "severity": "ticket", "cause": "traffic_lost"}
CLICKS: Mapping[str, str] = {"alertname": "RecsysAnomaly", "severity": "ticket", "cause": "clicks_lost"}
DRIFT: Mapping[str, str] = {"alertname": "RecsysDrift", "severity": "ticket", "metric": "volume"}


def alert(labels: Mapping[str, str], begins: datetime, lasts: int | None = 1) -> Episode:
    since = int(begins.timestamp())
    return Episode(labels, since, None if lasts is None else since + lasts * 3600)


def struck(name: str, *episodes: Episode, windows: int = 8) -> Struck:
    return Struck(name, STRUCK, 0, [50] * windows, [None] * windows, list(episodes))


@pytest.mark.parametrize(
    ("incident", "windows", "in_time"),
    [
        (struck("half", alert(SEVERE, STRUCK + HOUR)), 1, True),
        (struck("half", alert(SEVERE, STRUCK + 3 * HOUR)), 3, False),
        (struck("half", alert(LOST, STRUCK + HOUR)), None, False),  # a page is wanted
        (struck("third", alert(LOST, STRUCK + 3 * HOUR)), 3, True),
        (struck("third", alert(LOST, STRUCK, None)), None, False),  # it fired before
        (struck("third", alert(CLICKS, STRUCK + HOUR)), None, False),  # it fires without the incident too
        (struck("third"), None, False),
        (struck("clicks_fall", alert(DRIFT, STRUCK + 60 * HOUR, None), windows=240), 60, True),
        (struck("clicks_fall", alert(DRIFT, STRUCK + 60 * HOUR, 5), windows=240), 60, False),
    ],
)
def test_an_incident_is_reported_by_its_own_alerts(
    incident: Struck, windows: int | None, *, in_time: bool
) -> None:
    clean = [alert(CLICKS, STRUCK + 2 * HOUR)]
    found = outcome(incident, clean, HOURS, is_small=False)
    assert (found.windows, found.in_time) == (windows, in_time)


def test_a_small_series_has_longer_and_the_first_cause_counts() -> None:
    incident = struck("half", alert(CLICKS, STRUCK + HOUR), alert(SEVERE, STRUCK + 4 * HOUR))
    found = outcome(incident, [], HOURS, is_small=True)
    assert found.in_time
    assert found.cause == "clicks_lost"


def test_the_expected_requests_are_those_of_the_windows_in_which_an_alert_must_fire() -> None:
    rate = np.arange(len(HOURS.rate), dtype=float)
    first = (STRUCK - START) // HOUR
    rate[first + 1] = np.nan  # a gap
    hours = Hours(START, rate, [])
    assert outcome(struck("half"), [], hours, is_small=False).expected == first
    assert outcome(struck("half"), [], hours, is_small=True).expected == 3 * first + 5


def swept() -> tuple[Swept, Hours]:
    windows = (LEARNED + 14 * DAY) // HOUR
    labelled = [Window(START + LEARNED + 3 * DAY, START + LEARNED + 4 * DAY)]
    rng = np.random.default_rng(1)
    requests = rng.poisson(100.0, windows).tolist()
    deviations = rng.normal(0, 1, windows).round(2).tolist()
    clean = [
        alert(LOST, START + 5 * DAY),  # while it learned
        alert(SEVERE, START + LEARNED + 3 * DAY + 2 * HOUR),
        alert(DRIFT, START + LEARNED + 6 * DAY),
        alert(SEVERE, START + LEARNED + 8 * DAY),
    ]
    cases = [struck("half", alert(SEVERE, STRUCK + HOUR)), struck("third"), struck("night", windows=2)]
    return (
        Swept("taxi-large", START, Sample(10, 2.0), 60.0, requests, deviations, clean, cases),
        Hours(START, np.full(windows, 100.0), labelled),
    )


def test_alerts_are_false_after_four_weeks_on_ordinary_days() -> None:
    found = Figures.of(*swept())
    assert found.weeks == pytest.approx(12 / 7)  # without a labelled day and Columbus Day
    assert [one.text for one in found.tickets] == ["RecsysDrift (metric=volume)"]
    assert [one.text for one in found.pages] == ["RecsysAnomalySevere (cause=traffic_lost)"]
    assert found.caught == [True]
    assert found.named_traffic() == Share(1, 1)


@pytest.mark.parametrize(("an_hour", "counts"), [(199.0, 0), (200.0, 1)])
def test_a_loss_at_night_counts_where_the_hours_have_enough_requests(an_hour: float, counts: int) -> None:
    found, hours = swept()
    figures = Figures.of(found, Hours(START, np.full(len(hours.rate), an_hour), hours.labelled))
    assert figures.share(INCIDENTS["night"]) == Share(0, counts)
    assert figures.share(INCIDENTS["half"]) == Share(1, 1)
    assert sum("at night" in one for one in page.misses([figures])) == counts


def surged(begins: datetime, cause: str = "traffic_surge") -> Figures:
    """The figures of a calm run with an hour of seven times the usual, and one alert."""
    windows = (LEARNED + 14 * DAY) // HOUR
    rate = np.full(windows, 100.0)
    rate[SURGED] = 700.0
    labels = {"alertname": "RecsysAnomaly", "severity": "ticket", "cause": cause}
    one = Swept(
        "twitter", START, Sample(10, 2.0), 60.0, [100] * windows, [0.0] * windows, [alert(labels, begins)], []
    )
    return Figures.of(one, Hours(START, rate, []))


SURGED = LEARNED // HOUR + 100


@pytest.mark.parametrize(
    ("hours_after", "cause", "reported", "false"),
    [
        (1, "traffic_surge", True, 0),
        (2, "traffic_surge", True, 0),
        (-1, "traffic_surge", True, 0),
        (4, "traffic_surge", False, 1),
        (1, "traffic_lost", False, 1),
    ],
)
def test_an_alert_about_an_hour_of_many_times_the_usual_is_not_false(
    hours_after: int, cause: str, false: int, *, reported: bool
) -> None:
    found = surged(START + (SURGED + hours_after) * HOUR, cause)
    assert (found.surges, len(found.tickets)) == ([reported], false)


def test_an_hour_is_a_surge_beside_the_same_hour_of_the_four_weeks_before() -> None:
    rate = np.tile(np.where(np.arange(24) == 12, 600.0, 100.0), 35)
    rate[31 * 24 + 11], rate[32 * 24 + 12], rate[3 * 24] = 600.0, 3599.0, 900.0
    assert Hours(START, rate, []).surges == [31 * 24 + 11]
    rate[30 * 24 : 31 * 24] = np.nan
    rate[32 * 24 + 12] = 3600.0
    assert Hours(START, rate, []).surges == [31 * 24 + 11, 32 * 24 + 12]


def test_the_page_is_written_again_from_what_is_kept(tmp_path: Path) -> None:
    one, hours = swept()
    made = page.Made("abc", "2026-01-01", "recsys-monitor 1", 2)
    content = results.content(one, hours, peers.curves(one, hours, None), made)
    kept, written = tmp_path / "results.jsonl.gz", tmp_path / "page.md"
    text = page.write([content], written)
    results.save([content], kept)
    assert results.kept(kept) == [content]
    assert results.again(kept, tmp_path / "again.md") == text == written.read_text("utf-8")
    assert "**This is a sample" in text
    assert "- twitter: not run yet." in text
    assert "99 %: a page within 2 windows (small series: 4) | 8 windows | 1 of 1 (" in text
    assert "- taxi-large: 1 pages in 1.7 weeks, the bar is 0.02 a week" in text
    assert "| taxi-large | 1 of 1 |" in text


def test_the_kept_page_is_that_of_the_kept_results(tmp_path: Path) -> None:
    assert results.again(target=tmp_path / "page.md") == page.PAGE.read_text("utf-8")
    pictures = {one.name: one.read_text("utf-8") for one in tmp_path.glob("*.svg")}
    assert pictures == {
        one.name: one.read_text("utf-8") for one in page.PAGE.parent.glob("real-traffic-*.svg")
    }
    assert all(f"]({name})" in page.PAGE.read_text("utf-8") for name in pictures)


@pytest.mark.parametrize("method", [peers.THREE_SIGMA])
def test_a_loss_is_beyond_the_bounds_of_methods_that_know_the_hour(method: str) -> None:
    one, hours = swept()
    one.struck[0].requests[:] = [5] * 8
    found = peers.curves(one, hours, None)[method]
    place = found.at_most(1.0)
    assert place is not None
    assert found.caught["half"][place] == Share(1, 1)
    assert found.caught["third"][found.bounds.index(60.0)] == Share(0, 1)
    assert list(found.false) == sorted(found.false, reverse=True)
