"""The config in the README is valid."""

from __future__ import annotations

import re

import ibis.expr.datatypes as dt

from monitor.config.checks.check import check_config
from monitor.config.load import load_config
from monitor.logs.mapping import locate
from tests.conftest import ROOT

SUITE = """
name: ours
expectations:
  - {type: expect_column_values_to_not_be_null, kwargs: {column: item_id}, meta: {rule: item, kind: hard}}
"""


def test_the_config_in_the_readme_is_valid(tmp_path):
    (text,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "our_rules.yaml").write_text(SUITE)
    (tmp_path / "blacklist.csv").write_text("item_id\n1\n")
    (checked,) = check_config(load_config(tmp_path / "config.yaml"), tmp_path)
    assert checked.problems == ()
    assert set(checked.settings.metrics.events) == {"click", "buy"}


def test_the_record_paths_in_the_readme_are_valid():
    text = (ROOT / "README.md").read_text("utf-8")
    types = {"recs": dt.dtype("array<struct<iid: string>>"), "ab": dt.dtype("struct<exp: string>")}
    shown = dict(re.findall(r"`(item_id|exp): (\S+)`", text))
    assert {ours: str(locate(path, types).kind) for ours, path in shown.items()} == {
        "item_id": "array<string>",
        "exp": "string",
    }
