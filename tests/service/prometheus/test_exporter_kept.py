"""What a scrape keeps for the next one never shows: each scrape is that of a new exporter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.samples import Sample

from monitor.core.results import Status
from monitor.history.counters import key
from monitor.history.snapshot import Snapshot, Violation
from monitor.metrics.exported import ExportedFamily
from monitor.service.prometheus import text
from monitor.service.prometheus.exporter import Exporter
from tests.service import pictures
from tests.service.prometheus.scrapes import samples, without_process

Change = Callable[[Snapshot], Snapshot]


def of_shop(**changes) -> Change:
    """A change of the recommender `shop`."""

    def change(snapshot: Snapshot) -> Snapshot:
        states = (replace(one, **changes) if one.name == "shop" else one for one in snapshot.recommenders)
        return replace(snapshot, recommenders=tuple(states))

    return change


def of_first_series(**changes) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        (shop,) = (one for one in snapshot.recommenders if one.name == "shop")
        return of_shop(series=(replace(shop.series[0], **changes), *shop.series[1:]))(snapshot)

    return change


def of_first_result(**changes) -> Change:
    def change(snapshot: Snapshot) -> Snapshot:
        (shop,) = (one for one in snapshot.recommenders if one.name == "shop")
        return of_first_series(result=replace(shop.series[0].result, **changes))(snapshot)

    return change


def counted(snapshot: Snapshot) -> Snapshot:
    more = {key("recsys_windows_total", {"recommender": "shop", "status": "ok"}): 1413.0}
    return replace(snapshot, counters={**snapshot.counters, **more})


def without_shop(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, recommenders=snapshot.recommenders[:1])


CHANGES: dict[str, Change] = {
    "a value": of_first_result(value=0.123, samples=777),
    "a label": of_first_result(labels={"rule": "another", "kind": "hard"}),
    "a standing": of_first_series(standing=Status.ERROR),
    "excused": of_first_series(excused=True),
    "since": of_first_series(since=pictures.NOW - timedelta(days=3)),
    "a violation": of_first_series(
        violation=Violation(pictures.LAST, pictures.rule("blacklist", evidence=({"item_id": "b7"},)))
    ),
    "fewer series": of_shop(series=pictures.shop().series[1:]),
    "a run": of_shop(last_run=pictures.NOW + timedelta(minutes=9)),
    "a log": of_shop(logs=()),
    "patience": of_shop(patience=timedelta(seconds=1)),
    "a counter": counted,
    "a recommender less": without_shop,
}


def scraped(exporter: Exporter) -> dict:
    return without_process(samples(exporter.scrape()[0].decode()))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_scrape_after_a_change_is_that_of_a_new_exporter(change: Change) -> None:
    shown = [pictures.full()]
    settings = {"version": "1", "url": "u", "clock": lambda: pictures.NOW + 5 * pictures.HOUR}
    old = Exporter(lambda: shown[0], **settings)
    before = scraped(old)
    shown[0] = change(pictures.full())
    after = scraped(old)
    assert after == scraped(Exporter(lambda: shown[0], **settings))
    assert after != before
    shown[0] = pictures.full()
    assert scraped(old) == before


def test_an_unchanged_recommender_is_not_built_again(monkeypatch) -> None:
    built: list[str] = []
    from monitor.service.prometheus import exporter as module

    for name in ("result_values", "recommender_values"):
        real = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda state, *rest, real=real, name=name: built.append(name) or real(state, *rest)
        )
    shown = [pictures.full()]
    exporter = Exporter(lambda: shown[0], version="1", url="u", clock=lambda: pictures.NOW)
    exporter.scrape()
    assert sorted(built) == ["recommender_values"] * 3 + ["result_values"] * 3
    built.clear()
    shown[0] = pictures.full()  # equal, and read anew
    exporter.scrape()
    assert built == []
    shown[0] = CHANGES["a run"](pictures.full())
    exporter.scrape()
    assert built == ["recommender_values"]


def test_a_kept_value_gets_stale_by_the_clock_and_a_kept_violation_loses_its_rows() -> None:
    rule = pictures.rule("blacklist", status=Status.VIOLATED, evidence=({"item_id": "b7"},), violations=1)
    now = [pictures.NOW]
    for series, family, lasts in (
        (pictures.series(pictures.metric("gini", value=0.5)), "recsys_gini", timedelta(hours=3, minutes=40)),
        (
            replace(pictures.series(rule), violation=Violation(pictures.LAST, rule)),
            "recsys_rule_offender_rows",
            timedelta(days=1),
        ),
    ):
        state = replace(pictures.shop(), series=(series,), patience=timedelta(minutes=40))
        snapshot = Snapshot(pictures.NOW, (state,))
        ends = (series.evaluated_at if family == "recsys_gini" else pictures.LAST.end) + lasts
        exporter = Exporter(lambda shown=snapshot: shown, version="1", url="u", clock=lambda: now[0])
        found = []
        for at in (pictures.NOW, ends, ends + timedelta(seconds=1)):
            now[0] = at
            found.append(family in {name for name, _ in scraped(exporter)})
        assert found == [True, True, False], family


def test_the_values_of_a_scrape_are_those_of_its_text() -> None:
    exporter = Exporter(pictures.full, version="1", url="u", series_limit=500, export=["*"])
    values = exporter.values()
    found = samples(exporter.scrape()[0].decode())
    assert {name for name, _ in found} == set(values)
    assert sum(map(len, values.values())) == len(found)


class Registry:
    """What the library's encoders read."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def collect(self) -> list[Metric]:
        return [self.metric]


@given(
    st.sampled_from(["gauge", "counter", "info"]),
    st.text(min_size=1).filter(lambda one: "\r" not in one),
    st.dictionaries(st.tuples(st.text(), st.text()), st.floats(allow_nan=False, allow_infinity=False)),
)
def test_the_text_is_that_of_the_library_but_for_the_form_of_large_numbers(kind, help_text, series) -> None:
    base = "recsys_x"
    name = base + {"gauge": "", "counter": "_total", "info": "_info"}[kind]
    family = ExportedFamily(name, help_text, ("a", "b"), kind=kind)
    metric = Metric(base, help_text, kind)
    metric.samples = [Sample(name, {"a": a, "b": b}, value) for (a, b), value in series.items()]
    registry = Registry(metric)
    try:
        encoded = {False: generate_latest(registry), True: generate_openmetrics(registry)}
    except UnicodeEncodeError:
        return  # `label` lets no such text through
    for openmetrics, theirs in encoded.items():
        ours = text.header(family, openmetrics=openmetrics) + text.lines(family, series)
        ours += text.END if openmetrics else ""
        assert split(ours) == split(theirs.decode())


def split(written: str) -> list[tuple[str, float | str]]:
    """Each line, with its number read."""
    found: list[tuple[str, float | str]] = []
    for line in written.split("\n"):
        before, _, last = line.rpartition(" ")
        found.append((before, last if line.startswith("#") or not line else float(last)))
    return found
