"""docs/benchmarks.md: the tables of the last runs that were kept, each between two marks of its own."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


def keep(section: str, text: str, page: Path = PAGE) -> None:
    """Put the text of a run in the place of the one before it."""
    begin, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
    found = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    before = page.read_text("utf-8")
    after, places = found.subn(lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", before)
    if places != 1:
        raise ValueError(f"{page} has {places} places for {section}, not one")
    page.write_text(after, "utf-8")


def machine() -> str:
    """What a run was made on: the ratios mean something elsewhere, the seconds do not."""
    day = datetime.now(UTC).date().isoformat()
    return f"Measured on {day} with Python {platform.python_version()} on {os.cpu_count()} cores."
