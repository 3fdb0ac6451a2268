"""The settings of one recommender: its logs, its schedule, rules, metrics, slices and objectives."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pydantic import Field, model_validator

from monitor.core.columns import CATALOG, CREATED_AT, EXPOSURES, USERS
from monitor.core.results import MOST_EVIDENCE
from monitor.core.settings import Days, Duration, Name, Settings
from monitor.settings.bands import BandSettings
from monitor.settings.experiments import ExperimentSettings
from monitor.settings.forecast import ForecastSettings
from monitor.settings.gate import GateSettings
from monitor.settings.health import HealthSettings
from monitor.settings.logs import LogsSettings, TimeSettings
from monitor.settings.maintenance import Maintenance
from monitor.settings.metrics import MetricSettings
from monitor.settings.models import DiagnosedModels
from monitor.settings.platform import PlatformSettings
from monitor.settings.replay import ReplaySettings
from monitor.settings.rules import RuleSettings
from monitor.settings.survey import SurveySettings

USER_ACTIVITY, ITEM_POPULARITY, NEW_ITEM = "user_activity", "item_popularity", "new_item"
HOUR, WEEKDAY = "hour", "weekday"
DERIVED = (USER_ACTIVITY, ITEM_POPULARITY, NEW_ITEM, HOUR, WEEKDAY)
ROLLUP: Final = "rollup"
"""The dimension of metrics over days."""
USER_GROUP: Final = "(user group)"
"""A random group of users, by a hash of their id; comparisons measure by it."""
_GROUP_WITHIN: Final = f"{USER_GROUP} within "
USER_GROUPS: Final = 100


class SliceSettings(Settings):
    """The columns by which the metrics are sliced, and how many values each shows; see docs/slices.md."""

    by: tuple[str, ...] = Field(
        (),
        description="columns of the exposures (scene), of the catalog (catalog.category) and of the users "
        "(users.plan), or user_activity, item_popularity, new_item, hour, weekday",
    )
    budget: int = Field(
        10,
        ge=1,
        le=200,
        description="how many values are shown, those with the most rows; the rest is `other`",
    )
    metrics: tuple[str, ...] = Field(
        (), description="the metrics that are sliced; default: all, at the cost of one query each"
    )
    heavy: int = Field(
        20,
        ge=1,
        description="a user with at least this many exposures in the history is heavy (user_activity)",
    )
    new_for: Duration = Field(
        timedelta(days=7),
        description="an item is new if it was created at most this long before the window's end (new_item)",
    )

    def columns(self, log: str) -> tuple[str, ...]:
        """The columns of a log that the slices need.

        >>> SliceSettings(by=("scene", "catalog.category", "new_item")).columns("catalog")
        ('category', 'created_at')
        """
        found = [column for name in self.by for of, column in [sliced_column(name) or ("", "")] if of == log]
        if log == CATALOG and NEW_ITEM in self.by:
            found.append(CREATED_AT)
        return tuple(dict.fromkeys(found))


def user_group_within(column: str, value: str) -> str:
    """The slice by random groups of users within the rows that have this value of another slice."""
    return f"{_GROUP_WITHIN}{column}={value}"


def group_within(name: str) -> tuple[str, str] | None:
    """The slice and its value of `user_group_within`; None for any other slice.

    >>> group_within(user_group_within("model", "m=7")), group_within(USER_GROUP)
    (('model', 'm=7'), None)
    """
    if not name.startswith(_GROUP_WITHIN):
        return None
    column, _, value = name.removeprefix(_GROUP_WITHIN).partition("=")
    return column, value


def is_user_group(name: str) -> bool:
    """Whether a slice is by random groups of users, of all rows or of some.

    >>> is_user_group(USER_GROUP), is_user_group(user_group_within("model", "m7")), is_user_group("model")
    (True, True, False)
    """
    return name == USER_GROUP or group_within(name) is not None


def sliced_column(name: str) -> tuple[str, str] | None:
    """The log and the column of a slice; None for a derived slice.

    >>> sliced_column("scene"), sliced_column("users.plan"), sliced_column("hour")
    (('exposures', 'scene'), ('users', 'plan'), None)
    """
    if name in DERIVED or is_user_group(name):
        return None
    log, dot, column = name.partition(".")
    return (log, column) if dot and log in (CATALOG, USERS) else (EXPOSURES, name)


class Objective(Settings):
    """A bound on a metric. It is violated if the whole interval lies beyond the bound, and stays violated
    until the value itself is back at `clear`.
    """

    metric: str
    labels: dict[str, str] = Field(default_factory=dict, description="which series, for example {by: pv}")
    min: float | None = Field(None, allow_inf_nan=False)
    max: float | None = Field(None, allow_inf_nan=False)
    clear: float | None = Field(
        None,
        allow_inf_nan=False,
        description="the value at which a violation ends, on the good side of the bound; default: the bound",
    )

    @model_validator(mode="after")
    def _has_one_bound(self) -> Objective:
        if (self.min is None) == (self.max is None):
            raise ValueError("an objective has exactly one of min and max; write two objectives for a band")
        return self


class EvidenceSettings(Settings):
    """How much evidence of a violation is kept."""

    rows: int = Field(
        20, ge=1, le=MOST_EVIDENCE, description=f"rows kept of each violated rule, {MOST_EVIDENCE} at most"
    )
    hash_users: bool = Field(True, description="whether user ids are shown as hashes")


class RecommenderSettings(TimeSettings):
    """One recommender."""

    name: Name
    owner: str | None = Field(
        None,
        min_length=1,
        max_length=100,
        description="the team that is on call for this recommender: the label `owner` of its alerts, by "
        "which Alertmanager routes them. A rule whose suite names an owner goes there. Default: no label",
    )
    logs: LogsSettings
    every: Duration = Field("1m", description="how often the monitor looks at the logs")  # type: ignore[assignment]
    deadline: Duration = Field("5m", description="a check that takes longer is interrupted")  # type: ignore[assignment]
    rules: tuple[RuleSettings, ...] = ()
    metrics: MetricSettings = MetricSettings()
    slices: SliceSettings = SliceSettings()
    rollups: tuple[Days, ...] = Field(
        (),
        max_length=10,
        description="metrics of whole days and weeks, added up from the windows, for example [1d, 7d]; see "
        "docs/rollups.md",
    )
    objectives: tuple[Objective, ...] = Field(
        (), description="bounds on metrics that you want judged, see docs/objectives.md"
    )
    experiments: tuple[ExperimentSettings, ...] = Field(
        (), max_length=20, description="see docs/experiments.md"
    )
    models: DiagnosedModels = Field(
        DiagnosedModels(), description="how the models are judged on logs.samples, see docs/models.md"
    )
    bands: BandSettings | None = Field(
        None,
        description="the expected range of each metric, from its own past, see docs/bands.md; "
        "default: no bands",
    )
    health: HealthSettings | None = Field(
        None, description="one number from chosen metrics, see docs/health.md; default: no score"
    )
    evidence: EvidenceSettings = EvidenceSettings()
    forecast: ForecastSettings | None = Field(
        None,
        description="whether offline metrics predict business metrics, see docs/forecast.md; default: no "
        "forecast",
    )
    gate: GateSettings | None = Field(
        None,
        description="what must hold before this recommender goes live, see docs/gate.md; default: no gate",
    )
    replay: ReplaySettings | None = Field(
        None,
        description="endpoints that `replay` sends the requests of this recommender to, see docs/replay.md",
    )
    platform: PlatformSettings | None = Field(
        None,
        description="the totals of the systems around this recommender, see docs/platform.md; default: not "
        "watched",
    )
    survey: SurveySettings = Field(
        SurveySettings(), description="how the answers in logs.survey are read, see docs/survey.md"
    )
    maintenance: tuple[Maintenance, ...] = Field(
        (), max_length=100, description="spans in which nobody is alerted, see docs/maintenance.md"
    )
