"""The files that come with the monitor and are no code: rule packs, alerts, runbooks, dashboards.

An installed wheel holds them in `monitor/shipped/`. In a checkout they lie where people edit them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from monitor.core.errors import ExpectedError

_PACKAGE: Final = Path(__file__).resolve().parents[1]
# Name, and place in a checkout. pyproject.toml puts each of them into the wheel under its name.
SHIPPED: Final = {
    "packs": "rules/business",
    "alerts": "rules/alerts",
    "runbooks": "docs/runbooks",
    "dashboards": "grafana/dashboards",
    "systemd": "deploy/systemd",
}


class MissingFiles(ExpectedError):
    """The package was installed without its data files."""

    hint = "Install the wheel of recsys-monitor again."


def shipped(name: str, package: Path = _PACKAGE) -> Path:
    """The folder of one kind of these files.

    Args:
        name: one of SHIPPED.
        package: the folder of the package `monitor`.

    Raises:
        MissingFiles: the package was installed without its data files.

    >>> (shipped("runbooks") / "RecsysWatchdog.md").is_file()
    True
    """
    for folder in (package / "shipped" / name, package.parent / SHIPPED[name]):
        if folder.is_dir():
            return folder
    raise MissingFiles(f"the {name} are missing: the package was installed without its data files")
