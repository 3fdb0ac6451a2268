"""Each curve is compared with one that plain Python makes from the same rows."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from monitor.core.results import Window
from monitor.report.distributions.desk import Drawn
from monitor.report.distributions.figure import Cell, Figure
from monitor.report.distributions.scores import PARTS
from tests.report.distributions import drawn_shop
from tests.report.distributions.drawn_shop import END, HOSTILE, HOUR, LAST, START

DAY = Window(START, END - 2 * HOUR)
"""More than a day, with more scores than a curve has points."""


@pytest.fixture(scope="module")
def of_day(folder) -> Drawn:
    return drawn_shop.drawn(drawn_shop.write(folder / "day"), DAY)


def rows_of(drawn: Drawn, name: str) -> tuple[tuple[Cell, ...], ...]:
    return figure(drawn, name).table.rows


def figure(drawn: Drawn, name: str) -> Figure:
    found = drawn.figure(name)
    assert found is not None
    assert found.why == ""
    return found


def within(frame: pd.DataFrame, span: Window) -> pd.DataFrame:
    start, end = span.start.replace(tzinfo=None), span.end.replace(tzinfo=None)
    return frame[(frame.ts >= start) & (frame.ts < end)]


def labelled(span: Window) -> pd.DataFrame:
    """The items shown in a span, with label 1 where a click or a buy names their request and item."""
    shown = drawn_shop.exposures()
    actions = drawn_shop.feedback(shown)
    acted = set(zip(actions.request_id, actions.item_id, strict=True))
    shown = within(shown, span).dropna(subset="item_id")
    pairs = zip(shown.request_id, shown.item_id, strict=True)
    return shown.assign(label=[int(pair in acted) for pair in pairs])


@pytest.mark.parametrize("span", [LAST, DAY], ids=["hour", "day"])
def test_every_point_of_the_lorenz_curve_is_on_the_whole_one(span, shown, of_day):
    counts = Counter(labelled(span).item_id)
    known = sorted(counts.get(item, 0) for item in drawn_shop.items().item_id)
    total, so_far, whole = sum(known), 0, {0.0: 0.0}
    for rank, count in enumerate(known, start=1):
        so_far += count
        whole[round(rank / len(known), 12)] = so_far / total
    points = rows_of(shown if span is LAST else of_day, "items")
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (1.0, 1.0)
    for x, y in points:
        assert y == pytest.approx(whole[round(x, 12)])
    zeros = known.count(0)
    assert len(points) == len(known) - zeros + (2 if zeros else 1)


def test_a_curve_over_many_items_has_few_points_and_they_are_exact(tmp_path):
    rng = np.random.default_rng(8)
    n = 5000
    shown = pd.DataFrame(
        {
            "request_id": [f"r{row // 5}" for row in range(n)],
            "user_id": [f"u{row // 50}" for row in range(n)],
            "ts": LAST.start.replace(tzinfo=None),
            "item_id": [f"i{item}" for item in rng.zipf(1.3, n)],
        }
    )
    drawn_shop.put(shown, tmp_path / "exposures.parquet")
    drawn = drawn_shop.drawn(drawn_shop.configured(tmp_path, {"exposures": None}))
    counts = sorted(Counter(shown.item_id).values())
    assert len(counts) > 600
    whole = np.concatenate([[0], np.cumsum(counts)]) / n
    points = rows_of(drawn, "items")
    assert 150 < len(points) <= 202
    for x, y in points:
        assert y == pytest.approx(whole[round(x * len(counts))])
    assert figure(drawn, "items").notes[0].startswith("There is no catalog")


@pytest.mark.parametrize("span", [LAST, DAY], ids=["hour", "day"])
def test_list_lengths_are_counted_with_empty_lists(span, shown, of_day):
    rows = within(drawn_shop.exposures(), span)
    lengths = Counter(rows.groupby("request_id").item_id.count())
    found = {row[0]: row[2] for row in rows_of(shown if span is LAST else of_day, "list-lengths")}
    assert found == dict(lengths)
    assert found[0] > 0


def test_long_lists_share_bars_and_empty_ones_keep_theirs(tmp_path):
    lengths = [0, 1, 130, 131, 400]
    rows = [
        {"request_id": f"r{number}", "user_id": "u", "ts": LAST.start.replace(tzinfo=None), "item_id": item}
        for number, length in enumerate(lengths)
        for item in ([f"i{at}" for at in range(length)] or [None])
    ]
    drawn_shop.put(pd.DataFrame(rows), tmp_path / "exposures.parquet")
    drawn = drawn_shop.drawn(drawn_shop.configured(tmp_path, {"exposures": None}))
    bars = rows_of(drawn, "list-lengths")
    assert bars[0][:3] == (0, 0, 1)
    assert [sum(first <= length <= last for length in lengths) for first, last, *_ in bars] == [
        row[2] for row in bars
    ]
    assert sum(row[2] for row in bars) == len(lengths)


def test_the_categories_of_each_hour_are_counted_with_parts_for_items_with_two(shown):
    categories = {row.item_id: list(row.category) for row in drawn_shop.items().itertuples()}
    day = Window(LAST.end - 24 * HOUR, LAST.end)
    rows = labelled(day)
    wanted: dict[tuple[datetime, str], Fraction] = Counter()
    total: Counter[str] = Counter()
    for row in rows.itertuples():
        hour = row.ts.floor("h")
        own = categories.get(row.item_id, []) or ["no known category"]
        for one in own:
            wanted[hour, one] += Fraction(1, len(own))
            total[one] += Fraction(1, len(own))
    named = sorted((name for name in total if name != "no known category"), key=lambda name: -total[name])
    found = rows_of(shown, "categories")
    assert {row[1] for row in found} == {*named[:8], "other", "no known category"}
    assert HOSTILE in named[:8]
    assert len({row[0] for row in found}) == 24
    for at, name, exposures, share in found:
        hour = pd.Timestamp(at).tz_localize(None)
        members = named[8:] if name == "other" else [name]
        assert exposures == pytest.approx(float(sum(wanted[hour, one] for one in members)))
        whole = sum(count for (own, _), count in wanted.items() if own == hour)
        assert share == pytest.approx(exposures / float(whole))


def test_a_long_span_has_at_most_24_steps_of_whole_windows(of_day):
    assert DAY.length // HOUR == 26
    starts = [
        datetime.fromisoformat(at) for at in dict.fromkeys(row[0] for row in rows_of(of_day, "categories"))
    ]
    assert starts == [DAY.start + 2 * step * HOUR for step in range(13)]
    exposures = sum(row[2] for row in rows_of(of_day, "categories"))
    assert exposures == pytest.approx(len(labelled(DAY)))


def test_rates_by_position_are_actions_over_exposures(of_day):
    shown = drawn_shop.exposures()
    actions = drawn_shop.feedback(shown)
    items = within(shown, DAY).dropna(subset="item_id")
    for event, position, rate, lower, upper, exposures in rows_of(of_day, "positions"):
        own = items[items.position == int(position)]
        done = actions[actions.event == event].merge(own, on=["request_id", "item_id"])
        assert exposures == len(own)
        assert rate == pytest.approx(len(done) / len(own))
        assert lower <= rate <= upper


def test_the_histogram_counts_every_score_once(of_day):
    scores = labelled(DAY).score.to_numpy()
    rows = rows_of(of_day, "scores")
    edges = [rows[0][2], *(row[3] for row in rows)]
    counts = [row[4] for row in rows]
    assert sum(counts) == len(scores)
    assert edges[0] == scores.min()
    assert edges[-1] == pytest.approx(scores.max())
    # A score on an edge may be in either bin: rounding decides. Counts up to a place between edges are exact.
    middle = [(first + last) / 2 for first, last in pairwise(edges)]
    so_far = np.cumsum(counts)
    for number, place in enumerate(middle[1:], start=1):
        below = (scores < place).sum()
        assert so_far[number - 1] <= below + (scores == edges[number]).sum()
        assert so_far[number] >= below


def test_the_parts_of_the_calibration_have_the_means_and_rates_of_their_rows(of_day):
    rows = labelled(DAY).sort_values("score")
    n = len(rows)
    below = rows.score.rank(method="min").to_numpy().astype(int) - 1
    parts = below * PARTS // n
    found = rows_of(of_day, "calibration")
    wanted = [rows[parts == part] for part in sorted(set(parts))]
    assert len(found) == len(wanted)
    for (_, _, mean, rate, lower, upper, count), own in zip(found, wanted, strict=True):
        assert count == len(own)
        assert mean == pytest.approx(own.score.clip(1e-15).mean())
        assert rate == pytest.approx(own.label.mean())
        assert lower < upper


@pytest.mark.parametrize("name", ["roc", "precision-recall"])
def test_every_point_of_a_curve_of_cut_offs_is_exact(name, of_day):
    rows = labelled(DAY)
    positives, negatives = (rows.label == 1).sum(), (rows.label == 0).sum()
    found = rows_of(of_day, name)
    assert rows.score.nunique() > 250
    assert 100 < len(found) <= 202
    for _, _, score, x, y in found:
        above = rows[rows.score >= score]
        hits = above.label.sum()
        if name == "roc":
            assert (x, y) == pytest.approx(((len(above) - hits) / negatives, hits / positives))
        else:
            assert (x, y) == pytest.approx((hits / positives, hits / len(above)))
    last = found[-1]
    assert last[2] == rows.score.min()
    assert last[3:] == ((1.0, 1.0) if name == "roc" else (1.0, pytest.approx(positives / len(rows))))


def test_the_area_below_the_drawn_roc_curve_is_nearly_the_auc(of_day):
    rows = labelled(DAY)
    hit, miss = (rows.score[rows.label == label].to_numpy() for label in (1, 0))
    auc = ((hit[:, None] > miss).sum() + 0.5 * (hit[:, None] == miss).sum()) / (len(hit) * len(miss))
    x, y = (np.array([0.0, *(row[at] for row in rows_of(of_day, "roc"))]) for at in (3, 4))
    assert np.trapezoid(y, x) == pytest.approx(auc, abs=0.002)


def test_the_pairs_of_a_feature_are_rows_of_both_sides(of_models):
    samples = drawn_shop.samples()
    age = f"age{HOSTILE}"
    online, offline = (
        samples[samples.split == split].set_index("request_id") for split in ("online", "offline")
    )
    found = rows_of(of_models, "features")
    for feature in (age, "clicks"):
        pairs = {(row[1], row[2]) for row in found if row[0] == feature}
        assert 50 < len(pairs) <= 100
        assert pairs <= set(zip(online[feature], offline[feature], strict=True))
    assert any(x != y for name, x, y in found if name == age)
    assert {row[0] for row in found} == {age, "clicks"}
    assert "Features without a plot: 1, of which 0 differ." in " ".join(figure(of_models, "features").notes)
