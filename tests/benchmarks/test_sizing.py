"""What the benchmark of a scrape measures, and the page that it writes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import sizing
from monitor.core.results import ResultKind
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.service.prometheus.exporter import Exporter
from monitor.settings.server import ServerSettings
from tests.service import fleet

PAGE = sizing.PAGE.read_text("utf-8")
LIMIT = ServerSettings().series_limit


def rows() -> Iterator[tuple[int, str, int, int, float, float]]:
    """Recommenders, bands, series, left out, seconds of the first and of later scrapes."""
    begin, end = PAGE.index("<!-- sizing -->"), PAGE.index("<!-- end of sizing -->")
    for line in PAGE[begin:end].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            count, bands, series, left_out, _, _, first, later = cells[:8]
            yield (
                int(count), bands, int(series.replace(",", "")), int(left_out.replace(",", "")),
                float(first.removesuffix(" s")), float(later.removesuffix(" s")),
            )  # fmt: skip


def test_the_page_has_every_row() -> None:
    assert [row[:2] for row in rows()] == [
        (count, bands) for bands in ("no", "yes") for count in sizing.COUNTS
    ]


def test_the_page_and_the_default_limit_agree() -> None:
    assert f"`server.series_limit` series, {LIMIT:,} by default" in PAGE
    found = {row[:2]: row[2:] for row in rows()}
    assert all(series <= LIMIT for series, *_ in found.values())
    series, left_out, _, later = found[200, "no"]
    assert (left_out, later < 1) == (0, True)
    assert series > 200 * 300, "recommenders without anything to measure"
    with_bands = found[30, "yes"][0] / 30
    (enough,) = re.findall(r"enough for 200 recommenders without bands, or for\s+(\d+) with bands", PAGE)
    assert with_bands * int(enough) <= LIMIT


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Snapshot:
    path: Path = tmp_path_factory.mktemp("fleet") / "history.sqlite"
    with Store.open(path) as store:
        fleet.write(store, 1, violated=1)
        return fleet.snapshot(store, 1)


def test_a_fleet_has_copies_under_names_of_their_own_and_bands_if_asked(one: Snapshot) -> None:
    copies = sizing.fleet(one, 3, bands=True)
    assert [state.name for state in copies.recommenders] == [f"recommender-{n:03}" for n in range(3)]
    for state in copies.recommenders:
        assert {series.recommender for series in state.series} == {state.name}
        assert any(series.result.kind is ResultKind.BAND for series in state.series)
    owners = {dict(labels).get("recommender") for _, labels in copies.counters}
    assert owners <= {state.name for state in copies.recommenders} | {None}


def test_what_is_measured_of_a_fleet_is_what_is_scraped(one: Snapshot) -> None:
    row = sizing._measure(pickle.dumps(one), 3, bands=False)
    exporter = Exporter(
        lambda: sizing.fleet(one, 3), version="0.1.0", url="http://monitor.test", clock=lambda: one.taken_at
    )
    body, _ = exporter.scrape()
    lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
    assert row.series == len(lines)
    assert row.left_out == 0
    assert abs(row.text - len(body)) < 1000, "the families of the process differ"
    assert 0 < row.compressed < row.text / 5
    table = sizing.table([row])
    assert f"| 3 | no | {row.series:,} | 0 |" in table


def test_two_hundred_recommenders_fit_the_limit_and_are_scraped_quickly(one: Snapshot) -> None:
    row = sizing._measure(pickle.dumps(one), 200, bands=False)
    assert row.left_out == 0
    assert 50_000 < row.series <= LIMIT
    assert row.again < 1.5, "seconds of one core, on a slow machine"
    assert row.most < 200_000_000
