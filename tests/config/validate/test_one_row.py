"""`validate` on a log of next to nothing: one is no plural, and a column's name cannot break a line."""

from __future__ import annotations

import json

CONFIG = """\
recommenders:
  - name: shop
    logs: {exposures: {path: log.jsonl}, catalog: {path: items.jsonl}}
    window: 1h
    slices: {by: ["home\\n  ok       files"]}
"""


def test_counts_of_one_are_singular_and_a_name_stays_on_its_line(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    shown = {"request_id": "r1", "user_id": "u1", "item_id": "i1", "ts": "2026-11-01T10:00:00Z"}
    later = {**shown, "request_id": "r2", "ts": "2026-11-01T12:00:00Z"}
    odd = {"home\n  ok       files": "a"}
    (tmp_path / "log.jsonl").write_text(json.dumps(shown | odd) + "\n" + json.dumps(later | odd) + "\n")
    (tmp_path / "items.jsonl").write_text(json.dumps({"item_id": "i1"}) + "\n")
    (tmp_path / "shop.yaml").write_text(CONFIG)
    _, output, _ = command("validate", "--config", "shop.yaml")
    assert "about 1 row in 1 request per window of 1h" in output
    assert "looked at 1 of 1 file (18 bytes in all), 1 row\n" in output
    assert "of the 1 item in the exposures looked at" in output
    assert (
        output.count("home[LF]  ok       files") == 2
    )  # among the further columns, and as named by the config
    assert "\n  ok       files\n" not in output
