"""What is drawn across all graphs of a board: alerts, maintenance, and changes.

The builders lack the fields of a Prometheus annotation, so these are written in the shape of the JSON.
"""

from __future__ import annotations

from typing import Any, Final

from grafana.panels import OURS, SCRAPED, ours

_BUILT_IN: Final = {
    "builtIn": 1,
    "datasource": {"type": "grafana", "uid": "-- Grafana --"},
    "enable": True,
    "hide": True,
    "iconColor": "blue",
    "name": "Annotations & Alerts",
    "type": "dashboard",
}


def annotations() -> list[dict[str, Any]]:
    """Alerts and maintenance as spans, and changes at the time that their gauge gives."""
    alerts = (
        "max by (alertname, severity, recommender, rule, cause, metric) "
        '(ALERTS{alertname=~"Recsys.+", alertstate="firing", severity=~"page|ticket", '
        'recommender=~"$recommender|"})'
    )
    return [
        _BUILT_IN,
        _of("Alerts", "red", alerts, "{{alertname}}", "{{recommender}} {{rule}} {{cause}} {{metric}}"),
        _of(
            "Maintenance",
            "yellow",
            f"max by (recommender) (recsys_maintenance{OURS}) == 1",
            "Maintenance",
            "{{recommender}}",
        ),
        _change("New model", "purple", "model", "Another model serves most requests"),
        _change("New list", "orange", "list", "A list file of a rule was replaced"),
        _change("Declared change", "blue", "declared", "A declared change took effect"),
        _at(
            "New configuration",
            "green",
            f"max by (instance) (recsys_config_reload_timestamp_seconds{SCRAPED})",
            "The configuration was read",
            "{{instance}}",
        ),
    ]


def _change(name: str, color: str, kind: str, title: str) -> dict[str, Any]:
    selector = ours(f'kind="{kind}"')
    expression = f"max by (recommender) (recsys_change_timestamp_seconds{selector})"
    return _at(name, color, expression, title, "{{recommender}}")


def _at(name: str, color: str, expression: str, title: str, text: str) -> dict[str, Any]:
    """An annotation at the time that is the value of its series; Grafana wants milliseconds."""
    return _of(name, color, f"1000 * {expression}", title, text) | {"useValueForTime": True}


def _of(name: str, color: str, expression: str, title: str, text: str) -> dict[str, Any]:
    return {
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "enable": True,
        "expr": expression,
        "hide": False,
        "iconColor": color,
        "name": name,
        "step": "60s",
        "textFormat": text,
        "titleFormat": title,
        "useValueForTime": False,
    }
