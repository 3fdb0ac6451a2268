"""`recsys-monitor report` as a person and a cron job run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run_monitor
from tests.report.period_world import judged

PERIOD = ("--from", "2026-03-03", "--to", "2026-03-04")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reported")
    judged(folder)
    return folder


def test_the_page_is_written_to_a_file_and_the_history_stays_as_it_was(folder: Path) -> None:
    before = (folder / "state" / "history.sqlite").read_bytes()
    ran = run_monitor("report", "-c", "shop.yaml", *PERIOD, "-o", "report.html", cwd=folder)
    assert (ran.code, ran.out, ran.err) == (0, "wrote report.html\n", "")
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert "rule blacklist (hard)" in page
    assert (folder / "state" / "history.sqlite").read_bytes() == before
    for standard_output in ((), ("-o", "-")):
        printed = run_monitor("report", "-c", "shop.yaml", *PERIOD, *standard_output, cwd=folder)
        assert printed.out.partition("Made at")[0] == page.partition("Made at")[0]
    assert not (folder / "-").exists()


def test_a_text_for_a_chat_is_printed(folder: Path) -> None:
    ran = run_monitor("report", "-c", "shop.yaml", *PERIOD, "--format", "text", cwd=folder)
    assert ran.code == 0
    assert ran.out.startswith("shop, 2026-03-03 00:00 to 2026-03-04 00:00 UTC\n")
    assert "✗ rule blacklist (hard): since 2026-03-03 12:00 UTC, still violated at the end" in ran.out


def test_an_empty_period_is_written_and_ends_with_3(folder: Path) -> None:
    ran = run_monitor("report", "-c", "shop.yaml", "-f", "text", cwd=folder)  # the last seven days
    assert ran.code == 3
    assert "No window of this period was judged: nothing is known about it." in ran.out
    assert ran.err == "shop: no window of this period was judged\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-r", "shp"), "no recommender is called 'shp'"),
        (("--from", "2026-03-04", "--to", "2026-03-03"), "must be later than --from"),
        (("--from", "2199-01-01"), "must be before today"),
        (("-o", "no/such/folder/report.html"), "no/such/folder/report.html"),
    ],
)
def test_wrong_usage_is_a_sentence_and_ends_with_2(
    arguments: tuple[str, ...], said: str, folder: Path
) -> None:
    ran = run_monitor("report", "-c", "shop.yaml", *arguments, cwd=folder)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert "Traceback" not in ran.err


def test_without_a_history_it_says_what_writes_one_and_makes_none(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text((folder / "shop.yaml").read_text())
    ran = run_monitor("report", "-c", "shop.yaml", cwd=tmp_path)
    assert ran.code == 2
    assert "there is no history at" in ran.err
    assert not (tmp_path / "state").exists()
