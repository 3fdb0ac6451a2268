"""What docs/health.md says holds: its config is good, its example comes out, its gauges are there."""

from __future__ import annotations

import re

import pytest
import yaml

from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.core.results import Result, Status
from monitor.health.score import health
from monitor.health.specs import HEALTH_SPECS
from monitor.service.prometheus.families import all_families
from tests.conftest import ROOT

TEXT = (ROOT / "docs" / "health.md").read_text("utf-8")


def test_the_config_of_the_page_is_good_and_the_score_is_as_it_says(tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)
    path = tmp_path / "config.yaml"
    path.write_text(example)
    (checked,) = check_config(load_config(path), tmp_path)
    assert checked.problems == ()
    settings = checked.settings.health
    assert yaml.safe_load(example)["recommenders"][0]["health"]["min_weight"] == settings.min_weight
    bad = [part.zero for part in settings.parts]
    values = [0.95, *bad[1:]]
    results = [
        Result(metric=part.metric, labels=part.labels, status=Status.OK, value=value, definition="1")
        for part, value in zip(settings.parts, values, strict=True)
    ]
    score, coverage, *_ = health(results, settings)
    assert (score.value, coverage.value) == (pytest.approx(0.1875), pytest.approx(0.5))


def test_every_gauge_of_the_score_is_declared_and_has_no_slices():
    named = set(re.findall(r"`(recsys_\w+)`", TEXT))
    assert len(named) == 4
    assert named <= all_families().keys()
    assert HEALTH_SPECS.keys() == {"health_score", "health_part"}
    assert not [name for name in all_families() if name.startswith("recsys_slice_health")]
