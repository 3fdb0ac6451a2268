"""Pruned features: the model was made with them, and they do not reach it in the worse split."""

from __future__ import annotations

import numpy as np

from monitor.diagnosis.case import EVIDENCE, NAMED, Case, Claim, Finding, shown

CAUSE = "pruned_features"
_EXPECTED = 10.0
"""Rows of another value that `worse` should have had: with fewer a constant may be chance."""


def pruned_features(case: Case, owned: frozenset[str]) -> Claim:
    """Features that vary in `better` (or in the offline join) and are absent or constant in all of `worse`.

    Share: what `better` loses where they have that one value on all of its rows.
    """
    constants = {
        name: value
        for name in case.columns
        if name not in owned and (value := _constant(case, name)) is not None
    }
    if not constants:
        return Claim()
    rows = len(case.better)
    single = {
        name: case.lost("better", [case.scoring.changed("better", {name: np.full(rows, value)})], [1.0])[0]
        for name, value in constants.items()
    }
    guilty = tuple(sorted(constants, key=lambda name: (-single[name], name)))
    broken = case.scoring.changed("better", {name: np.full(rows, constants[name]) for name in guilty})
    won, error = case.lost("better", [broken], [1.0])
    share = case.share(won, error)
    if share is None:
        return Claim(frozenset(guilty))
    absent = [name for name in guilty if "worse" not in case.columns[name].sides]
    how = f"{len(guilty) - len(absent)} constant, {len(absent)} absent"
    finding = Finding(
        CAUSE,
        min(share, 1.0),
        guilty[:NAMED],
        f"{shown(guilty)} vary in the better split and not in the worse one ({how}). Broken so, the better "
        f"split loses {won:.3f}, {min(share, 1.0):.0%} of the gap of {case.gap:.3f} ({case.scoring.how}).",
        "Serve these features again, or train a model without them.",
        tuple(
            {
                "feature": name,
                "worse": "absent" if name in absent else case.columns[name].plain(constants[name]),
                "rows": len(case.worse),
                "auc_lost": single[name],
            }
            for name in guilty[:EVIDENCE]
        ),
    )
    return Claim(frozenset(guilty), won, finding)


def _constant(case: Case, name: str) -> float | None:
    """The one value of `worse`, NaN for missing; None where it varies or has nothing to be missed."""
    column = case.columns[name]
    if not (column.varies("better") or column.varies("offline")) or column.varies("worse"):
        return None
    worse = column.sides.get("worse")
    value = float("nan") if worse is None else float(worse[0])
    reference = column.sides["better" if column.varies("better") else "offline"]
    same = np.isnan(reference) if np.isnan(value) else reference == value
    return value if (1 - float(same.mean())) * len(case.worse) >= _EXPECTED else None
