"""The commands that read the history. Each one is a thin call into the layers below."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from monitor.cli.options import ConfigPath, From, Only, To
from monitor.cli.terminal import (
    NOT_JUDGED,
    OK,
    Listing,
    claim_output,
    out,
    printing,
    span,
    write,
)

history_app = typer.Typer(help="Read the stored results.", no_args_is_help=True)


@history_app.command(
    "export",
    epilog="Example: recsys-monitor history export --config shop.yaml --from 2026-01-31 | jq .status\n\n"
    "Exit codes: 0 printed, 2 a wrong config or usage, or no history that can be read.",
)
def history_export(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
) -> None:
    """Print every stored result, one JSON object a line, in the format of `check --format json`."""
    first, last = span(start, end)
    claim_output()
    from monitor.cli.export import export

    with printing():
        for line in export(config, first, last, only):
            write(line)


@history_app.command(
    "gates",
    epilog="Example: recsys-monitor history gates --config shop.yaml | jq .outcome\n\n"
    "Exit codes: 0 printed, 2 a wrong config or usage, or no history that can be read.",
)
def history_gates(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
) -> None:
    """Print each run of a gate, with its overrides: one launch report as JSON a line, oldest first."""
    first, last = span(start, end)
    claim_output()
    import json

    from monitor.cli.gate import gate_runs

    with printing():
        for run in gate_runs(config, only, first, last):
            write(json.dumps(run.content, ensure_ascii=True, allow_nan=False))


@history_app.command(
    "bands",
    epilog="Example: recsys-monitor history bands --config shop.yaml --from 2026-02-01\n\n"
    "Fill the history first: recsys-monitor backfill --config shop.yaml --from 2026-01-01 --to 2026-03-01\n\n"
    "Exit codes: 0 printed, 2 a wrong config or usage, no bands, or no history that can be read, 3 the "
    "history has no window in this span, or no series has a band there.",
)
def history_bands(
    config: ConfigPath,
    start: From = None,
    end: To = None,
    only: Only = None,
    output: Annotated[
        Listing, typer.Option("--format", "-f", help="The output format; json is one object a line.")
    ] = Listing.TABLE,
) -> None:
    """Print the tickets and pages that the bands of this config would have raised in the past.

    It judges the measured windows of the history again, in a copy and in the order of
    time. The history does not change. So you can try `false_alarms`, `history`,
    `holidays` or `sliced` before you rely on them. The bands of the first four weeks
    of a history are wide: start later with --from.
    """
    first, last = span(start, end)
    claim_output()
    from monitor.cli.look_back import looked_back
    from monitor.report.past_alerts import as_json, print_past_alerts

    code = NOT_JUDGED
    with printing():
        for name, alerts, length in looked_back(config, first, last, only):
            code = OK
            if output is Listing.TABLE:
                print_past_alerts(name, alerts, length, out)
            elif alerts:
                write(as_json(name, alerts))
    sys.exit(code)
