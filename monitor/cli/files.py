"""`recsys-monitor files`: where the files are that Prometheus, Grafana, systemd and people need."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from monitor.cli.terminal import OK, claim_output, printing, write
from monitor.core.shipped import SHIPPED, shipped

EPILOG = (
    "Example: recsys-monitor files alerts\n\n"
    "Exit codes: 0 the folder is printed, 2 a wrong usage, or a package without its files."
)

# The choices of the argument: the names of SHIPPED.
Name = StrEnum("Name", {name.upper(): name for name in SHIPPED})  # type: ignore[misc]


def files(
    name: Annotated[
        Name | None,
        typer.Argument(
            metavar="NAME",
            help="The name of one folder: packs, alerts, runbooks, dashboards or systemd. Default: all.",
        ),
    ] = None,
) -> None:
    """Print the folders of the files that come with the monitor: rule packs, alerts, runbooks, dashboards.

    Copy them from there to Prometheus, Grafana and systemd; an upgrade brings new ones.
    """
    claim_output()
    with printing():
        if name is not None:
            write(f"{shipped(name)}")
        else:
            width = max(map(len, SHIPPED))
            write("\n".join(f"{one:{width}}  {shipped(one)}" for one in SHIPPED))
    sys.exit(OK)
