"""The options and output formats that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

ConfigPath = Annotated[
    Path, typer.Option("--config", "-c", help="The config file.", metavar="FILE", show_default=False)
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="From this time on, as 2026-01-31 or 2026-01-31T10:00:00Z."),
]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Up to this time (not included).")]
Only = Annotated[
    str | None, typer.Option("--recommender", "-r", metavar="NAME", help="Only this recommender.")
]


class Format(StrEnum):
    """The output formats of `check`, and of others without a page."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"


class CompareFormat(StrEnum):
    """The output formats of `compare` and `gate`."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    HTML = "html"


class PageFormat(StrEnum):
    """The output formats of `survey` and `forecast`."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"
