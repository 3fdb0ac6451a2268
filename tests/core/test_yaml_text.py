"""A YAML file is read as a whole or refused, whatever stands in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.core.yaml_text import MAX_BYTES, YamlProblem, parse_yaml, read_yaml


def test_a_large_file_in_any_script_is_refused_and_never_read_in_part(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    line = "- " + "é" * 50 + "\n"  # more bytes than characters
    path.write_text(line * (MAX_BYTES // len(line.encode()) + 1), "utf-8")
    with pytest.raises(YamlProblem) as refused:
        read_yaml(path)
    assert str(refused.value) == "is larger than 1 MiB, which is too large"
    path.write_text(line * (MAX_BYTES // len(line.encode())), "utf-8")
    assert set(read_yaml(path)) == {"é" * 50}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a: !!bool maybe", "truth value"),
        ('a: !!int ""', "number"),
        ('a: !!float ""', "number"),
        ("a: !!timestamp soon", "date"),
        ('!!int "": 1', "number"),
        ("a: 2026-02-30", "date"),
    ],
)
def test_a_value_that_is_not_of_its_tag_is_named_with_its_line(text: str, kind: str) -> None:
    with pytest.raises(YamlProblem, match=f"looks like a {kind} but is not one") as refused:
        parse_yaml(f"first: 1\n{text}")
    assert refused.value.place.startswith("line 2, column ")
