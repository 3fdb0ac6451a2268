"""The benchmarks' own arithmetic: what is kept, what is claimed, and what it rests on."""

import re
import shutil
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from benchmarks import growth, page, peer_own, peers, run, simulate
from monitor.metrics.catalogue import FAMILIES, SPECS
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import HOUR, Scene, World

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


@pytest.fixture
def own_page(tmp_path):
    return Path(shutil.copy(PAGE, tmp_path / "benchmarks.md"))


def test_a_run_replaces_the_table_before_it_and_nothing_else(own_page):
    page.keep("bench", "of Monday", own_page)
    page.keep("bench-peers", "of the peers, Monday", own_page)
    page.keep("bench", "of \\1 Tuesday", own_page)
    text = own_page.read_text("utf-8")
    assert "of \\1 Tuesday" in text
    assert "of Monday" not in text
    assert text.count("of the peers, Monday") == 1


def test_the_simulated_exposures_are_counted():
    world = World(users=40, items=48, length=5, scenes=(Scene("home", 40.0),), oddities=False)
    simulation, begin = Simulation(world), world.start + timedelta(days=1)
    rows = sum(
        one.table.num_rows
        for number in range(2)
        for one in simulation.files(begin + number * HOUR)
        if one.log == "exposures"
    )
    assert f"\n| 2 | {rows:,} | " in simulate.table(world, 2)


def test_a_page_without_the_marks_is_not_written(tmp_path):
    own = tmp_path / "page.md"
    own.write_text("no marks", "utf-8")
    with pytest.raises(ValueError, match="0 places for bench"):
        page.keep("bench", "text", own)
    assert own.read_text("utf-8") == "no marks"


def found(own=1.0, rectools=6.0, evidently=30.0, *, apart=()):
    """What three tools gave: all values 0.5 but for those of `apart`, (tool, metric)."""
    seconds = {peers.OWN: own, peers.RECTOOLS: rectools, peers.EVIDENTLY: evidently}
    return {
        tool: {
            name: {
                "seconds": seconds[tool],
                "cpu": 2 * seconds[tool],
                "values": {metric: 0.7 if (tool, metric) in apart else 0.5 for metric in metrics},
            }
            for name, metrics in peers.sets_of(tool).items()
        }
        for tool in peers.MODULES
    }


def test_a_ratio_is_of_all_that_both_tools_measured_together():
    once = found()
    assert peers.ratio(once, peers.RECTOOLS, peers.RECTOOLS) == 6
    once[peers.OWN][peers.EVIDENTLY]["seconds"] = 1.5
    assert peers.ratio(once, peers.EVIDENTLY, peers.EVIDENTLY) == 20
    row = next(line for line in peers.report(once).splitlines() if line.startswith("| Evidently | coverage"))
    assert [cell.strip() for cell in row.split("|")[3:7]] == ["1.50", "30.00", "20.0", "20"]


def test_the_report_gives_definitions_only_for_values_that_differ():
    text = peers.report(found(apart={(peers.EVIDENTLY, "coverage")}))
    told = re.findall(r"^- ([^:]+): recsys-monitor:", text, re.MULTILINE)
    assert told == ["coverage"]


def test_a_metric_that_a_peer_lacks_is_named_and_not_counted():
    text = peers.report(found())
    assert "- personalization: RecTools has no such metric." in text
    row = next(line for line in text.splitlines() if line.startswith("| personalization"))
    assert row.split("|")[3].strip() == "-"
    assert "personalization" not in next(
        n for line in text.splitlines() if (n := line).startswith("| RecTools")
    )


@pytest.mark.parametrize(
    ("tool", "name"),
    [(tool, name) for tool, names in peers.TOGETHER.items() for name in names],
)
def test_both_definitions_are_given_for_any_value_that_differs(tool, name):
    text = peers.report(found(apart={(tool, name)}))
    told = next(line for line in text.splitlines() if line.startswith(f"- {name}: {peers.OWN}:"))
    assert f"; {tool}: " in told


def test_the_metrics_of_the_comparison_are_in_the_catalogue():
    families = {family.name: family for family in FAMILIES}
    for metric, by, family in peer_own.METRICS.values():
        assert metric in SPECS
        assert any(
            spec.name == metric and (not by or by in values) for spec, values in families[family].outputs
        )


def of_window(costs, **seconds):
    return {
        "costs": costs,
        "cpu": 1.0,
        "tables": {},
        "checks": {},
        "statuses": ["ok"],
        "not_ok": [],
        **seconds,
    }


def test_measured_ratios_are_of_families_to_the_plain_read():
    names = [family.name for family in FAMILIES]
    one = {
        "read": {"seconds": 0.5, "cpu": 1.0},
        "window": of_window({names[0]: 1.0, "rule tables": 9.0}, seconds=10.0),
        "feedback": of_window({names[-1]: 0.26}, seconds=4.0),
        "missing": {},
        "rules": {},
        "indexing": 0.1,
        "peak_mib": 100.0,
    }
    assert run.measured(one) == {names[0]: 2.0, names[-1]: 0.5}
    assert run.ratios(one) == (20.0, 8.0)
    assert "all metrics of feedback: 8.0 x the plain read" in run.report(one)


def test_the_peers_are_pinned():
    lines = peers.REQUIREMENTS.read_text("utf-8").splitlines()
    assert all(re.fullmatch(r"#.*|[\w-]+==[\w.]+", line) for line in lines)
    assert {"rectools", "evidently"} <= {line.split("==")[0] for line in lines}


def test_our_side_reads_the_files_and_gives_every_value(tmp_path):
    lists = (
        "SELECT u AS request_id, u AS user_id, u % 3 * 10 + p AS item_id, CAST(p AS INTEGER) AS position, "
    )
    lists += (
        "TIMESTAMP '2026-01-02 10:00:00' AS ts, 1.0 / p AS score, CAST(p = 1 + u % 2 AS INTEGER) AS clicked, "
    )
    lists += "0 AS category FROM range(6) AS users(u), range(1, 4) AS places(p)"
    duckdb.execute(f"COPY ({lists}) TO '{tmp_path}/lists.parquet' (FORMAT parquet)")
    catalog = "SELECT i AS item_id, i % 2 AS category FROM range(40) AS items(i)"
    duckdb.execute(f"COPY ({catalog}) TO '{tmp_path}/catalog.parquet'")
    duckdb.execute(f"COPY (SELECT 1 AS user_id, 1 AS item_id) TO '{tmp_path}/history.parquet'")
    values = peer_own.run(tmp_path, list(peer_own.METRICS))
    assert values["coverage"] == 9 / 40
    assert values["MAP@10"] == pytest.approx((1 + 1 / 2) / 2)
    assert values["AUC by user"] == pytest.approx((1 + 1 / 2) / 2)


def test_the_exponent_of_the_growth_is_that_of_the_cost_in_the_rows():
    def cost(exposures, feedback):
        return {"window": {"cpu": exposures}, "feedback": {"cpu": feedback}}

    assert growth.growth({1_000: cost(1.0, 1.0), 10_000: cost(15.0, 5.0)}) == pytest.approx(1.0)
    assert growth.growth({10_000: cost(100.0, 100.0), 1_000: cost(1.0, 1.0)}) == pytest.approx(2.0)
