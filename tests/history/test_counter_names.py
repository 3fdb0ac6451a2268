"""Each counter is named in one place: what is counted, exported and shown cannot differ."""

from __future__ import annotations

import re
from pathlib import Path

from monitor.history import counters
from monitor.service.prometheus.families import MONITOR, RULES

SOURCE = Path(counters.__file__).resolve().parents[1]


def test_every_counter_is_exported_and_every_exported_counter_is_counted() -> None:
    exported = [family.name for family in (*RULES, *MONITOR) if family.kind == "counter"]
    assert sorted(exported) == sorted(counters.NAMES)


def test_the_name_of_a_counter_is_written_once() -> None:
    text = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    for name in counters.NAMES:
        assert len(re.findall(f'"{name}"', text)) == 1, name
