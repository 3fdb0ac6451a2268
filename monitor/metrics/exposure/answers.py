"""Answers: how long the recommender takes, how often it fails, and whether a replay can be scored.

They need columns that a log may have: `latency` in seconds, `status`, `ever_shown`. A request is answered
(`ok`), or it failed in one of the ways of `monitor.core.columns.FAILURES`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import ibis
import ibis.expr.types as ir

from monitor.core.columns import EVER_SHOWN, FAILURES, INTERRUPTED, ITEM_ID, LATENCY, OK, REQUEST_ID, STATUS
from monitor.core.results import Result
from monitor.metrics.family import ALL, NO_REQUESTS, AddsUp, AggregateRow, Family, MetricSpec, Theme, make
from monitor.metrics.shared import Shared, listed
from monitor.settings.metrics import MetricSettings
from monitor.statistics.quantiles import RANKS, SIGMAS, least_samples, quantile_of

QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
TIMEOUT: Final = "timeout"

LATENCY_SPEC = MetricSpec(
    name="latency",
    theme=Theme.ANSWERS,
    better="lower",
    help="How long an answer takes, in seconds: the median, and the time that 9 in 10 and 99 in 100 requests "
    "keep.",
    unit="seconds",
    by=tuple(QUANTILES),
    interval="order statistics",
    range=(0.0, math.inf),
    formula="p50, p90, p99: the latency with rank ceil(n p) among the n requests that were answered or ran "
    "into a timeout, and have a finite latency from 0. The interval is between two other ranks, by the "
    "binomial distribution",
    answers="Do users wait, and does the slowest hundredth wait much longer?",
    misleads="It is in seconds: a log in milliseconds shows a thousand times as much. A timeout counts with "
    "the time until the client gave up, so the true p99 is higher if more than 1 in 100 are timeouts. "
    "Requests of one moment are not independent, so the interval is too narrow if the endpoint has slow "
    "phases.",
    requires=("exposures.latency",),
    samples="requests with a latency",
    no_data="no request has a latency",
    undefined="too few requests for an interval: p50 takes 6, p90 36, p99 368",
)
ANSWER_ERRORS = MetricSpec(
    name="answer_errors",
    theme=Theme.ANSWERS,
    better="lower",
    help="Share of requests that got no answer: errors, timeouts, refused connections, broken answers.",
    unit="ratio",
    interval="Wilson",
    formula="requests whose `status` is a failure / requests whose `status` is ok or a failure. Left out: "
    "`interrupted`, since the client was stopped. Failures: "
    + ", ".join(one for one in FAILURES if one != INTERRUPTED),
    answers="How often does the recommender fail to answer at all?",
    misleads="An empty list is an answer: see failure. It needs a log with a row, without an item, for each "
    "request that failed.",
    requires=("exposures.status",),
    samples="requests with a known status",
    no_data="no request has a known status",
)
ANSWER_TIMEOUTS = MetricSpec(
    name="answer_timeouts",
    theme=Theme.ANSWERS,
    better="lower",
    help="Share of requests that took longer than the client waits.",
    unit="ratio",
    interval="Wilson",
    formula="requests with the `status` timeout / requests whose `status` is ok or a failure, without "
    "`interrupted`",
    answers="How often does the client give up waiting?",
    misleads="It depends on the client's limit: compare logs of the same limit.",
    requires=("exposures.status",),
    samples="requests with a known status",
    no_data="no request has a known status",
)
EVER_SHOWN_SPEC = MetricSpec(
    name="ever_shown",
    theme=Theme.ANSWERS,
    of_rows=True,
    help="Share of the shown items that the logged recommender has ever shown to the same user.",
    unit="ratio",
    interval="Wilson",
    formula="exposures with `ever_shown` true / exposures with `ever_shown` true or false",
    answers="Of a replay: how many of its items could have feedback at all?",
    misleads="A low share is no fault of the candidate: it says that the logged feedback knows little of its "
    "lists. Then precision and click rates are too low. Items of one list are alike, so the interval is too "
    "narrow.",
    requires=("exposures.ever_shown",),
    samples="exposures for which it is known",
    no_data="no exposure says whether its item was ever shown",
)

_NO_STATUS: Final = "no request has a known status"


def _one_row_a_request(shared: Shared, key: str | None, *columns: str) -> ir.Table:
    """The requests, also those without an answer. If rows of a request differ, the largest value counts."""
    rows = shared.attempted(key)
    rows = rows.filter(rows[REQUEST_ID].notnull())
    return rows.aggregate(by=[REQUEST_ID, *listed(key)], **{name: rows[name].max() for name in columns})


class Latency(Family):
    """The latency that half, nine tenths and 99 in 100 of the requests keep."""

    name = "latency"
    outputs = ((LATENCY_SPEC, LATENCY_SPEC.by),)
    needs = ("exposures.latency",)

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        lack = super().reason_not(shared, settings)
        if lack is None and not shared.attempts[LATENCY].type().is_numeric():
            return "needs numbers in the column latency of the log exposures"
        return lack

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        by = listed(key)
        with_status = [STATUS] if STATUS in shared.attempts.columns else []
        requests = _one_row_a_request(shared, key, LATENCY, *with_status)
        if with_status:
            status = requests[STATUS].cast("string")
            untold = [one for one in FAILURES if one != TIMEOUT]
            requests = requests.filter(~status.isin(untold).fill_null(False))
        value = requests[LATENCY].cast("float64")
        requests = requests.select(*by, seconds=value)
        odd = requests.seconds.isnan() | requests.seconds.isinf() | (requests.seconds < 0)
        counted = requests.aggregate(by=by, logged=requests.seconds.count(), odd=odd.fill_null(False).sum())
        known = requests.filter(requests.seconds.notnull() & ~odd)
        ranked = known.mutate(
            rank=ibis.row_number().over(ibis.window(group_by=by, order_by=known.seconds)) + 1,
            n=known.seconds.count().over(ibis.window(group_by=by)),
        )
        sums: dict[str, Any] = {"n": ranked.count()}
        for name, p in QUANTILES.items():
            sums[name] = ranked.seconds.collect(where=_near(ranked, p))
            sums[f"{name}_first"] = ranked["rank"].min(where=_near(ranked, p))
        return shared.side_by_side(key, counted, ranked.aggregate(by=by, **sums))

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        n, odd = int(row["n"] or 0), int(row["odd"] or 0)
        left_out = (
            f"{odd:,} of {int(row['logged'] or 0):,} latencies are negative or not finite" if odd else ""
        )
        for name, p in QUANTILES.items():
            builder = make(LATENCY_SPEC, settings, name)
            if not n:
                yield builder.no_data(left_out or "no request has a latency")
                continue
            value, interval = quantile_of(n, p, row[name], int(row[f"{name}_first"]))
            if interval is None:  # it would be little more than the largest of a few values
                few = f"{name} takes {least_samples(p):,} requests, there are {n:,}"
                yield builder.undefined("; ".join(filter(None, (few, left_out))), n)
            else:
                yield builder.value(value, n, interval, detail=left_out)


def _near(ranked: ir.Table, p: float) -> ir.BooleanValue:
    """The rows whose rank the quantile or its interval may ask for."""
    n = ranked.n.cast("float64")
    half = (n * (p * (1 - p))).sqrt() * SIGMAS + RANKS
    return (ranked["rank"] >= n * p - half) & (ranked["rank"] <= n * p + half)


class Answers(Family):
    """The shares of requests that failed, and that ran into a timeout."""

    name = "answers"
    outputs = ((ANSWER_ERRORS, ()), (ANSWER_TIMEOUTS, ()))
    needs = ("exposures.status",)
    adds_up = AddsUp(columns=(ALL,))

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        rows = shared.attempted(key)
        rows = rows.filter(rows[REQUEST_ID].notnull())
        status = rows[STATUS].cast("string")
        one_of = {name: (status == name).cast("int64") for name in (OK, *FAILURES)}
        requests = rows.aggregate(
            by=[REQUEST_ID, *listed(key)], **{name: one.max() for name, one in one_of.items()}
        )
        by = listed(key)
        return shared.side_by_side(
            key,
            requests.aggregate(
                by=by,
                requests=requests.count(),
                **{name: requests[name].sum() for name in one_of},
                known=ibis.greatest(*(requests[name] for name in one_of)).sum(),
                failed=ibis.greatest(*(requests[name] for name in _counted())).sum(),
                interrupted_alone=_alone(requests).sum(),
            ),
        )

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        requests, known = int(row["requests"] or 0), int(row["known"] or 0)
        interrupted = int(row["interrupted_alone"] or 0)
        left = known - interrupted
        kinds = [f"{int(row[name]):,} {name}" for name in _counted() if row[name]]
        out = [f"left out: {interrupted:,} interrupted"] if interrupted else []
        if requests > known:
            out.append(f"{requests - known:,} of {requests:,} requests have no status or another one")
        detail = "; ".join([", ".join(kinds), *out] if kinds else out)
        nothing = detail or (_NO_STATUS if requests else NO_REQUESTS)
        yield make(ANSWER_ERRORS, settings).share(row["failed"], left, nothing, detail=detail)
        yield make(ANSWER_TIMEOUTS, settings).share(row[TIMEOUT], left, nothing, detail="; ".join(out))


def _counted() -> list[str]:
    return [one for one in FAILURES if one != INTERRUPTED]


def _alone(requests: ir.Table) -> ir.IntegerValue:
    """1 for a request of which nothing is known but that it was interrupted."""
    others = ibis.greatest(*(requests[name] for name in (OK, *_counted())))
    return ibis.ifelse(others == 0, requests[INTERRUPTED], 0)


class EverShown(Family):
    """The share of items that the logged recommender has ever shown to the same user."""

    name = "ever_shown"
    outputs = ((EVER_SHOWN_SPEC, ()),)
    needs = ("exposures.ever_shown",)
    adds_up = AddsUp(columns=(ALL,))

    def reason_not(self, shared: Shared, settings: MetricSettings) -> str | None:
        lack = super().reason_not(shared, settings)
        if lack is None and not shared.exposures[EVER_SHOWN].type().is_boolean():
            return "needs true and false in the column ever_shown of the log exposures"
        return lack

    def measure(self, shared: Shared, settings: MetricSettings, key: str | None = None) -> ir.Table:
        rows = shared.shown(key)
        ever = rows[EVER_SHOWN]
        counted = rows.aggregate(
            by=listed(key), shown=rows[ITEM_ID].count(), known=ever.count(), ever=ever.cast("int64").sum()
        )
        return shared.side_by_side(key, counted)

    def outcomes(self, row: AggregateRow, settings: MetricSettings) -> Iterator[Result]:
        shown, known = int(row["shown"] or 0), int(row["known"] or 0)
        detail = f"it is unknown for {shown - known:,} of {shown:,} exposures" if known < shown else ""
        nothing = "no exposure says whether its item was ever shown"
        yield make(EVER_SHOWN_SPEC, settings).share(row["ever"], known, nothing, detail=detail)
