"""What needs attention, as the rows of a first screen: what, how bad, since when, where, and what to do.

What could not be judged for one common reason is one row. So a log that has stopped is one sentence, however
many rules wait for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from monitor.core.columns import EXPOSURES, FEEDBACK, ITEM_ID, MODEL, SCENE
from monitor.core.results import Status, rank
from monitor.core.text import plural, visible, visible_evidence
from monitor.history.snapshot import LogState, RecommenderState, Series
from monitor.judging.registry import CHECKS_OF
from monitor.report import numbers, rows
from monitor.report.links import OVERVIEW, Sites, alert_labels, dashboard_uid, runbook_name, unjudged_alert
from monitor.report.views import Offender, ProblemView, SeriesRow

_UNJUDGED: Final = (Status.LATE, Status.NO_DATA)
_NAMED: Final = 5  # of the series that share a row
_VALUES: Final = 3  # of a column of the evidence
_OFFENDERS: Final = {ITEM_ID: "item", SCENE: "scene", MODEL: "model"}
_STALLED: Final = {EXPOSURES: "RecsysLogStalled", FEEDBACK: "RecsysFeedbackStalled"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """A series that is not ok, and the row that names it. A `runbook` replaces that of the series."""

    series: Series
    row: SeriesRow
    runbook: str = ""


def problems(
    state: RecommenderState, troubles: Sequence[Trouble], now: datetime, sites: Sites
) -> tuple[ProblemView, ...]:
    """The rows of a recommender: the worst state first, and in the order given within a state."""
    left = list(troubles)
    found: list[tuple[Status, ProblemView]] = []
    for log in state.logs:
        if is_stalled(log, state.last_run):
            waiting = [one for one in left if _waits_for(one, log.log)]
            left = [one for one in left if one not in waiting]
            found.append((Status.LATE, _stopped(state, log, waiting, now, sites)))
    empty = _empty_window(state)
    waiting = [one for one in left if one.series.standing in _UNJUDGED] if empty else []
    if empty and len(waiting) > 1:
        left = [one for one in left if one not in waiting]
        found.append((empty.standing, _not_judged(empty, waiting, now, sites)))
    alike: dict[tuple[Status, str], list[Trouble]] = {}
    for one in left:
        shared = one.series.result.detail if one.series.standing is not Status.VIOLATED else ""
        key = (one.series.standing, shared or f"{id(one)}")
        alike.setdefault(key, []).append(one)
    for (standing, _), members in alike.items():
        several = len(members) > 1
        found.append((standing, _shared(members, now, sites) if several else _alone(members[0], sites)))
    return tuple(problem for _, problem in sorted(found, key=lambda one: rank(one[0])))


def is_stalled(log: LogState, seen: datetime | None) -> bool:
    """Whether the newest row of a log was older than it may get when the log was last looked at.

    >>> from datetime import UTC, timedelta
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> log = LogState("exposures", watermark=noon, stalled_after=timedelta(minutes=9))
    >>> is_stalled(log, noon + timedelta(minutes=9)), is_stalled(log, noon + timedelta(minutes=10))
    (False, True)
    """
    if log.log not in _STALLED or None in (log.watermark, log.stalled_after, seen):
        return False
    assert log.watermark is not None
    assert log.stalled_after is not None
    assert seen is not None
    return seen - log.watermark > log.stalled_after


def _waits_for(trouble: Trouble, log: str) -> bool:
    if trouble.series.standing not in _UNJUDGED:
        return False
    return log == EXPOSURES or trouble.series.check in CHECKS_OF[FEEDBACK]


def _stopped(
    state: RecommenderState, log: LogState, waiting: Sequence[Trouble], now: datetime, sites: Sites
) -> ProblemView:
    assert log.watermark is not None
    assert log.stalled_after is not None
    sentence = (
        f"No new rows: the newest is from {numbers.moment(log.watermark)}. "
        f"It is usually at most {numbers.span(log.stalled_after)} old."
    )
    if waiting:
        sentence += f" {_counted(waiting)} could not be judged."
    alert = _STALLED[log.log]
    return ProblemView(
        name=f"The {visible(log.log)} log has stopped",
        verdict=rows.verdict(Status.LATE),
        sentence=sentence,
        since=rows.moment(log.watermark, now),
        runbook=sites.runbook(alert),
        dashboard=sites.dashboard(OVERVIEW, state.name, log.watermark),
        silence=sites.silence({"alertname": alert, "recommender": state.name}),
    )


def _empty_window(state: RecommenderState) -> Series | None:
    """The statement on the rows of the exposures, if their last window had none or is late."""
    for one in state.series:
        result = one.result
        if result.metric == "log_rows" and result.labels.get("log") == EXPOSURES:
            return one if one.standing in _UNJUDGED else None
    return None


def _not_judged(log: Series, waiting: Sequence[Trouble], now: datetime, sites: Sites) -> ProblemView:
    alert = unjudged_alert(log.standing)
    return ProblemView(
        name="The last window could not be judged",
        verdict=rows.verdict(log.standing),
        sentence=f"{visible(log.result.detail)}; {_counted(waiting)} could not be judged.",
        since=rows.moment(log.since, now),
        runbook=sites.runbook(alert),
        dashboard=sites.dashboard(OVERVIEW, log.recommender, log.since),
        silence=sites.silence({"alertname": alert, "recommender": log.recommender}),
    )


def _shared(members: Sequence[Trouble], now: datetime, sites: Sites) -> ProblemView:
    """Several series in the same state for the same reason."""
    first = min(members, key=lambda one: one.series.since)
    series = first.series
    alerts = {runbook_name(one.series) for one in members}
    unjudged = series.standing in _UNJUDGED and len(alerts) > 1
    alert = unjudged_alert(series.standing) if unjudged else runbook_name(series)
    named = [(one.row.name, one.row.href) for one in members[:_NAMED]]
    return ProblemView(
        name=_counted(members),
        verdict=rows.verdict(series.standing),
        sentence=visible(series.result.detail),
        since=rows.moment(series.since, now),
        runbook=sites.runbook(alert),
        dashboard=sites.dashboard(dashboard_uid(series), series.recommender, series.since),
        silence=sites.silence({"alertname": alert, "recommender": series.recommender}),
        members=tuple(named),
        more_members=len(members) - len(named),
    )


def _alone(trouble: Trouble, sites: Sites) -> ProblemView:
    series, row = trouble.series, trouble.row
    source = rows.evidence_source(series)
    return ProblemView(
        name=row.name,
        note=row.note,
        verdict=row.verdict,
        sentence=sentence_of(row),
        last=row.last,
        since=row.since,
        href=row.href,
        evidence=row.evidence,
        offenders=offenders(source.result.evidence if source else (), series.result.labels),
        runbook=trouble.runbook or sites.runbook(runbook_name(series)),
        dashboard=sites.dashboard(dashboard_uid(series), series.recommender, series.since),
        silence=sites.silence(alert_labels(series)),
    )


def sentence_of(row: SeriesRow) -> str:
    """What is wrong, each number once."""
    if row.counted:
        noun = "row" if row.counted in ("1", "1 of 1") else "rows"
        seen = f"{row.counted} {noun}{f' ({row.value})' if row.value else ''}, {row.bound}"
        is_known = row.detail.startswith(row.counted)  # the detail counts the same in its own words
        return seen if is_known or not row.detail else f"{row.detail}: {seen}"
    if not row.value:
        return row.detail
    seen = row.value + (f" ({row.interval})" if row.interval else "")
    seen += f", objective: {row.bound}" if row.bound else ""
    is_known = row.verdict.key == Status.VIOLATED and bool(row.bound)  # the detail has the same numbers
    return seen if is_known or not row.detail else f"{row.detail}: {seen}"


def offenders(evidence: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> tuple[Offender, ...]:
    """The most frequent items, scenes and models in the evidence, and the slice if the series is one.

    >>> found = offenders([{"item_id": 7, "scene": "home"}, {"item_id": 7, "scene": None}], {})
    >>> [(one.name, one.values, one.more) for one in found]
    [('item', (('7', '2 of 2'),), 0), ('scene', (('home', '1 of 2'),), 0)]
    """
    found = []
    if "dimension" in labels:
        found.append(
            Offender(visible(labels["dimension"]), ((visible(rows.value_name(labels.get("value", ""))), ""),))
        )
    for column, name in _OFFENDERS.items():
        texts = [str(row[column]) for row in evidence if row.get(column) is not None]
        if texts and labels.get("dimension") != column:
            found.append(_offender(name, texts, len(evidence)))
    # The evidence of an anomaly is series, some of them of a slice.
    slices = [
        rows.slice_name(str(row["dimension"]), str(row.get("value")))
        for row in evidence
        if row.get("dimension")
    ]
    if slices:
        found.append(_offender("slice", slices, len(evidence)))
    return tuple(found)


def _offender(name: str, texts: Sequence[str], rows_of_all: int) -> Offender:
    counts = Counter(texts)
    shown = counts.most_common(_VALUES)
    values = tuple(
        (visible_evidence(rows.value_name(text)), f"{count} of {rows_of_all}") for text, count in shown
    )
    return Offender(name, values, len(counts) - len(shown))


def _counted(members: Iterable[Trouble]) -> str:
    """How many rules, and how many others: 12 rules and 1 metric."""
    members = list(members)
    rules = sum(rows.is_rule(one.series.result) for one in members)
    others = len(members) - rules
    parts = [plural(rules, "rule")] if rules else []
    parts += [plural(others, "metric")] if others else []
    return " and ".join(parts)
