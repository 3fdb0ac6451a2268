"""The files of the reports on whole periods: their names, and which there are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from monitor.core.results import Window

_FORM: Final = "%Y-%m-%d"
_NAME: Final = re.compile(r"([a-z0-9][a-z0-9_-]{0,62})_(\d{4}-\d\d-\d\d)_(\d{4}-\d\d-\d\d)\.html")


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A report in the folder; `first` and `last` are the days on which its period begins and ends."""

    name: str
    recommender: str
    first: str
    last: str


def file_name(recommender: str, span: Window) -> str:
    """The name of a report.

    >>> from datetime import UTC, datetime
    >>> week = Window(datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 9, tzinfo=UTC))
    >>> file_name("shop", week), parse_name("shop_2026-03-02_2026-03-09.html").recommender
    ('shop_2026-03-02_2026-03-09.html', 'shop')
    """
    return f"{recommender}_{span.start:{_FORM}}_{span.end:{_FORM}}.html"


def parse_name(name: str) -> ReportFile | None:
    """The report of a file's name; None for any other file.

    >>> parse_name("../shop_2026-03-02_2026-03-09.html") is None
    True
    """
    found = _NAME.fullmatch(name)
    return None if found is None else ReportFile(name, *found.groups())


def reports_in(folder: Path) -> list[ReportFile]:
    """The reports of a folder, the newest first; none if it cannot be read."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [one for name in names if (one := parse_name(name)) is not None]
    return sorted(found, key=lambda one: (one.last, one.first, one.recommender), reverse=True)
