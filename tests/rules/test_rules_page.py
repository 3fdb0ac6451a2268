"""docs/rules.md says what the packs and the expectations say."""

from __future__ import annotations

import re

import pytest

from monitor.rules.list_tables import LIST_COLUMNS
from monitor.rules.reference import PAGE, page
from monitor.rules.rule import TABLES


def test_the_reference_is_the_one_that_the_code_gives():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run python -m monitor.rules.reference"


def test_every_table_and_every_list_column_is_explained():
    text = PAGE.read_text(encoding="utf-8")
    for name in (*TABLES, *LIST_COLUMNS):
        assert re.search(rf"^\| `{name}` \|", text, re.M), name


def test_a_page_without_its_marks_is_refused():
    with pytest.raises(ValueError, match="must hold"):
        page("# Rules\n")
