"""The registry of causes: each has a way to be found, a name of its own, and its row on the page."""

import re

from monitor.models.diagnosis.registry import CAUSES, GAP_CAUSES, LOOKS, RESTS
from tests.conftest import ROOT


def test_each_cause_has_a_name_of_its_own_and_something_that_looks_for_it():
    assert len(set(CAUSES)) == len(CAUSES)
    for one in GAP_CAUSES:
        assert one.swaps or one.features or one.rows or one.rest, one.name


def test_every_function_of_a_cause_judges_a_gap_once():
    looks = [look for one in GAP_CAUSES for look in (*one.swaps, *one.features, *one.rows)]
    assert len(LOOKS) == len(set(LOOKS)) == len(looks)
    assert set(LOOKS) == set(looks)
    assert [one.rest for one in GAP_CAUSES if one.rest] == list(RESTS)


def test_features_are_judged_before_rows():
    rows = {look for one in GAP_CAUSES for look in one.rows}
    assert [look in rows for look in LOOKS] == sorted(look in rows for look in LOOKS)


def test_the_page_has_a_row_for_each_cause_in_this_order():
    page = (ROOT / "docs" / "models.md").read_text("utf-8")
    table = page.split("| cause | signs |\n")[1].split("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == CAUSES
