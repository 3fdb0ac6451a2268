"""The content of the pages as plain data. Texts are ready to be shown, but not escaped yet.

Addresses (`href`) are relative to the root of the site and without a leading slash.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.report.scatter import Scatter
from monitor.report.sparkline import Sparkline


@dataclass(frozen=True, slots=True)
class Verdict:
    key: str  # one of the statuses: names the symbol and the colours
    word: str


@dataclass(frozen=True, slots=True)
class TimeView:
    iso: str
    text: str
    age: str


@dataclass(frozen=True, slots=True)
class BandView:
    """The band of a value. `lacking` says why there is none."""

    expected: str
    between: str
    deviation: str
    verdict: Verdict
    lacking: str


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """A rule, an objective, a metric or a slice of one. A text that does not apply is empty.

    `verdict` is the current verdict, `last` the state of the last window if it differs.
    """

    name: str
    note: str
    verdict: Verdict
    last: Verdict | None
    value: str
    bound: str
    counted: str
    interval: str
    samples: str
    since: TimeView | None
    spark: Sparkline | None
    detail: str
    href: str = ""
    evidence: int = 0
    band: BandView | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one metric, or the slices of one dimension. `left_out` rows are not shown."""

    name: str
    help: str
    rows: tuple[SeriesRow, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class LogView:
    name: str
    watermark: TimeView | None
    files: str
    skipped: tuple[tuple[str, str], ...]  # (path, reason)
    lost: tuple[tuple[str, str], ...] = ()  # files whose rows were read before
    unlisted: tuple[tuple[str, str], ...] = ()  # folders


@dataclass(frozen=True, slots=True)
class Lately:
    """A violation that is over."""

    name: str
    href: str
    counted: str
    when: TimeView


@dataclass(frozen=True, slots=True)
class HealthView:
    """The health score and its parts, the worst first."""

    score: SeriesRow
    parts: tuple[SeriesRow, ...]


@dataclass(frozen=True, slots=True)
class Offender:
    """The most frequent values of one column in the evidence, each with its count. `more` are not shown."""

    name: str
    values: tuple[tuple[str, str], ...]
    more: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemView:
    """Something that needs attention. What does not apply is empty.

    `members` are the names and addresses of the series that share the problem.
    """

    name: str
    verdict: Verdict
    sentence: str
    since: TimeView | None
    note: str = ""
    last: Verdict | None = None
    href: str = ""
    evidence: int = 0
    offenders: tuple[Offender, ...] = ()
    runbook: str = ""
    dashboard: str = ""
    silence: str = ""
    members: tuple[tuple[str, str], ...] = ()
    more_members: int = 0


@dataclass(frozen=True, slots=True)
class ChangeView:
    """Something that changed around the time at which a problem began."""

    what: str
    when: TimeView


@dataclass(frozen=True, slots=True)
class AnomaliesView:
    """The causes of anomalies that were found, and the metrics that drift.

    `quiet` are the causes that were checked and not found; `summary` counts them. `learning` says how many
    series have no band yet, and `steady` how many do not drift. `wide` warns of bands that see only large
    changes. `clock_change` says why the bands' time zone
    seems wrong.
    """

    found: tuple[SeriesRow, ...]
    quiet: tuple[SeriesRow, ...]
    summary: str
    learning: str
    drifts: tuple[SeriesRow, ...]
    steady: str
    clock_change: str = ""
    wide: str = ""


@dataclass(frozen=True, slots=True)
class PlatformSystemRow:
    """A system of the platform: its total of the last day, and its change against the days before."""

    amount: SeriesRow
    change: str
    between: str


@dataclass(frozen=True, slots=True)
class PlatformTotalView:
    """One total: the systems, the recommender's share, and the verdicts on substitution.

    `blind` says which rise could not be judged, or why none can.
    """

    name: str
    systems: tuple[PlatformSystemRow, ...]
    share: SeriesRow | None
    verdicts: tuple[SeriesRow, ...]
    blind: str


@dataclass(frozen=True, slots=True)
class PlatformView:
    """The platform around the recommender on its last judged day."""

    totals: tuple[PlatformTotalView, ...]
    demand: SeriesRow | None
    day: str


@dataclass(frozen=True, slots=True)
class ForecastPairView:
    """An offline metric and a business metric: `saved` is the part of the naive forecast's error."""

    row: SeriesRow
    saved: str
    error: str
    picture: Scatter | None


@dataclass(frozen=True, slots=True)
class ForecastTargetView:
    """A business metric, what predicts it, and how many forecasts came true."""

    name: str
    pairs: tuple[ForecastPairView, ...]
    record: str


@dataclass(frozen=True, slots=True)
class ForecastView:
    """The forecasts as of the last judged day. `days` says which days they rest on."""

    targets: tuple[ForecastTargetView, ...]
    days: str
    day: str


@dataclass(frozen=True, slots=True)
class Measure:
    """One number in a cell. If `value` is empty, `verdict` says why."""

    value: str
    interval: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SplitView:
    """The measures of a model on one split. A missing measure is None."""

    name: str
    rows: Measure | None
    auc: Measure | None
    user_auc: Measure | None
    user_auc_otherwise: str  # by the other weights
    log_loss: Measure | None
    calibration: Measure | None
    spark: Sparkline | None  # of the AUC
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CauseView:
    """A cause of a violated gap. `percent` is its share of the gap, None if unknown."""

    name: str
    share: str
    percent: float | None
    detail: str
    href: str
    evidence: int
    runbook: str  # an address


@dataclass(frozen=True, slots=True)
class GapView:
    """The gap between two splits, its causes if it is violated, and the distances of the scores."""

    row: SeriesRow
    causes: tuple[CauseView, ...]
    unexplained: str  # why a violated gap has no causes
    distances: tuple[tuple[str, Measure], ...]


@dataclass(frozen=True, slots=True)
class FeatureView:
    """A feature in service, compared with the same feature offline and with the training data."""

    name: str
    skew: Measure | None
    pairs: str
    distances: tuple[Measure | None, ...]  # in the order of the distances' names
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModelView:
    """`lacking` says why features could not be compared. `left_out` features are not shown."""

    name: str
    verdict: Verdict
    splits: tuple[SplitView, ...]
    gaps: tuple[GapView, ...]
    features: tuple[FeatureView, ...]
    left_out: int
    lacking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SectionLink:
    """A section of a recommender's page. `id` names it on that page, `key` in its address."""

    key: str
    id: str
    title: str
    count: str
    href: str


@dataclass(frozen=True, slots=True)
class Frame:
    """The parts that every page has."""

    taken: TimeView
    stale: str  # why the page may be out of date
    history_error: str  # why the history cannot be read or written
    config_error: str
    config_loaded: TimeView | None


@dataclass(frozen=True, slots=True)
class RulePage:
    """One rule and the evidence of its last window. A cell is None if the log has no value."""

    frame: Frame
    recommender: str
    recommender_href: str
    row: SeriesRow
    kind: str
    severity: str
    description: str
    owner: str
    runbook: str  # an address or empty
    runbook_path: str  # anything else that the rule names as its runbook
    window: str
    evaluated: TimeView | None
    definition: str
    evidence_window: str  # the window that the rows are from
    evidence_is_older: bool  # a window before the last one
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    total: str  # violations in all judged windows
    empty: str  # why there is no evidence


@dataclass(frozen=True, slots=True)
class EvidenceTable:
    """Rows of evidence with the same columns. A cell is None if the log has no value."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, slots=True)
class CausePage:
    """One cause of a model's gap and its evidence, a table for each kind of row."""

    frame: Frame
    recommender: str
    recommender_href: str
    model: str
    gap: SeriesRow
    cause: CauseView
    samples: str
    window: str
    evaluated: TimeView
    definition: str
    evidence: tuple[EvidenceTable, ...]
