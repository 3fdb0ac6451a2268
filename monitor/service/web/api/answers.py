"""The answers of the API as models. The answers and the OpenAPI document are written from them.

Every field is always there, except those of a result that do not apply to it. A number that is not finite is
null, in the cells of evidence one of the words NaN, Infinity and -Infinity.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from monitor.core.results import Kind, ResultKind, Status
from monitor.report.known_changes import ChangeKind

Labels = Annotated[dict[str, str], Field(description="what tells series of one metric apart")]
StandingNow = Annotated[
    Status,
    Field(
        description="the status that alerts use: a violation lasts until a window clears it, see `status` "
        "of the result for the last window alone"
    ),
]
Since = Annotated[AwareDatetime, Field(description="start of the first window with this status")]
PageUrl = Annotated[str, Field(description="the page for people")]
ViolationState = Literal["open", "resolved", "gone"]
T = TypeVar("T")


class Answer(BaseModel):
    """The base of every answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PageOf(Answer, Generic[T]):
    """One page of rows."""

    data: list[T]
    next_cursor: str | None = Field(description="`cursor` of the next page; null on the last page")


class ProblemAnswer(Answer):
    """Why a request was refused, as application/problem+json (RFC 9457)."""

    title: str
    status: int
    detail: str = Field(description="a sentence for people")
    parameter: str | None = Field(None, description="the parameter that is wrong")
    expected: str | None = Field(None, description="what the parameter takes")
    exists: list[str] | None = Field(None, description="names that exist; 100 at most")


class SpanAnswer(Answer):
    """A half-open span of time [start, end) in UTC."""

    start: AwareDatetime
    end: AwareDatetime


class ResultAnswer(Answer):
    """One number of one window: the same keys as in `check --format json`."""

    recommender: str
    check: str
    window_start: AwareDatetime
    window_end: AwareDatetime
    metric: str = Field(description="a metric of the catalogue, or `rule`")
    labels: Labels
    value: float | None = Field(description="of a rule the violation ratio; null if there is none")
    samples: int | None = Field(description="the count that the value rests on")
    lower: float | None = Field(description="lower end of the interval")
    upper: float | None = Field(description="upper end of the interval")
    status: Status
    detail: str = Field(description="why the status is not ok")
    definition: str = Field(description="the version; results of two definitions are not comparable")
    violations: int | None = Field(None, description="of a rule: rows that violate it")
    threshold: float | None = Field(None, description="of a rule, a gap or an objective")
    bound: Literal["min", "max"] | None = Field(
        None, description="`max`: values above the threshold are bad; `min`: below"
    )
    clear: float | None = Field(None, description="where a violation ends, if not at the threshold")
    evidence: list[dict[str, Any]] = Field([], description="rows of a violation; of rules, causes, anomalies")


class BandAnswer(Answer):
    """What a series should be in a window by its own past."""

    expected: float | None
    lower: float | None
    upper: float | None
    deviation: float | None = Field(description="distance in standard deviations, signed")
    status: Status | None = Field(description="`violated`: out of its band; null: not compared")
    detail: str = Field(description="why there is no band")


class PointAnswer(ResultAnswer):
    """A result of a series, with its band."""

    band: BandAnswer | None = Field(description="null: this window has no band of the series")


class ViolatedSpan(Answer):
    """A violation of one of the series that are asked for."""

    check: str
    labels: Labels
    since: AwareDatetime = Field(description="start of the first window that violates")
    until: AwareDatetime | None = Field(description="start of the window that is ok again; null: none yet")
    windows: int = Field(description="how many windows violate")


class HistoryAnswer(PageOf[PointAnswer]):
    """A page of results of the series of a metric, and all of their violations in the span of time."""

    violations: list[ViolatedSpan] = Field(description="the oldest first; the same on every page")


class SeriesAnswer(Answer):
    """A series: its last result, and since when it is as it is."""

    recommender: str
    check: str
    kind: ResultKind
    metric: str
    labels: Labels
    unit: str = Field(description="ratio, seconds, bits, or empty")
    standing: StandingNow
    since: Since
    excused: bool = Field(description="not ok, but only in maintenance: nobody is alerted")
    result: ResultAnswer
    band: BandAnswer | None = Field(description="null: the series has no band")
    page_url: PageUrl
    history_url: str = Field(description="its results of the last days, in this API")


class TroubleAnswer(Answer):
    """A series that needs attention now."""

    what: str = Field(description="its name for people: rule blacklist")
    check: str
    kind: ResultKind
    metric: str
    labels: Labels
    standing: StandingNow
    since: Since
    excused: bool = Field(description="only seen in maintenance: nobody is alerted")
    detail: str = Field(description="the sentence of the last window that violates, or that lacks a verdict")
    page_url: PageUrl
    evidence_url: str | None = Field(description="the result with its evidence; null without evidence")


class HealthAnswer(Answer):
    """The health score of the last window, 0 to 1."""

    value: float | None
    status: Status
    detail: str
    window_end: AwareDatetime


class QuietAnswer(Answer):
    """Maintenance that holds alerts back now."""

    until: AwareDatetime
    reason: str


class RecommenderAnswer(Answer):
    """The state of a recommender, as on the first page."""

    name: str
    status: Status = Field(description="the worst standing of its rules, objectives, gaps and anomalies")
    since: AwareDatetime | None = Field(description="when this status began; null if no series has it")
    health: HealthAnswer | None = Field(description="null: the config has no score, or no window has one yet")
    last_window: SpanAnswer | None = Field(description="the newest judged window; null: none yet")
    pending_windows: int = Field(description="windows that are due and not judged yet")
    error: str = Field(description="why it cannot run; empty if it can")
    maintenance: QuietAnswer | None
    violated: list[TroubleAnswer] = Field(description="what is violated now, the worst first")
    unjudged: list[TroubleAnswer] = Field(description="what should have a verdict and has none")
    page_url: PageUrl


class FileAnswer(Answer):
    """A file that cannot be read, or a folder that cannot be listed."""

    path: str
    reason: str
    rows: int = Field(description="how many of its rows were lost")


class LogAnswer(Answer):
    """How far a log was read."""

    log: str
    watermark: AwareDatetime | None = Field(description="the newest row; null: no row yet")
    files: int
    stalled_after_seconds: float | None = Field(description="older newest rows mean that it has stalled")
    skipped: list[FileAnswer]
    lost: list[FileAnswer]
    unlisted: list[FileAnswer]


class CounterAnswer(Answer):
    """A counter that never falls."""

    name: str
    labels: dict[str, str]
    value: float


class RecommenderDetail(RecommenderAnswer):
    """One recommender: its state, its logs and its counters."""

    last_run: AwareDatetime | None
    logs: list[LogAnswer]
    check_seconds: dict[str, float] = Field(description="the last duration of each check")
    counters: list[CounterAnswer] = Field(
        description="its stored counters that /metrics shows; not those of rules that left the config"
    )
    clock_change: str = Field(description="why the time zone of the bands seems wrong; empty if it does not")
    judged_by: str | None = Field(
        description="address of another monitor that judges it, empty if none does yet; null if this one does"
    )


class StatusAnswer(Answer):
    """The state of a recommender in a few words, for scripts and chat."""

    name: str
    status: Status
    since: AwareDatetime | None
    text: str = Field(description="a sentence")
    violated: int = Field(description="how many series are violated")
    unjudged: int = Field(description="how many series lack a verdict")
    health: float | None
    last_window: SpanAnswer | None
    in_maintenance: bool
    page_url: PageUrl


class CheckedAnswer(Answer):
    """What one check did with a window."""

    check: str
    status: Status
    definition: str
    rows: int
    evaluated_at: AwareDatetime
    seconds: float
    revision: int = Field(description="how often late data corrected it")


class WindowAnswer(Answer):
    """A judged window."""

    recommender: str
    window_start: AwareDatetime
    window_end: AwareDatetime
    status: Status = Field(description="the worst status of its checks")
    checks: list[CheckedAnswer]
    results_url: str = Field(description="its results, in this API")


class ViolationAnswer(Answer):
    """A violation of one series, from its first window until a window clears it."""

    what: str = Field(description="its name for people: rule blacklist")
    check: str
    kind: ResultKind
    metric: str
    labels: Labels
    state: ViolationState = Field(
        description="`gone`: no window cleared it, but the newest one no longer judges the series"
    )
    since: AwareDatetime = Field(description="start of the first window that violates")
    until: AwareDatetime | None = Field(description="start of the window that is ok again")
    windows: int = Field(description="how many windows violate")
    result: ResultAnswer = Field(description="of the newest window that violates, without its evidence")
    evidence_rows: int
    evidence_url: str | None = Field(description="the same result with its evidence; null without evidence")
    page_url: PageUrl


class AnomalyAnswer(Answer):
    """A cause of anomalies, or a drift: where it is and what it means."""

    kind: Literal["anomaly", "drift"]
    name: str = Field(description="the cause, or the series that drifts")
    standing: StandingNow
    since: Since
    excused: bool
    sentence: str = Field(description="what happened, in words; empty if nothing did")
    meaning: str = Field(description="what the cause means in general; empty for a drift")
    series: int = Field(description="how many series are out of their bands and fit the cause")
    severity: float | None = Field(description="missing share of the expected value, if the cause has one")
    result: ResultAnswer = Field(description="the last window; its evidence lists the series")
    runbook: str
    page_url: PageUrl


class ChangeAnswer(Answer):
    """A change that may explain other numbers."""

    at: AwareDatetime
    until: AwareDatetime | None = Field(description="the end of a season or a maintenance")
    kind: ChangeKind = Field(
        description="the first three come from the config; a model took most requests; a rule's list has "
        "another version, known only of windows that violate the rule; a rule or metric is judged by another "
        "definition since"
    )
    what: str = Field(description="a sentence")
    metrics: list[str] = Field(description="the metrics that it changes; empty: all, or unknown")


class ArmAnswer(Answer):
    """An arm of an experiment."""

    arm: str
    share: float = Field(description="its intended share of the users, 0 to 1")
    is_control: bool


class ExperimentAnswer(Answer):
    """An experiment of the config, with the results of its last window."""

    name: str
    column: str
    arms: list[ArmAnswer]
    start: AwareDatetime | None
    alpha: float
    status: Status = Field(description="`violated`: the split is broken, so its metrics cannot be used")
    since: AwareDatetime | None
    results: list[ResultAnswer]


class GapAnswer(Answer):
    """The gap of a model's AUC between two splits, with its causes while it is violated."""

    pair: str
    standing: StandingNow
    since: Since
    result: ResultAnswer
    causes: list[ResultAnswer] = Field(description="the largest share first")


class ModelAnswer(Answer):
    """A model: its gaps, and its measures by split and feature."""

    name: str = Field(description="empty if the log does not name its model")
    status: Status
    gaps: list[GapAnswer]
    results: list[ResultAnswer]


class RuleAnswer(Answer):
    """A rule of the config, and its verdict."""

    rule: str
    kind: Kind
    severity: str
    threshold: float = Field(description="the share of violations that is allowed")
    table: str
    pack: str = Field(description="empty for a rule of a team's own suite")
    expectation: str = Field(description="the type of the Great Expectations expectation")
    arguments: dict[str, Any]
    definition: str
    description: str
    owner: str
    runbook: str = Field(description="an address, or the path that the suite names")
    standing: Status | None = Field(description="null: no window has been judged by it yet")
    since: AwareDatetime | None
    result: ResultAnswer | None = Field(description="the last window; if it judges slices, the worst one")
    violations_total: int = Field(description="violations in all judged windows")
    page_url: PageUrl


class MetricAnswer(Answer):
    """A definition of the metric catalogue."""

    name: str
    kind: ResultKind
    help: str
    formula: str
    answers: str = Field(description="the question that it answers")
    misleads: str = Field(description="where it misleads")
    unit: str
    by: list[str] = Field(description="the values of its label `by`")
    labels: list[str] = Field(description="its further labels")
    interval: str = Field(description="how its interval is computed; empty: it has none")
    minimum: float | None = Field(description="the smallest possible value; null: no bound")
    maximum: float | None = Field(description="the largest possible value; null: no bound")
    is_count: bool
    better: Literal["", "higher", "lower"]
    sliced: bool
    requires: list[str] = Field(description="the logs and columns that it needs")
    parameters: list[str] = Field(description="the settings that change it")
    samples: str
    no_data: str
    undefined: str
    version: str


class MonitorAnswer(Answer):
    """The monitor itself."""

    version: str
    taken_at: AwareDatetime = Field(description="when the history was read for the other answers")
    worked_at: AwareDatetime | None = Field(description="the last sign of life of the thread that judges")
    stale: str = Field(description="why the answers may be out of date; empty if they are not")
    history_error: str = Field(description="why the history cannot be used; empty if it can")
    config_loaded_at: AwareDatetime | None
    config_error: str = Field(description="why a newer config was refused; empty if none was")
    recommenders: list[str]
