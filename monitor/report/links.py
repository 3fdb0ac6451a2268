"""Where a reader goes from a series that needs attention: to its runbook, its dashboard, a silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from monitor.anomalies.causes import CAUSES
from monitor.anomalies.specs import OF_SERIES
from monitor.core.columns import FEEDBACK
from monitor.core.results import Kind, Result, ResultKind, Status
from monitor.core.text import LABEL_LENGTH, encodable, fit
from monitor.forecast.specs import TARGET_LABEL
from monitor.history.snapshot import Series
from monitor.judging.registry import CHECKS_OF
from monitor.metrics.feedback.attribution_health import LOST
from monitor.models.specs import CAUSE_LABEL
from monitor.platform import specs as platform_specs
from monitor.report.rows import in_address
from monitor.report.runbooks import FOLDER, runbook_address
from monitor.settings.recommender import ROLLUP

OVERVIEW: Final = "recsys-overview"  # the uids of the dashboards that come with the monitor
ANOMALIES: Final = "recsys-anomalies"
FEEDBACK_BOARD: Final = "recsys-feedback"
MODELS: Final = "recsys-models"
_BEFORE: Final = timedelta(hours=6)  # a dashboard also shows how it was before
_OF_RULES: Final = {
    Kind.HARD.value: "RecsysHardRuleViolated",
    Kind.SOFT.value: "RecsysSoftRuleViolated",
    Kind.NUMERIC.value: "RecsysNumericRuleViolated",
}
_OBJECTIVE_NOT_JUDGED: Final = "RecsysObjectiveNotJudged"
_CHECK_FAILED: Final = "RecsysCheckError"
_OF_EXPERIMENTS: Final = {
    "experiment_split_p_value": "RecsysSampleRatioMismatch",
    "experiment_unknown_arm_users": "RecsysSampleRatioMismatch",
    "experiment_bucket_p_value": "RecsysAssignmentBroken",
    "experiment_mixed_users": "RecsysAssignmentBroken",
}


@dataclass(frozen=True, slots=True)
class Sites:
    """The addresses of the sites around the monitor. Without an address there is no link."""

    docs: str = ""
    grafana: str = ""
    alertmanager: str = ""

    def runbook(self, name: str) -> str:
        """The runbook of an alert or a cause: the team's own if it has said where, else the monitor's.

        >>> Sites().runbook("RecsysDrift")
        'runbooks/RecsysDrift'
        """
        return runbook_address(f"{FOLDER}/{name}.md", self.docs)

    def dashboard(self, uid: str, recommender: str, since: datetime | None = None) -> str:
        """The dashboard of a recommender, from some hours before `since` until now.

        >>> Sites(grafana="https://g.test").dashboard("recsys-overview", "my shop")
        'https://g.test/d/recsys-overview?var-recommender=my%20shop'
        """
        if not self.grafana:
            return ""
        span = "" if since is None else f"&from={int((since - _BEFORE).timestamp() * 1000)}&to=now"
        return f"{self.grafana}/d/{uid}?var-recommender={in_address(_label(recommender))}{span}"

    def silence(self, labels: Mapping[str, str]) -> str:
        """Alertmanager's form for a new silence, filled in with these labels.

        >>> Sites(alertmanager="https://a.test").silence({"rule": 'a "b"'})
        'https://a.test/#/silences/new?filter=%7Brule%3D%22a%20%5C%22b%5C%22%22%7D'
        """
        if not self.alertmanager:
            return ""
        matchers = ",".join(f'{name}="{_matched(_label(text))}"' for name, text in labels.items())
        return f"{self.alertmanager}/#/silences/new?filter={in_address('{' + matchers + '}')}"


def runbook_name(series: Series) -> str:
    """The runbook for this series as it is now: that of the alert that reports it, or of its cause."""
    result, standing = series.result, series.standing
    kind = result.kind
    if standing in (Status.NO_DATA, Status.LATE):
        if kind is ResultKind.GAP and standing is Status.NO_DATA:
            return "RecsysAucGapUnknown"
        return _OBJECTIVE_NOT_JUDGED if _has_nothing_to_judge(series) else unjudged_alert(standing)
    if _is_failed_check(series):
        return _CHECK_FAILED
    if kind is ResultKind.ANOMALY:
        cause = result.labels[CAUSE_LABEL]
        return f"causes/{cause}" if cause in CAUSES else "RecsysAnomaly"
    if kind is ResultKind.RULE:
        failed = standing is Status.ERROR
        return "RecsysRuleError" if failed else _OF_RULES.get(result.labels.get("kind", ""), "README")
    if standing is Status.ERROR:
        return "RecsysMetricError"
    alone = {
        ResultKind.DRIFT: "RecsysDrift",
        ResultKind.FORECAST: "RecsysForecastBroken",
        ResultKind.PLATFORM: "RecsysZeroSum",
        ResultKind.SUBSTITUTION: "RecsysZeroSum",
        ResultKind.GAP: "RecsysAucGap",
    }
    if kind in alone:
        return alone[kind]
    objective = "RecsysSliceObjectiveViolated" if "dimension" in result.labels else "RecsysObjectiveViolated"
    return _OF_EXPERIMENTS.get(result.metric, objective)


def _has_nothing_to_judge(series: Series) -> bool:
    """Whether it is an objective of the team whose metric has no value. Days and weeks have none until they
    are whole.
    """
    result = series.result
    is_judged = result.kind is ResultKind.METRIC and result.threshold is not None
    is_objective = is_judged and result.metric != LOST.name  # its bound is there by default
    return is_objective and series.standing is Status.NO_DATA and result.labels.get("dimension") != ROLLUP


def _is_failed_check(series: Series) -> bool:
    """Whether the whole check of the series failed: a band or a forecast has no error of its own."""
    kind = series.result.kind
    return series.standing is Status.ERROR and (kind.is_of_the_past or kind is ResultKind.FORECAST)


def unjudged_alert(standing: Status) -> str:
    """The alert on windows that could not be judged."""
    return "RecsysWindowLate" if standing is Status.LATE else "RecsysNoData"


def dashboard_uid(series: Series) -> str:
    """The dashboard that plots this series."""
    kind = series.result.kind
    if kind.is_of_the_past:
        return ANOMALIES
    if kind.is_of_models:
        return MODELS
    return FEEDBACK_BOARD if series.check in CHECKS_OF[FEEDBACK] else OVERVIEW


def alert_labels(series: Series) -> dict[str, str]:
    """The labels that all alerts on this series have, and alerts on others do not."""
    result, own = series.result, {"recommender": series.recommender}
    if series.standing in (Status.NO_DATA, Status.LATE) and not result.kind.is_of_models:
        if not _has_nothing_to_judge(series):
            return {"alertname": unjudged_alert(series.standing), **own}
        own["alertname"] = _OBJECTIVE_NOT_JUDGED
    if _is_failed_check(series):
        return {"alertname": _CHECK_FAILED, **own, "check": series.check}
    found = {name: result.labels[name] for name in _names(result) if result.labels.get(name)}
    found |= {"metric": result.metric} if _names(result)[:1] == ("by",) else {}
    # The recommender alone would silence every alert on it.
    return own | (found or {"alertname": runbook_name(series)})


def _names(result: Result) -> tuple[str, ...]:
    kind = result.kind
    if kind is ResultKind.RULE:
        return ("rule",)
    if kind is ResultKind.ANOMALY:
        return (CAUSE_LABEL,)
    if kind is ResultKind.DRIFT:
        return OF_SERIES
    if kind is ResultKind.FORECAST:
        return (TARGET_LABEL, *OF_SERIES)
    if kind.is_of_the_platform:
        return (platform_specs.TOTAL, platform_specs.EXPERIMENT, platform_specs.ARM)
    if kind.is_of_models:
        return ("pair", "model")
    if kind is ResultKind.EXPERIMENT:
        return ("experiment",)
    return ("by", "dimension", "value")


def _label(text: str) -> str:
    """The text as it is in the label of a gauge, and so of an alert."""
    return encodable(fit(text, LABEL_LENGTH, "…"))


def _matched(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
