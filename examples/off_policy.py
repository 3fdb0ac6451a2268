"""What each policy of the fashion shop would have earned, estimated from the log of the other one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from monitor.report.numbers import number
from monitor.statistics.effects import Estimate
from monitor.statistics.off_policy import (
    Overlap,
    Rows,
    clipped_ips,
    direct_method,
    doubly_robust,
    importance_weights,
    ips,
    overlap,
    self_normalised_ips,
    unsupported_share,
)

CAP = 10.0
FOLDER = Path(os.environ.get("OBD", Path(__file__).parents[1] / "../shared/data/obd"))
SCENES = ("men", "women")
POLICIES = ("random", "bts")
CELL = ["position", "item_id"]


@dataclass(frozen=True, slots=True)
class Estimated:
    """A target policy, estimated from the log of another, and what it earned itself."""

    title: str
    overlap: Overlap
    own: Estimate | None
    estimates: dict[str, Estimate | None]


def read(folder: Path = FOLDER) -> pd.DataFrame:
    """The exposures with `clicked` as 0 or 1, and a number for each user."""
    rows = pd.read_csv(folder / "exposures.csv.gz")
    clicks = pd.read_csv(folder / "feedback.csv.gz", usecols=["request_id", "item_id"])
    both = rows.merge(clicks.drop_duplicates(), how="left", indicator=True)
    both["clicked"] = (both["_merge"] == "both").astype(float)
    both["unit"] = pd.factorize(both["user_id"])[0]
    return both


def estimates(rows: pd.DataFrame) -> Iterator[Estimated]:
    """Both directions of both campaigns."""
    for scene in SCENES:
        of_policy = {name: rows[(rows["scene"] == scene) & (rows["policy"] == name)] for name in POLICIES}
        for logging, target in (POLICIES, POLICIES[::-1]):
            yield estimate(f"{scene}: {logging} → {target}", of_policy[logging], of_policy[target])


def estimate(title: str, log: pd.DataFrame, other: pd.DataFrame) -> Estimated:
    """The click rate of the policy of `other`, from the rows of `log`."""
    target = shares(other)
    q = pd.Series(target.reindex(pd.MultiIndex.from_frame(log[CELL])).to_numpy()).fillna(0.0)
    weights = importance_weights(q, log["score"])
    found = overlap(weights, log["unit"], unsupported=unsupported(target, log))
    clicked = other["clicked"].to_numpy()
    own = Rows.of(np.ones(len(other)), clicked, other["unit"])
    if found.reason:
        return Estimated(title, found, ips(own), {})
    usable = log[weights.usable]
    rows = Rows.of(weights.values[weights.usable], usable["clicked"], usable["unit"])
    predicted, expected = predictions(usable, target)
    direct = direct_method(expected, rows.units)
    return Estimated(
        title,
        found,
        ips(own),
        {
            "IPS": ips(rows),
            f"IPS, weights cut at {CAP:g}": clipped_ips(rows, CAP),
            "self-normalised IPS": self_normalised_ips(rows),
            "direct method": direct,
            "doubly robust": doubly_robust(rows, predicted, expected),
        },
    )


def shares(log: pd.DataFrame) -> pd.Series:
    """How often the policy of a log shows an item at a position.

    The mean logged propensity of the rows that show an item would be too high. A policy that changes with
    time draws the item more often when its propensity is high, so these rows are no fair sample of time.
    """
    counted = log.groupby(CELL).size()
    return counted / counted.groupby("position").transform("sum")


def unsupported(target: pd.Series, log: pd.DataFrame) -> float | None:
    """Share of the target's probability on items that the log never shows at their position."""
    wanted = target.unstack(fill_value=0.0)
    shown = log.groupby(CELL).size().unstack(fill_value=0)
    shown = shown.reindex(index=wanted.index, columns=wanted.columns, fill_value=0)
    rows = log["position"].value_counts().reindex(wanted.index, fill_value=0)
    return unsupported_share(wanted, shown, rows)


def predictions(log: pd.DataFrame, target: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """A model's click rate of the shown item, and of the target at the position, for each row.

    The model is an item's click rate with one click more at the average rate: most items have one or two
    clicks. It is fitted on the other half of the users.
    """
    predicted, expected = np.empty(len(log)), np.empty(len(log))
    for half in (0, 1):
        own = (log["unit"] % 2 == half).to_numpy()
        other = log[~own]
        items = other.groupby("item_id")["clicked"].agg(["sum", "size"])
        rate = other["clicked"].mean()
        model = (items["sum"] + 1) / (items["size"] + 1 / rate)
        predicted[own] = log.loc[own, "item_id"].map(model).fillna(rate)
        by_item = model.reindex(target.index.get_level_values("item_id")).fillna(rate).to_numpy()
        by_position = (target * by_item).groupby("position").sum()
        expected[own] = log.loc[own, "position"].map(by_position)
    return predicted, expected


def table() -> str:
    """The estimates as a table of the page."""
    found = list(estimates(read()))
    lines = [f"| | {' | '.join(one.title for one in found)} |", f"|---|{'---:|' * len(found)}"]
    cells = {
        "effective sample size": [number(one.overlap.effective) for one in found],
        "largest weight": [number(one.overlap.largest) for one in found],
        "mean weight, expected 1": [_cell(one.overlap.mean) for one in found],
        "target without support": [number(one.overlap.unsupported or 0.0) for one in found],
        "**own click rate of the target**": [_cell(one.own) for one in found],
    }
    for name in next(iter(found)).estimates:
        cells[name] = [_cell(one.estimates.get(name)) if one.estimates else "**no_data**" for one in found]
    lines += [f"| {name} | {' | '.join(row)} |" for name, row in cells.items()]
    reasons = [f"`no_data` for {one.title}: {one.overlap.reason}." for one in found if one.overlap.reason]
    return "\n".join([*lines, "", *reasons])


def _cell(found: Estimate | None) -> str:
    if found is None:
        return "**no_data**"
    return f"{number(found.value)} [{number(found.interval.lower)}, {number(found.interval.upper)}]"
