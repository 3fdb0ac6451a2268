"""Write grafana/dashboards/*.json: python -m grafana.generate

The dashboards are code, so that a change of a name is one line and a test can hold every expression
against what is exported. Edit here, run, commit both.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as shapes

from grafana import actions, anomalies, models
from grafana.health import reach, scores, variety, volumes
from grafana.inside import itself, logs
from grafana.panels import DATASOURCE, Panel
from grafana.platform import platform
from grafana.states import rules, states

DashboardRow = tuple[str, Sequence[Panel]]
FOLDER: Final = Path(__file__).resolve().parent / "dashboards"


def board(uid: str, title: str, description: str, rows: Iterable[DashboardRow]) -> dashboard.Dashboard:
    """A dashboard of these rows, in which one chooses the recommenders."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["recsys-monitor", "generated"])
        .timezone("browser")
        .refresh("30s")
        .time("now-6h", "now")
        .editable()
        .tooltip(shapes.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("recommender")
            .label("Recommender")
            .datasource(DATASOURCE)
            .query("label_values(recsys_recommender_error, recommender)")
            .refresh(shapes.VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(shapes.VariableSort.ALPHABETICAL_ASC)
            .multi(True)
            .include_all(True)
            .all_value(".*")
            .current(shapes.VariableOption(text="All", value="$__all", selected=True))
        )
    )
    number = count(1)
    for name, panels in rows:
        made = made.with_row(dashboard.Row(name).id(next(number)))
        for panel in panels:
            made = made.with_panel(panel.id(next(number)))
    return made


def overview() -> dashboard.Dashboard:
    """All recommenders: their states, rules against thresholds, health with intervals, the monitor itself."""
    return board(
        "recsys-overview",
        "Recommenders: overview",
        "States of the recommenders, rules against thresholds, health metrics with intervals.",
        (
            ("States", states()),
            ("Rules against thresholds", rules()),
            ("Volume", volumes()),
            ("Reach", reach()),
            ("Variety and concentration", variety()),
            ("Scores and propensities", scores()),
            ("Logs and windows", logs()),
            ("The monitor itself", itself()),
        ),
    )


def feedback(shown: str) -> dashboard.Dashboard:
    """What users did with the lists; `shown` is the text of the dashboards that hold the other metrics."""
    elsewhere = re.findall(r"\brecsys_\w+", shown)
    return board(
        "recsys-feedback",
        "Recommenders: what users did",
        "Accuracy of the lists and scores, clicks and other actions, experiments.",
        actions.rows(elsewhere),
    )


def of_models() -> dashboard.Dashboard:
    """The models: their AUC in training, test and service, and why it falls."""
    return board(
        "recsys-models",
        "Recommenders: models",
        "AUC of the models by split, the gaps between the splits with their causes, features in service.",
        (
            ("Gaps and their causes", models.gaps()),
            ("Splits", models.splits()),
            ("Features and scores", models.features()),
        ),
    )


def of_the_past() -> dashboard.Dashboard:
    """What is unlike the past of a recommender: causes, deviations from bands, drift."""
    return board(
        "recsys-anomalies",
        "Recommenders: anomalies",
        "Causes of anomalies, the series that are out of their bands, and metrics that drift over days.",
        (
            ("Anomalies", anomalies.causes()),
            ("Deviations", anomalies.deviations()),
            ("Drift", anomalies.drifts()),
            ("Platform", platform()),
            ("Forecast", anomalies.forecasts()),
        ),
    )


def dashboards() -> dict[str, str]:
    """The text of every dashboard by the name of its file."""
    first, unlike = _text(overview()), _text(of_the_past())
    return {
        "overview.json": first,
        "anomalies.json": unlike,
        "feedback.json": _text(feedback(first + unlike)),
        "models.json": _text(of_models()),
    }


def _text(made: dashboard.Dashboard) -> str:
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in dashboards().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"grafana/dashboards/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
