"""The section on the platform: the totals of each system with a small picture, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from monitor.core.results import Status
from monitor.core.text import visible
from monitor.history.snapshot import Series
from monitor.platform import specs
from monitor.report import numbers, rows
from monitor.report.views import PlatformSystemRow, PlatformTotalView, PlatformView, SeriesRow
from monitor.settings.platform import ALL, DEMAND, OWN

_COUNTS = (Status.VIOLATED, Status.LATE, Status.ERROR)


def platform_view(series: Sequence[Series], now: datetime) -> PlatformView | None:
    """The section; None without results on a platform."""
    if not series:
        return None
    names = list(dict.fromkeys(one.result.labels[specs.TOTAL] for one in series))
    totals = [_total(name, [one for one in series if one.result.labels[specs.TOTAL] == name], now)
              for name in names if name != DEMAND]  # fmt: skip
    demand = _of(series, specs.AMOUNT.name, {specs.TOTAL: DEMAND, specs.SYSTEM: DEMAND})
    row = None if demand is None else rows.named_row(demand, now, name="demand")
    newest = max(one.window for one in series)
    return PlatformView(tuple(totals), row, numbers.window(newest))


def platform_attention(series: Iterable[Series], now: datetime) -> list[tuple[Series, SeriesRow]]:
    """The verdicts and amounts that need attention. Too few days for a judgement do not."""
    found = []
    for one in series:
        judged = one.result.threshold is not None or one.result.metric == specs.AMOUNT.name
        if judged and one.standing in _COUNTS:
            found.append((one, _named(one, now)))
    return found


def _total(name: str, series: Sequence[Series], now: datetime) -> PlatformTotalView:
    amounts = [one for one in series if one.result.metric == specs.AMOUNT.name]
    order = {OWN: 0, ALL: 2}
    amounts.sort(
        key=lambda one: (order.get(one.result.labels[specs.SYSTEM], 1), one.result.labels[specs.SYSTEM])
    )
    systems = []
    for one in amounts:
        system = one.result.labels[specs.SYSTEM]
        change = _of(series, specs.CHANGE.name, {specs.SYSTEM: system})
        value = (
            "" if change is None or change.result.value is None else numbers.signed_share(change.result.value)
        )
        between = "" if change is None else _between(change)
        systems.append(PlatformSystemRow(rows.named_row(one, now, name=system), value, between))
    share = _of(series, specs.SHARE.name, {})
    least = _of(series, specs.LEAST_RISE.name, {})
    blind = ""
    if least is not None and least.result.value is not None:
        blind = f"A rise of the recommender below {numbers.share(least.result.value)} could not be judged."
    elif least is not None:
        blind = visible(least.result.detail)
    verdicts = [one for one in series if one.result.threshold is not None]
    return PlatformTotalView(
        name=visible(name),
        systems=tuple(systems),
        share=None if share is None else rows.named_row(share, now, name="share of the recommender"),
        verdicts=tuple(_named(one, now) for one in verdicts),
        blind=blind,
    )


def _named(series: Series, now: datetime) -> SeriesRow:
    labels = series.result.labels
    if specs.EXPERIMENT in labels:
        name, note = (
            f"{labels[specs.EXPERIMENT]}: {labels[specs.ARM]}",
            f"substitution of {labels[specs.TOTAL]}, causal",
        )
    elif series.result.metric == specs.AMOUNT.name:
        name, note = f"{labels[specs.TOTAL]} of {labels[specs.SYSTEM]}", "platform"
    else:
        name, note = labels[specs.SYSTEM], f"substitution of {labels[specs.TOTAL]}"
    return rows.named_row(series, now, name=name, note=note)


def _between(series: Series) -> str:
    lower, upper = series.result.lower, series.result.upper
    if lower is None or upper is None:
        return visible(series.result.detail)
    return f"{numbers.signed_share(lower)} to {numbers.signed_share(upper)}"


def _of(series: Iterable[Series], metric: str, labels: dict[str, str]) -> Series | None:
    return next(
        (
            one
            for one in series
            if one.result.metric == metric and labels.items() <= dict(one.result.labels).items()
        ),
        None,
    )
