"""The command `report`: what happened in a period, as a page or as a text for a chat."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from monitor.cli.options import ConfigPath, From, Only, To
from monitor.cli.terminal import NOT_JUDGED, OK, claim_output, note, printing, say, span, write

WEEK = timedelta(weeks=1)
EPILOG = (
    "Example: recsys-monitor report --config shop.yaml --from 2026-03-02 --to 2026-03-09 -o report.html\n\n"
    "Exit codes: 0 written, 2 a wrong config or usage, or no history that can be read, "
    "3 written, but no window of the period was judged."
)


class ReportFormat(StrEnum):
    """The output formats of `report`."""

    HTML = "html"
    TEXT = "text"


def report(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The file to write. Default, and -: standard output."
        ),
    ] = None,
    form: Annotated[
        ReportFormat,
        typer.Option("--format", "-f", help="The output format; text is a summary for a chat."),
    ] = ReportFormat.HTML,
) -> None:
    """Report on a period: state, trends, incidents with their causes, what changed, and the period before.

    It reads the history and changes nothing. Default: the last seven whole days. The page is one file that
    loads nothing. It has a section for each recommender.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli.export import check_name
    from monitor.config.load import load_config
    from monitor.core.results import Window
    from monitor.history.readonly import ReadOnlyHistory
    from monitor.report.period import read_period
    from monitor.report.period_page import as_html, as_text

    settings = load_config(config)
    if only is not None:
        check_name(only, settings)
    now = datetime.now(UTC)
    until = last or now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = first or until - WEEK
    if since >= until:
        raise typer.BadParameter("must be before today, if there is no --to", param_hint="--from")
    period = Window(since, until)
    with ReadOnlyHistory.open(settings.history.location(settings.state)) as history:
        reports = [
            read_period(history, one, period, now)
            for one in settings.recommenders
            if only is None or one.name == only
        ]
    text = as_html(reports, now) if form is ReportFormat.HTML else as_text(reports) + "\n"
    if output is None or str(output) == "-":
        with printing():
            write(text, newline=False)
    else:
        output.write_text(text, "utf-8")
        say(f"wrote {output}")
    empty = [one.recommender for one in reports if one.is_empty]
    for name in empty:
        note(f"{name}: no window of this period was judged")
    sys.exit(NOT_JUDGED if len(empty) == len(reports) else OK)
