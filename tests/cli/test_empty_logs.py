"""A log without a row in any window: the note names the cause and a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.cli.judge import judge

CONFIG = """\
recommenders:
  - name: shop
    logs: {exposures: {path: "*.csv"}}
    rules: [{pack: lists}]
"""
HEADER = "request_id,user_id,ts,item_id\n"
ROW = "r1,u1,2026-01-05T10:00:00Z,i1\n"
UNREAD = (
    "'request_id' or 'ts' is empty or cannot be read in 2 of 2 rows; `recsys-monitor validate` shows which"
)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a": HEADER + "r1,u1,soon,i1\nr2,u2,,i2\n"}, "{a}: " + UNREAD),
        ({"a": HEADER + ROW.replace("2026", "2106")}, "{a}: 1 of 1 rows are later than their file"),
        ({"a": ""}, "no row in {a}"),
        ({"a": HEADER, "b": ""}, "no row in 2 files, such as {a}"),
        ({"a": HEADER + ROW + "r2,u"}, "{a}: its last line has no end yet: still being written; it is read"),
        ({"a": "request_id,ts,item_id\nr1,2026,i\n"}, "{a}: column user_id (looked for as"),
        ({"a": "", "b": "x,x\n1,2\n"}, "1 of 2 files are skipped, such as {b}: the header names"),
    ],
)  # fmt: skip
def test_the_note_begins_with_the_cause(
    files: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {name: tmp_path / f"{name}.csv" for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    (tmp_path / "shop.yaml").write_text(CONFIG)
    assert judge(tmp_path / "shop.yaml", None, None, None)[1] == 3
    assert f"shop: exposures: {said.format(**paths)}" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir(mode=0)
    (tmp_path / "shop.yaml").write_text(CONFIG.replace("*.csv", "logs/*.csv"))
    assert judge(tmp_path / "shop.yaml", None, None, None)[1] == 3
    assert f"shop: exposures: {folder}: cannot be listed: Permission denied" in capsys.readouterr().err


def test_an_unreadable_file_that_is_older_than_all_windows_has_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"r{number},u1,2026-01-05T10:{number:02}:00Z,i{number}\n" for number in range(60)]
    (tmp_path / "good.csv").write_text(HEADER + "".join(rows))
    old = tmp_path / "old.csv"
    old.write_text("x,x\n1,2\n")
    os.utime(old, (1.7e9, 1.7e9))
    (tmp_path / "shop.yaml").write_text(CONFIG)
    judge(tmp_path / "shop.yaml", None, None, None)
    assert (
        f"shop: exposures: 1 of 2 files are skipped, such as {old}: the header names"
        in capsys.readouterr().err
    )
