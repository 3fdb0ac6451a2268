"""Time travel: the better split has information that does not exist yet when the recommendation is made.

Three signs: a feature's own time is after the event; a feature alone predicts the label too well, but not in
the worse split; test rows are older than the newest training row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.models.diagnosis.area import Ranking, change
from monitor.models.diagnosis.case import (
    EVIDENCE,
    Case,
    Claim,
    Finding,
    called,
    finding_of,
    number,
    one_sided,
    shown,
)
from monitor.models.diagnosis.strong import too_strong
from monitor.statistics.counts import Floats

CAUSE = "time_travel"


def from_the_future(case: Case, owned: frozenset[str]) -> Claim:
    """Features from the future: by their own time, or because they alone predict the label too well.

    Share: the fall of the gap if the effect of these features is removed from the scores of both splits.
    """
    dated, strong = _dated(case), too_strong(case, owned)
    guilty = tuple(dict.fromkeys([*dated, *strong]))
    if not guilty:
        return Claim()
    won = {one: _won(case, (one,)) for one in guilty}
    guilty = tuple(sorted(guilty, key=lambda one: (-won[one][0], one)))
    total, error = won[guilty[0]] if len(guilty) == 1 else _won(case, guilty)
    estimate = case.estimate(total, error, "better", "worse")
    if estimate is None:
        return Claim(frozenset(guilty))
    how = []
    if dated:
        first = next(one for one in guilty if one in dated)
        how.append(f"{shown([first])} is younger than the event on {dated[first]:.1%} of the rows")
    if strong:
        first = next(one for one in guilty if one in strong)
        before, after = strong[first]
        how.append(f"{shown([first])} alone has AUC {before:.3f}, and {after:.3f} in the worse split")
    finding = finding_of(
        CAUSE,
        estimate,
        guilty,
        f"{shown(guilty)} {number(guilty, 'knows', 'know')} the future: {'; '.join(how)}. Without this "
        f"knowledge the gap is {total:.3f} smaller, {estimate.text}.",
        f"Join {number(guilty, 'this feature', 'these features')} as of the moment of the request, not of "
        "the label; train and test again.",
        [
            *(
                {"feature": name, "auc_better": before, "auc_worse": after}
                for name, (before, after) in strong.items()
            ),
            *({"feature": name, "younger_than_event": rate} for name, rate in dated.items()),
            *_late_rows(case, guilty, dated),
        ],
    )
    return Claim(frozenset(guilty), total, finding, plain=True)


def _won(case: Case, features: tuple[str, ...]) -> tuple[float, float]:
    lost = []
    for side in ("better", "worse"):
        versions = case.scoring.without(side, features)
        lost.append(case.lost(side, versions, [1 / len(versions)] * len(versions)))
    (better, error), (worse, other) = lost
    return better - worse, math.hypot(error, other)


def _late(times: Floats | None, own: Floats | None) -> NDArray[np.bool_] | None:
    """Whether the feature is newer than its event, for the rows with both times."""
    if times is None or own is None:
        return None
    own = np.asarray(own, np.float64)
    known = ~(np.isnan(times) | np.isnan(own))
    return np.asarray((own > times)[known]) if known.any() else None


def _dated(case: Case) -> dict[str, float]:
    """Features with times after the event in `better` (or in the offline join), but not in `worse`."""
    found = {}
    z = one_sided(case.settings.confidence)
    for name in case.columns:
        late = _late(case.better.times, case.better.feature_times.get(name))
        if late is None and case.pairs is not None:
            late = _late(case.pairs.online.times, case.pairs.offline_times.get(name))
        served = _late(case.worse.times, case.worse.feature_times.get(name))
        if late is None:
            continue
        rate, other = float(late.mean()), 0.0 if served is None else float(served.mean())
        spread = rate * (1 - rate) / len(late) + (
            other * (1 - other) / len(served) if served is not None else 0
        )
        if rate - other > case.settings.future + z * math.sqrt(spread):
            found[name] = rate
    return found


def _late_rows(case: Case, guilty: tuple[str, ...], dated: Mapping[str, float]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in guilty:
        own, times = case.better.feature_times.get(name), case.better.times
        if name not in dated or own is None or times is None:
            continue
        column = case.columns[name]
        late = np.asarray(own, np.float64) - times
        order = np.argsort(-np.where(np.isnan(late), -np.inf, late), kind="stable")[:5]
        rows += [
            {
                "id": called(case.better, at),
                "feature": name,
                "value": column.plain(column.sides["better"][at]),
                "event_time": float(times[at]),
                "feature_time": float(np.asarray(own)[at]),
                "label": int(case.better.labels[at]),
            }
            for at in order.tolist()
            if late[at] > 0
        ]
    return rows


def older_test_rows(case: Case) -> Claim:
    """Test rows older than the newest training row: the model has seen rows of the same time.

    Share: the fall of the test AUC on the newer rows. If there are too few of them, as in a random split, the
    share is None: such a split is a reason to doubt the test, but no proof.
    """
    train, test = case.train, case.better
    if case.pair != "test_online" or train is None or train.times is None or test.times is None:
        return Claim()
    known = train.times[~np.isnan(train.times)]
    dated = ~np.isnan(test.times)
    if not known.size or not dated.any():
        return Claim()
    newest = float(known.max())
    older = dated & (test.times < newest)
    rate = float(older.sum() / dated.sum())
    if rate <= case.settings.older:
        return Claim()
    newer = (dated & ~older).astype(np.float64)
    ranking = Ranking(test.scores, test.labels)
    whole, rest = ranking.area(), ranking.area(newer)
    share, won = None, 0.0
    fewest = min(float(newer @ ranking.positive), float(newer @ ~ranking.positive))
    if whole is not None and rest is not None and fewest >= case.settings.least_rows:
        won, error = change(whole, rest, case.owners.get("better"))
        share = case.share(won, error)
        if share is None:
            return Claim()
    at = np.flatnonzero(older)
    at = at[np.argsort(test.times[at], kind="stable")][:EVIDENCE]
    lost = (
        "too few are newer to tell what that hides"
        if share is None
        else f"on the newer ones AUC is {won:.3f} lower, {min(share, 1.0):.0%} of the gap of {case.gap:.3f}"
    )
    finding = Finding(
        CAUSE,
        None if share is None else min(share, 1.0),
        (),
        f"{rate:.1%} of the test rows are older than the newest row of training; {lost}.",
        "Split by time: test on rows that are newer than all of training.",
        tuple(
            {
                "id": called(test, one),
                "event_time": float(test.times[one]),
                "newest_train_time": newest,
            }
            for one in at.tolist()
        ),
    )
    return Claim(frozenset(), won, finding)
