"""Features online against offline: the values of the same requests on both sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import ibis
import ibis.expr.types as ir

from monitor.core import columns as c
from monitor.core.text import NAME_LENGTH, plural, visible
from monitor.models.diagnosis.sample import Pairs
from monitor.models.feature_skew import FeatureSkew, Skew, measure_skew
from monitor.models.feature_values import kind_of
from monitor.models.samples import NO_MODEL
from monitor.models.sampling import features_of, sample_pairs
from monitor.report import numbers
from monitor.report.distributions.figure import Axis, Figure, Line, Plot, Point, Table
from monitor.report.distributions.rows import Missing, SpanRows

MOST_FEATURES: Final = 6
MOST_PAIRS: Final = 100
_MOST_SAMPLED: Final = 20_000
EMPTY: Final = Figure(
    name="features",
    title="Features online against offline",
    how="Each dot is one request, with the feature that it was scored with online across and the one that "
    "was joined for it offline up: a dot off the diagonal is a feature that differs.",
)


def features_figure(rows: SpanRows) -> Figure:
    """The features that differ on most pairs, for the model with most online rows."""
    samples = rows.samples
    if rows.online is None:
        raise Missing(f"There are no online samples in {numbers.window(rows.online_span)}.")
    offline = samples.rows(rows.engine, rows.online)
    model = _model(rows.online)
    joined = offline.offline_of(model)
    if joined is None:
        raise Missing("The log of samples has no offline rows to compare with.")
    settings = rows.settings.models
    names = features_of((joined,), settings)
    if not names:
        raise Missing("The samples have no feature.")
    online = rows.online.filter(rows.online[c.MODEL] == model)
    online = online.mutate(**{name: ibis.null("float64") for name in names if name not in online.columns})
    skew = measure_skew(
        online, joined, names, settings.pair_by, tolerance=settings.diagnosis.tolerance, looked_up=0
    )
    _need_pairs(skew)
    worst = sorted(skew.features, key=lambda one: (-one.wrong, one.feature))
    numeric = [one for one in worst if _is_number(online, joined, one.feature)]
    drawn = numeric[:MOST_FEATURES]
    pairs = _sampled(online, joined, [one.feature for one in drawn], skew, rows)
    values = {one.feature: [] if pairs is None else _values(pairs, one.feature) for one in drawn}
    table = [(name, x, y) for name, both in values.items() for x, y in both]
    plots = [_plot(one, values[one.feature]) for one in drawn if values[one.feature]]
    if not plots:
        raise Missing("No feature is a number with a value on both sides of a pair.")
    left = [one for one in worst if not values.get(one.feature)]
    notes = [] if not left else [_left_out(left)]
    if model != NO_MODEL:
        notes.append(f"The pairs are of the model {visible(model, NAME_LENGTH)}, which has most online rows.")
    notes.append(f"A plot shows at most {MOST_PAIRS} pairs, chosen by a hash; the shares are of all pairs.")
    return Figure(
        EMPTY.name,
        EMPTY.title,
        EMPTY.how,
        rests_on=plural(skew.pairing.pairs, "pair"),
        plots=tuple(plots),
        facts=tuple((f"{visible(one.feature, NAME_LENGTH)} differs", _share(one)) for one in worst[:20]),
        notes=tuple(notes),
        table=Table(("feature", "online", "offline"), tuple(table)),
    )


def _model(online: ir.Table) -> str:
    """The model with most online rows."""
    counted = online.aggregate(by=c.MODEL, rows=online.count())
    first = counted.order_by(ibis.desc("rows"), c.MODEL).limit(1).to_pyarrow().to_pylist()
    if not first:
        raise Missing("There are no online samples in this time.")
    return str(first[0][c.MODEL])


def _need_pairs(skew: Skew) -> None:
    pairing = skew.pairing
    if not pairing.keys:
        raise Missing("Online and offline rows share no column of models.pair_by, so that no row has a pair.")
    if not pairing.pairs:
        raise Missing(
            f"None of {numbers.count(pairing.online)} online rows has a pair among "
            f"{numbers.count(pairing.offline)} offline rows."
        )


def _is_number(online: ir.Table, offline: ir.Table, name: str) -> bool:
    return all(kind_of(table[name].type()) == "number" for table in (online, offline))


def _sampled(
    online: ir.Table, offline: ir.Table, names: Sequence[str], skew: Skew, rows: SpanRows
) -> Pairs | None:
    """Some pairs of these features; more online rows are chosen if few of them have a pair."""
    if not names:
        return None
    limit = min(_MOST_SAMPLED, 2 * MOST_PAIRS * skew.pairing.online // skew.pairing.pairs)
    return sample_pairs(online, offline, names, rows.settings.models, limit)


def _values(pairs: Pairs, name: str) -> list[tuple[float, float]]:
    both = zip(pairs.online.features[name], pairs.offline[name], strict=True)
    finite = [(float(x), float(y)) for x, y in both if math.isfinite(x) and math.isfinite(y)]
    return finite[:MOST_PAIRS]


def _plot(one: FeatureSkew, values: Sequence[tuple[float, float]]) -> Plot:
    ends = [end for pair in values for end in pair]
    low, high = min(ends), max(ends)
    points = tuple(Point(x, y, f"online {numbers.number(x)}, offline {numbers.number(y)}") for x, y in values)
    return Plot(
        f"{visible(one.feature, NAME_LENGTH)}: {_share(one)} differ",
        Axis("online", low, high),
        Axis("offline", low, high),
        lines=(Line(0, points, marked=True, joined=False),),
        reference=((low, low), (high, high)),
    )


def _share(one: FeatureSkew) -> str:
    return numbers.share(one.wrong / one.pairs)


def _left_out(left: Sequence[FeatureSkew]) -> str:
    differ = sum(one.wrong > 0 for one in left)
    return (
        f"Features without a plot: {numbers.count(len(left))}, of which {numbers.count(differ)} "
        f"{'differs' if differ == 1 else 'differ'}. A plot needs numbers on both sides of a pair, and at "
        f"most {MOST_FEATURES} features have one."
    )
