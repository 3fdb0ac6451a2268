"""Each cause has a page that says what to check, and the runbook of the alert names it."""

from __future__ import annotations

import re

import pytest

from monitor.anomalies.causes import CAUSES
from monitor.service.prometheus.families import all_families
from tests.conftest import ROOT

RUNBOOKS = ROOT / "docs" / "runbooks"


def test_every_cause_of_an_anomaly_has_a_page_that_the_runbook_names() -> None:
    folder = RUNBOOKS / "causes"
    assert {path.stem for path in folder.glob("*.md")} == set(CAUSES)
    runbook = (RUNBOOKS / "RecsysAnomaly.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[(\w+)\]\(causes/\1\.md\)", runbook)) == set(CAUSES)


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_the_page_of_a_cause_says_what_it_looks_like_what_to_check_and_whom_to_call(cause: str) -> None:
    page = (RUNBOOKS / "causes" / f"{cause}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {cause}\n")
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    assert parts[1::2] == ["What it looks like", "What to check first", "Who to call"]
    assert re.findall(r"^(\d)\. ", parts[4], re.MULTILINE) == ["1", "2", "3"]
    for family in re.findall(r"\brecsys_[a-z_]+[a-z]\b", page):
        assert family in all_families(), family
    for link in re.findall(r"\]\(([^)#]+\.md)", page):
        assert (RUNBOOKS / "causes" / link).resolve().is_file(), link
