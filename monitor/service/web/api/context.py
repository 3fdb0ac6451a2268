"""What an answer is made of, and the parts that several answers share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from monitor.anomalies.specs import METRIC_LABEL
from monitor.core.json_value import json_value
from monitor.core.redaction import redact
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import VALUE_LENGTH, encodable, quoted
from monitor.history.snapshot import RecommenderState, Snapshot
from monitor.history.store import Store
from monitor.metrics.family import MODEL_LABEL
from monitor.models.specs import CAUSE_LABEL, PAIR_LABEL
from monitor.report.bands import Band, series_name
from monitor.report.gaps import pair_name
from monitor.report.judged import title
from monitor.report.result_json import result_as_json
from monitor.report.rows import model_name
from monitor.service.web.api.answers import BandAnswer, ResultAnswer, SpanAnswer
from monitor.service.web.api.links import Links
from monitor.service.web.api.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Context:
    """The state of the monitor at the time of a request."""

    snapshot: Snapshot
    store: Store
    links: Links
    docs_url: str
    now: datetime

    def state(self, recommender: str) -> RecommenderState:
        """A recommender; Refusal with the names that exist if there is no such one."""
        for one in self.snapshot.recommenders:
            if encodable(one.name) == recommender:
                return one
        names = [one.name for one in self.snapshot.recommenders]
        raise missing("recommender", recommender, names)


def missing(what: str, name: str, exists: list[str]) -> Refusal:
    """A refusal that names what exists instead."""
    return Refusal(404, f"There is no {what} {quoted(name, VALUE_LENGTH)}.", exists=sorted(exists))


def result_answer(
    recommender: str, check: str, window: Window, result: Result, *, with_evidence: bool = True
) -> ResultAnswer:
    """A result with the same keys as in `check --format json`."""
    content = encoded(result_as_json(recommender, check, window, result))
    if not with_evidence:
        content.pop("evidence", None)
    return ResultAnswer.model_validate(content)


def encoded(value: Any) -> Any:
    """Plain JSON whose texts can all be encoded: a log may hold halves of characters."""
    match value:
        case str():
            return encodable(value)
        case Mapping():
            return {encodable(str(key)): encoded(inner) for key, inner in value.items()}
        case list():
            return [encoded(inner) for inner in value]
        case _:
            return value


def without_secrets(value: Any) -> Any:
    """Settings as plain JSON, without the secrets of the config that a text may hold.

    >>> from monitor.core.redaction import keep_secret
    >>> keep_secret("hunter2-of-doctest", "${PASSWORD}")
    >>> without_secrets({"list_path": "s3://lists?key=hunter2-of-doctest", "columns": ("a", "b")})
    {'list_path': 's3://lists?key=${PASSWORD}', 'columns': ['a', 'b']}
    """
    return json_value(_redacted(value))  # which cuts long texts: half of a secret would not be recognised


def _redacted(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {key: _redacted(inner) for key, inner in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_redacted(inner) for inner in value]
        case _:
            return value


def span_answer(window: Window | None) -> SpanAnswer | None:
    """A window as a span of time."""
    return None if window is None else SpanAnswer(start=window.start, end=window.end)


def band_answer(expected: Result, deviation: Result | None) -> BandAnswer:
    """The band of a series in one window."""
    is_known = expected.value is not None
    return BandAnswer(
        expected=expected.value,
        lower=expected.lower,
        upper=expected.upper,
        deviation=deviation.value if deviation is not None and is_known else None,
        status=deviation.status if deviation is not None and is_known else None,
        detail="" if is_known else encodable(expected.detail) or expected.status.value.replace("_", " "),
    )


def newest_band(window: Window, band: Band | None) -> BandAnswer | None:
    """The band of a series in its newest window."""
    if band is None:
        return None
    if band.expected.window != window:
        nothing: dict[str, None] = dict.fromkeys(("expected", "lower", "upper", "deviation", "status"))
        return BandAnswer(**nothing, detail="this window has not been compared yet")
    is_judged = band.deviation is not None and band.deviation.window == window
    return band_answer(band.expected.result, band.deviation.result if is_judged and band.deviation else None)


def name_of(result: Result) -> str:
    """The name of a series for people.

    >>> name_of(Result(metric="coverage", labels={"by": "pv"}, status=Status.OK, definition="1"))
    'coverage by=pv'
    """
    labels = result.labels
    match result.kind:
        case ResultKind.RULE:
            name = f"rule {labels.get('rule', '')}"
        case ResultKind.ANOMALY:
            name = f"anomaly {labels[CAUSE_LABEL]}"
        case ResultKind.BAND | ResultKind.DRIFT if METRIC_LABEL in labels:
            name = f"{result.metric} of {' '.join(part for part in series_name(labels) if part)}"
        case ResultKind.GAP:
            name = f"AUC {pair_name(labels[PAIR_LABEL])} of model {model_name(labels[MODEL_LABEL])}"
        case _:
            name = title(result)
    return encodable(name)


def status_word(status: Status) -> str:
    """The status in words.

    >>> status_word(Status.NO_DATA)
    'no data'
    """
    return status.value.replace("_", " ")
