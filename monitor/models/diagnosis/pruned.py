"""Pruned features: the model was trained with them, but the worse split lacks them."""

from __future__ import annotations

from typing import Any

import numpy as np

from monitor.models.diagnosis.case import EVIDENCE, Case, Claim, finding_of, number, shown
from monitor.models.diagnosis.columns import equals
from monitor.models.diagnosis.repair import Struck, from_donors, with_offline
from monitor.models.diagnosis.strong import telling_alone

CAUSE = "pruned_features"
_EXPECTED = 10.0
"""Expected rows of `worse` with another value: with fewer, a constant may be chance."""
_SINGLES = 40
"""Features whose effect is measured one by one."""


def pruned_features(case: Case, owned: frozenset[str]) -> Claim:
    """Features that vary in `better` (or in the offline join) and are absent or constant in all of `worse`.

    Share: the gain of AUC in `worse` if they get their offline values back, or become as informative as in
    `better`. A constant is plain evidence, so it is named even if its share is unknown.
    """
    constants = {
        name: value
        for name in case.columns
        if name not in owned and (value := _constant(case, name)) is not None
    }
    if not constants:
        return Claim()
    single = {name: _repaired(case, {name: constants[name]})[0] for name in list(constants)[:_SINGLES]}
    guilty = tuple(sorted(constants, key=lambda name: (-single.get(name, 0.0), name)))
    won, error = _repaired(case, constants)
    estimate = case.estimate(won, error, _side(case, constants))
    absent = [name for name in guilty if "worse" not in case.columns[name].sides]
    knowing = {
        name: found
        for name in guilty
        if (found := telling_alone(case, name)) is not None and found >= case.settings.single_auc
    }
    how = f"{len(guilty) - len(absent)} constant, {len(absent)} absent"
    cost = (
        f"A repair raises the AUC of the worse split by {won:.3f}, {estimate.text}."
        if estimate
        else f"{number(guilty, 'Its', 'Their')} share of the gap is unknown: a repair changes AUC by "
        f"{won:.3f} (error {error:.3f}), too little or too uncertain for a share."
    )
    evidence: list[dict[str, Any]] = [
        {
            "feature": name,
            "worse": "absent" if name in absent else case.columns[name].plain(constants[name]),
            "rows": len(case.worse),
            "auc_lost": single.get(name),
        }
        for name in guilty[: EVIDENCE - 2]
    ]
    evidence += [{"feature": name, "auc_alone_in_better": one} for name, one in list(knowing.items())[:1]]
    finding = finding_of(
        CAUSE,
        estimate,
        guilty,
        f"{shown(guilty)} {number(guilty, 'varies', 'vary')} in the better split and not in the worse "
        f"one ({how}). {cost}",
        _advice(knowing, len(guilty)),
        evidence,
    )
    return Claim(frozenset(guilty), won, finding, plain=True)


def _advice(knowing: dict[str, float], count: int) -> str:
    if not knowing and count == 1:
        return "Serve this feature again, or train a model without it."
    if not knowing:
        return "Serve these features again, or train a model without them."
    name, auc = next(iter(knowing.items()))
    return (
        f"First check when {shown([name])} is known: alone it has AUC {auc:.3f}. A feature that is only "
        "known after the event cannot be served: train and test a model without it. Serve it again only if "
        "it is known at the moment of the request."
    )


def _side(case: Case, constants: dict[str, float]) -> str:
    joined = all("offline" in case.columns[name].sides for name in constants)
    return "online" if case.pairs is not None and joined else "better"


def _repaired(case: Case, constants: dict[str, float]) -> tuple[float, float]:
    if _side(case, constants) == "online":
        return with_offline(case, tuple(constants))
    return from_donors(case, [Struck(constants, np.ones(len(case.worse), np.bool_))])


def _constant(case: Case, name: str) -> float | None:
    """The only value in `worse`, NaN for missing; None if it varies there, or varies nowhere else."""
    column = case.columns[name]
    if not (column.varies("better") or column.varies("offline")) or column.varies("worse"):
        return None
    worse = column.sides.get("worse")
    value = float("nan") if worse is None else float(worse[0])
    reference = column.sides["better" if column.varies("better") else "offline"]
    same = float(equals(reference, value).mean())
    return value if (1 - same) * len(case.worse) >= _EXPECTED else None
