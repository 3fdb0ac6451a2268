"""Write grafana/dashboards/*.json: python -m grafana.generate

The dashboards are code, so that a change of a name is one line and a test can hold every expression
against what is exported. Edit here, run, commit both.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as shapes

from grafana import actions, anomalies, experiments, links, models, recommender, rules, variables
from grafana.annotations import annotations
from grafana.health import reach, scores, variety, volumes
from grafana.inside import itself, logs
from grafana.panels import Panel
from grafana.platform import platform
from grafana.states import states

DashboardRow = tuple[str, Sequence[Panel]]
FOLDER: Final = Path(__file__).resolve().parent / "dashboards"


def board(
    uid: str,
    title: str,
    description: str,
    rows: Iterable[DashboardRow],
    *,
    chosen: Sequence[variables.Variable],
) -> dict[str, Any]:
    """A dashboard of these rows. Only the first is open: a closed row sends no query.

    `chosen` are the variables beside those that every board has: the data source and the monitor.
    """
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(description)
        .tags([links.TAG])
        .links(list(links.of_board()))
        .timezone("browser")
        .refresh("1m")
        .time("now-6h", "now")
        .readonly()
        .tooltip(shapes.DashboardCursorSync.CROSSHAIR)
    )
    for variable in (*variables.source(), *chosen):
        made = made.with_variable(variable)
    number = count(1)
    for place, (name, panels) in enumerate(rows):
        row = dashboard.Row(name).id(next(number))
        numbered = [panel.id(next(number)) for panel in panels]
        if place == 0:
            made = made.with_row(row)
            for panel in numbered:
                made = made.with_panel(panel)
            continue
        for panel in numbered:
            row = row.with_panel(panel)
        made = made.with_row(row)
    plain: dict[str, Any] = json.loads(JSONEncoder().encode(made.build()))
    plain["annotations"] = {"list": annotations()}
    for panel in flat(plain["panels"]):
        of_fields = panel.get("fieldConfig", {}).get("defaults", {})
        if "links" in of_fields:
            wanted = ("title", "url", "targetBlank")
            of_fields["links"] = [{key: link[key] for key in wanted} for link in of_fields["links"]]
    return plain


def flat(panels: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The panels of a board, with those in closed rows."""
    for panel in panels:
        yield panel
        yield from flat(panel.get("panels") or ())


def overview() -> dict[str, Any]:
    """All recommenders: their states, health with intervals, the monitor itself."""
    return board(
        "recsys-overview",
        "Recommenders: overview",
        "States of the recommenders, health metrics with intervals, and the monitor itself.",
        (
            ("States", states()),
            ("Volume", volumes()),
            ("Reach", reach()),
            ("Variety and concentration", variety()),
            ("Scores and propensities", scores()),
            ("Logs and windows", logs()),
            ("The monitor itself", itself()),
        ),
        chosen=(variables.recommenders(),),
    )


def of_rules() -> dict[str, Any]:
    """Rules and objectives: verdicts, and how far each is from its threshold."""
    return board(
        "recsys-rules",
        "Recommenders: rules",
        "Verdicts on rules and objectives, violations against thresholds, error budgets.",
        (
            ("Verdicts", rules.verdicts()),
            ("Rules against thresholds", rules.thresholds()),
            ("Objectives", rules.objectives()),
        ),
        chosen=(variables.recommenders(), *variables.slices()),
    )


def of_one() -> dict[str, Any]:
    """One recommender: what is wrong, its most important numbers, and one slice of them."""
    return board(
        links.RECOMMENDER_BOARD,
        "Recommenders: one recommender",
        "What is violated now, the most important numbers with their bands, and the same for one slice.",
        (
            ("Now", recommender.now()),
            ("Most important numbers", recommender.numbers()),
            ("One slice", recommender.one_slice()),
            ("Days and weeks", recommender.days()),
            ("Gaps of its models", recommender.models()),
            ("Logs, states and changes", recommender.freshness()),
        ),
        chosen=(variables.one_recommender(), *variables.slices()),
    )


def of_experiments() -> dict[str, Any]:
    """Experiments: whether the split is as intended, and what the arms do."""
    return board(
        "recsys-experiments",
        "Recommenders: experiments",
        "Splits of experiments with their tests, and the metrics of their arms with intervals.",
        (("Splits", experiments.splits()), ("Arms", experiments.arms())),
        chosen=(variables.recommenders(), variables.experiments()),
    )


def feedback(shown: str) -> dict[str, Any]:
    """What users did with the lists; `shown` is the text of the dashboards that hold the other metrics."""
    elsewhere = re.findall(r"\brecsys_\w+", shown)
    return board(
        "recsys-feedback",
        "Recommenders: what users did",
        "Accuracy of the lists and scores, clicks and other actions, the health score.",
        actions.rows(elsewhere),
        chosen=(variables.recommenders(),),
    )


def of_models() -> dict[str, Any]:
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
        chosen=(variables.recommenders(),),
    )


def of_the_past() -> dict[str, Any]:
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
        chosen=(variables.recommenders(), *variables.slices()),
    )


def dashboards() -> dict[str, str]:
    """The text of every dashboard by the name of its file."""
    first, unlike, split = _text(overview()), _text(of_the_past()), _text(of_experiments())
    return {
        "overview.json": first,
        "anomalies.json": unlike,
        "experiments.json": split,
        "feedback.json": _text(feedback(first + unlike + split)),
        "models.json": _text(of_models()),
        "recommender.json": _text(of_one()),
        "rules.json": _text(of_rules()),
    }


def _text(made: dict[str, Any]) -> str:
    return json.dumps(made, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in dashboards().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"grafana/dashboards/{name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
