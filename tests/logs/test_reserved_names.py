"""The columns that the monitor adds to tables are named like no column of a log."""

from __future__ import annotations

import ast
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest
from pydantic import ValidationError

import monitor
from monitor.core.results import Window
from monitor.settings.logs import LogSettings
from tests.logs.conftest import NOW

ROW = {"request_id": "r", "user_id": "u", "ts": "2026-03-01 10:20:00", "item_id": "a", "score": "x"}
RESERVED = "__monitor_"
HOUR = Window(datetime(2026, 3, 1, 10, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC))
DUNDER = re.compile(r"__\w+__")
ODD = ("__lost", "__raw_score", "__raw_more", "__index", "__length", "__path", "__bucket", "__hash", "__bad")
KINDS = ("csv", "jsonl", "parquet", "lists.jsonl")


def content(row, kind):
    if kind == "csv":
        return pd.DataFrame([row]).to_csv(index=False)
    if kind == "parquet":
        return pd.DataFrame([row])
    return json.dumps({**row, "item_id": ["a"]} if "lists" in kind else row) + "\n"


def names_in(path):
    """The texts and keywords of a file of code that begin with two underscores."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg


def test_every_column_of_our_own_has_the_reserved_prefix():
    files = sorted(Path(monitor.__file__).parent.rglob("*.py"))
    names = {name for file in files for name in names_in(file) if re.fullmatch(r"__[a-z]\w*(\{\})?", name)}
    own = {name for name in names if not DUNDER.fullmatch(name)}
    assert len(own) > 20
    assert {name for name in own if not name.startswith(RESERVED)} == set()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_a_column_with_two_underscores_is_a_column_as_any_other(source_of, engine, written, kind, name):
    written(f"one.{kind}", content({**ROW, name: "7"}, kind))
    source = source_of()
    source.exposures.refresh(engine, NOW)
    assert source.exposures.skipped == ()
    assert source.exposures.bad_values(HOUR) == 1  # the score
    (row,) = source.load(engine, "exposures", HOUR, table="exposures").to_pyarrow().to_pylist()
    assert (row["item_id"], str(row[name])) == ("a", "7")


@pytest.mark.parametrize("name", ["__monitor_lost", "__MONITOR_path"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_a_reserved_name_is_skipped_with_the_reason(source_of, engine, written, kind, name):
    written(f"one.{kind}", content({**ROW, name: "7"}, kind))
    source = source_of()
    source.exposures.refresh(engine, NOW)
    (entry,) = source.exposures.skipped
    wanted = f"column '{name}': names that begin with __monitor_ are the monitor's own; rename it"
    assert entry.reason == wanted


def test_a_config_gives_no_column_a_reserved_name():
    with pytest.raises(ValidationError, match="__monitor_ are the monitor's own"):
        LogSettings(path="x", columns={"__monitor_lost": "lost"})
