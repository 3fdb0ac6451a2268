"""Digests are stored: another value for the same content would judge every history anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.anomalies.band_check import BandCheck
from monitor.core.digest import digest
from monitor.core.results import Result, Status
from monitor.experiments.assignments import KeptAssignments
from monitor.health.score import settings_digest
from monitor.history.rows import series_digest
from monitor.rules.evidence import readable_rows
from monitor.rules.list_files import ListFiles
from monitor.rules.suites import load_rules
from monitor.settings.bands import BandSettings
from monitor.settings.health import HealthSettings
from monitor.settings.rules import RuleSettings

SUITE = """
name: ours
expectations:
  - type: expect_column_values_to_be_between
    kwargs: {column: score, min_value: 0, mostly: 0.999}
    meta: {rule: score-low, kind: soft}
"""


def test_the_digest_is_the_start_of_sha256():
    assert digest("abc", 8) == "ba7816bf"
    assert digest(b"abc", 12) == "ba7816bf8f01"
    assert digest("abc", 64) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.mark.parametrize("length", [0, -1, 65])
def test_a_digest_has_1_to_64_characters(length):
    with pytest.raises(ValueError, match="a digest has 1 to 64 characters"):
        digest("abc", length)


def test_the_names_of_series_stay_the_same():
    one = Result(metric="coverage", status=Status.OK, definition="1", labels={"by": "pv", "scene": "für"})
    assert series_digest(one) == "d6c9de516be8df86d03446daa95c40da"


def test_the_definitions_of_rules_bands_and_health_stay_the_same(tmp_path):
    (tmp_path / "ours.yaml").write_text(SUITE)
    (rule,) = load_rules([RuleSettings(suite="ours.yaml")], tmp_path)
    health = HealthSettings.model_validate({"parts": [{"metric": "recall", "zero": 0, "one": 0.3}]})
    assert rule.definition == "2daa2c45a456"
    assert settings_digest(health) == "86c06d91a280"
    assert BandCheck("shop", "bands", BandSettings())._band_definition == "12;of=180d35d1a02c"


def test_the_names_of_tables_folders_and_lists_stay_the_same(tmp_path):
    (tmp_path / "list.txt").write_text("1\n2\n")
    assert KeptAssignments(Path("x"), "arm").folder.name == "18b576b501e5c586"
    assert ListFiles().read(str(tmp_path / "list.txt"), "item_id").version == "53d2f581afa8"


def test_the_names_of_views_in_spark_stay_the_same():
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed; `make test` installs it")
    from monitor.engines.spark import view_name

    assert view_name("user items") == "t_9df6577c_user_items"


def test_the_users_in_evidence_stay_the_same():
    (row,) = readable_rows([{"user_id": "ann\ud800"}], salt="salt")
    assert row == {"user_id": "4c88b499bcd6"}
