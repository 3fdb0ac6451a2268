"""The queries of the dashboards, as Grafana would send them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import pytest

from tests.processes import ROOT

VARIABLES: Final = {
    "$__rate_interval": "1m",
    "$__range": "1h",
    "$__interval": "1s",
    "$job": ".+",
    "$instance": ".+",
    "$recommender": ".*",
    "$experiment": ".*",
    "$dimension": ".+",
    "$slice": "(?s:.*)",
}
_OF_BANDS: Final = re.compile(r"\brecsys_(slice_)?(expected|deviation|daily|drift|anomaly)")
_OF_DAYS: Final = re.compile(r'\brecsys_(platform|substitution|forecast)|dimension="rollup"')
Needs = Literal["windows", "bands", "days"]
"""What a query needs: windows of a log, bands of their past, or what is judged once a day over weeks."""


def queries(needs: Needs) -> Iterator[Any]:
    """Each query of each panel that needs this, those of closed rows too."""
    for path in sorted((ROOT / "grafana/dashboards").glob("*.json")):
        board = json.loads(path.read_text("utf-8"))
        for panel in flat(board["panels"]):
            for number, target in enumerate(panel.get("targets", [])):
                expression = target["expr"]
                if _needs(expression) == needs:
                    name = f"{path.stem}: {panel['title']} {number + 1}"
                    yield pytest.param(filled(expression), id=name)


def _needs(expression: str) -> Needs:
    if _OF_DAYS.search(expression):
        return "days"
    return "bands" if _OF_BANDS.search(expression) else "windows"


def filled(expression: str) -> str:
    """The query with a value in the place of each variable."""
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


def flat(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The panels, and those within closed rows."""
    for panel in panels:
        yield panel
        yield from flat(panel.get("panels", []))
