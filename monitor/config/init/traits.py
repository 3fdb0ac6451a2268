"""Measures the sampled rows once the columns are known: rate, lists, order, scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import ibis
import ibis.expr.types as ir

from monitor.config.init.guess import Guess
from monitor.config.init.profile import TABLE
from monitor.core import columns as c
from monitor.engines.duckdb import Engine
from monitor.logs.canonical import canonical
from monitor.settings.logs import LogSettings

READ = f"{TABLE}_read"  # the engine's table of the sample as the monitor will read it


@dataclass(frozen=True, slots=True)
class Traits:
    """Measured on the sample; a share is None if nothing could be measured."""

    rows: int
    first: datetime | None
    last: datetime | None
    requests: int
    longest: int
    duplicates: float
    gaps: float | None
    falling: float | None
    lowest: float | None
    highest: float | None
    equal: float | None  # of the lists of two scores or more, those whose scores are all the same
    saturated: float  # of the scores, those that are exactly 0 or 1

    @property
    def span(self) -> timedelta:
        return self.last - self.first if self.first and self.last else timedelta(0)


def traits(engine: Engine, sample: str, settings: LogSettings, guesses: Mapping[str, Guess]) -> Traits:
    """Read the sample as the monitor will read the log, and measure its lists."""
    table = canonical(engine.backend.table(sample), c.EXPOSURES, settings, {})
    rows = engine.create(READ, table)
    request, item = rows[c.REQUEST_ID], rows[c.ITEM_ID]
    sums = {"rows": rows.count(), "first": rows[c.TS].min(), "last": rows[c.TS].max()}
    score = rows[c.SCORE] if c.SCORE in guesses else None
    if score is not None:
        finite = (score.isnan() | score.isinf()).ifelse(ibis.null("float64"), score)
        sums |= {"lowest": finite.min(), "highest": finite.max(), "scored": finite.count()}
        sums["saturated"] = finite.isin([0.0, 1.0]).sum()
    if c.POSITION in rows.columns:
        sums["placed"] = rows[c.POSITION].count()
    whole = rows.aggregate(**sums).execute().iloc[0].to_dict()
    per = {"n": item.count(), "different": item.nunique()}
    has_position = whole.get("placed", 0) > 0  # a column may hold nothing that can be read
    if has_position:
        place = rows[c.POSITION]
        per |= {"low": place.min(), "high": place.max(), "places": place.nunique(), "placed": place.count()}
    if score is not None:
        per |= {"scored": score.count(), "scores": score.nunique()}
    lists = rows.filter(request.notnull()).group_by(c.REQUEST_ID).aggregate(**per)
    found = lists.aggregate(
        compared=(lists.scored > 1).sum() if score is not None else ibis.literal(0),
        equal=((lists.scored > 1) & (lists.scores == 1)).sum() if score is not None else ibis.literal(0),
        requests=lists.count(),
        longest=lists.n.max(),
        doubled=(lists.different < lists.n).sum(),
        gaps=_with_gaps(lists) if has_position else ibis.literal(0),
    ).execute().iloc[0].to_dict()  # fmt: skip
    requests = int(found["requests"])
    return Traits(
        rows=int(whole["rows"]),
        first=moment(whole["first"]),
        last=moment(whole["last"]),
        requests=requests,
        longest=int(found["longest"] or 0) if requests else 0,
        duplicates=_share(found["doubled"], requests),
        gaps=_share(found["gaps"], requests) if has_position else None,
        falling=_falling(rows) if has_position and score is not None else None,
        lowest=_number(whole.get("lowest")),
        highest=_number(whole.get("highest")),
        equal=_share(found["equal"], found["compared"]) if found["compared"] else None,
        saturated=_share(whole.get("saturated", 0), whole.get("scored", 0)),
    )


def _with_gaps(lists: ir.Table) -> ir.Value:
    span = lists.high - lists.low + 1
    return ((span != lists.placed) | (lists.places < lists.placed) | (lists.low > 1)).sum()


def _falling(rows: ir.Table) -> float | None:
    """The share of neighbours in a list whose later item does not score higher."""
    window = ibis.window(group_by=c.REQUEST_ID, order_by=c.POSITION)
    pairs = rows.filter(rows[c.SCORE].notnull()).mutate(before=rows[c.SCORE].lag().over(window))
    pairs = pairs.filter(pairs.before.notnull())
    found = pairs.aggregate(n=pairs.count(), good=(pairs[c.SCORE] <= pairs.before).sum()).execute().iloc[0]
    return float(found["good"]) / float(found["n"]) if found["n"] else None


def moment(value: object) -> datetime | None:
    """A time of the engine in UTC; None for a missing one."""
    if value is None or value != value:  # noqa: PLR0124 (NaT)
        return None
    found: datetime = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value  # type: ignore[assignment]
    return found.replace(tzinfo=UTC)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value == value else None  # noqa: PLR0124 (NaN)


def _share(part: float, whole: int) -> float:
    return float(part) / whole if whole and part == part else 0.0  # noqa: PLR0124 (NaN)
