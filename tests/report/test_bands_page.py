"""What docs/bands.md says holds: its config is good, its numbers are the code's, its gauges are exported."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from monitor.anomalies.schedule import CHECKS
from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.metrics.catalogue import SPECS
from monitor.service.prometheus.families import all_families
from monitor.settings.bands import BandSettings
from monitor.statistics.bands import scales
from monitor.statistics.bands.false_alarms import EASIER, bounds
from monitor.statistics.bands.spans import SPANS
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "bands.md").read_text("utf-8")
PLAIN = re.sub(r"\s+", " ", TEXT)
CONFIG, _, CHANGE = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("text", [CONFIG, CONFIG + CHANGE.partition("\n")[2]])
def test_the_config_of_the_page_is_good_with_the_new_level_as_well(tmp_path, text: str):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    (checked,) = check_config(load_config(path), tmp_path)
    assert checked.problems == ()
    assert checked.settings.bands is not None
    changes = checked.settings.bands.changes
    assert len(changes) == text.count("what:")
    assert {metric for one in changes for metric in one.metrics} <= SPECS.keys()


def test_every_number_of_the_page_is_that_of_the_code():
    asked = BandSettings()
    for said in (
        f"reaches back {asked.history // timedelta(days=1)} days (`history`)",
        f"In its first {asked.history // timedelta(days=1) // 4} days (a quarter of `history`)",
        "the mean of the last {}, {}, {} and {} windows".format(*SPANS[1:]),
        f"A band needs {asked.least} windows (`least`)",
        f"below {scales.LEVEL_FLOOR * 100:.0f} % of the value ({scales.COUNT_FLOOR * 100:.0f} % of a count)",
        f"by default {asked.false_alarms} a week",
        f"below {asked.least_change * 100:.0f} % (`least_change`)",
        f"below {asked.least_volume_change * 100:.0f} % of a count (`least_volume_change`)",
        f"below {EASIER} of the smallest change that counts",
    ):
        assert said in PLAIN, said


def test_the_bounds_of_the_example_are_those_of_a_hundred_series_and_hourly_windows():
    asked = BandSettings()
    one = asked.false_alarms / len(CHECKS) / 168
    total, other = (bounds(one * part, [4 * 168 / 4]).spans[:, 0] for part in (0.7 / 2, 0.3 / 98))
    assert (
        f"beyond about {total[1]:.1f} standard deviations, and any other series beyond {other[1]:.1f}"
        in PLAIN
    )
    assert f"For one window alone the bounds are about {total[0]:.0f} and {other[0]:.0f}" in PLAIN
    assert "with 100 series, hourly windows and four weeks of past" in PLAIN


def test_every_gauge_and_every_page_that_is_named_is_there():
    named = set(re.findall(r"`(recsys_\w+)`", TEXT))
    assert len(named) == 11
    assert named <= all_families().keys()
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", TEXT)}
    local = sorted(link for link in links if not link.startswith("https://"))
    assert len(local) == 9
    assert [link for link in local if not (ROOT / "docs" / link).is_file()] == []
