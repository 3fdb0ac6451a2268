"""docs/rollups.md names every metric that adds up over days once, in the row of how it does."""

from __future__ import annotations

import re
from pathlib import Path

from monitor.docs.rollup_table import page
from monitor.metrics.catalogue import SPECS, adds_up
from monitor.rollups.addends import ADDENDS

PAGE = (Path(__file__).parents[2] / "docs" / "rollups.md").read_text("utf-8")
WITHOUT = {("score_health", "distinct")}


def rows() -> dict[str, list[str]]:
    """The first cell of each row of the table -> the metrics that the second one names."""
    table = PAGE.split("| over days | metrics |")[1].split("\n\n")[0]
    found = {}
    for line in table.splitlines()[2:]:
        how, names = line.strip("| ").split(" | ")
        found[how] = [name for name in re.findall(r"`(\w+)`", names) if name in SPECS]
    return found


def adding() -> set[str]:
    """The metrics of which any part adds up."""
    return {name for name, spec in SPECS.items() if any(adds_up(name, by) for by in spec.by or ("",))}


def test_the_table_is_the_one_that_the_code_gives() -> None:
    assert page(PAGE) == PAGE, "run: python -m monitor.docs.rollup_table"


def test_each_metric_that_adds_up_is_in_one_row() -> None:
    named = [name for names in rows().values() for name in names]
    assert sorted(named) == sorted(adding())


def test_each_row_says_how_its_metrics_add_up() -> None:
    for how, names in rows().items():
        for name in names:
            for by in SPECS[name].by or ("",):
                found = adds_up(name, by)
                if (name, by) in WITHOUT:
                    assert found is None, (name, by)
                else:
                    assert found is not None, (name, by)
                    assert found.bounded == ("largest error" in how), name


def test_each_sum_has_its_own_name() -> None:
    assert len({one.name for one in ADDENDS}) == len(ADDENDS)
