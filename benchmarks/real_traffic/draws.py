"""A window of a recommender: its lists and clicks drawn at random, and what the checks measure of them.

Reading a window of logs costs a second. So the sums that the queries of the families give are computed here
with numpy. The families make their results from them, with their own labels, samples and intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from monitor.core.results import Result
from monitor.metrics.catalogue import EXPOSURE_FAMILIES, FEEDBACK_FAMILIES, SPECS
from monitor.metrics.exposure.concentration import Concentration
from monitor.metrics.exposure.coverage import ListCoverage
from monitor.metrics.exposure.volume import Volume
from monitor.metrics.feedback.action_rates import ActionRates
from monitor.metrics.feedback.action_volume import ActionVolume
from monitor.metrics.feedback.attribution_health import AttributionHealth
from monitor.metrics.feedback.busy_users import BusyUsers
from monitor.settings.bands import SLICED
from monitor.settings.recommender import RecommenderSettings

NAME: Final = "real"
SCENE: Final = "scene"
SCENES: Final[Mapping[str, float]] = {"home": 0.5, "detail": 0.3, "search": 0.15, "cart": 0.05}
"""Each scene's share of the requests."""
EMPTY: Final = 0.004
SHORT: Final = 0.02
LENGTH: Final = 10
ITEMS: Final = 600
_SKEW: Final = 0.8
_CLICKS: Final = 0.08 / np.arange(1, LENGTH + 1) ** 0.6  # of the exposures at each position
_USERS_A_REQUEST: Final = 3.0  # people who may come, for each request of a mean hour
_FEWEST_USERS: Final = 100

DRAWN: Final = (
    Volume(), ListCoverage(), Concentration(), ActionVolume(), AttributionHealth(), ActionRates(), BusyUsers()
)  # fmt: skip
_MEASURED: Final = {spec.name for family in DRAWN for spec, _ in family.outputs}
NOT_MEASURED: Final = tuple(name for name in SPECS if name not in _MEASURED)

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Row = dict[str, Any]


def config(logs: Path, **bands: Any) -> dict[str, Any]:
    """The config of the recommender. Metrics that are not drawn are switched off."""
    return {
        "name": NAME,
        "logs": {log: {"path": str(logs / log / "*.parquet")} for log in ("exposures", "feedback")},
        "window": "1h",
        "metrics": {"disable": list(NOT_MEASURED), "max_unattributed": None},
        "slices": {"by": [SCENE], "metrics": list(SLICED)},
        "bands": bands,
    }


def settings(logs: Path, **bands: Any) -> RecommenderSettings:
    """The config as the checks read it."""
    return RecommenderSettings.model_validate(config(logs, **bands))


@dataclass(frozen=True, slots=True)
class Change:
    """What an incident makes of a window: factors of its requests and clicks, and a scene that is lost."""

    requests: float = 1.0
    clicks: float = 1.0
    lost: str = ""


NO_CHANGE: Final = Change()


@dataclass(frozen=True, slots=True)
class Drawn:
    """The requests of a window, one row each: a list is LENGTH items in a row from `first` on, or shorter."""

    scene: Ints
    user: Ints
    first: Ints
    length: Ints
    clicked: Bools
    """By position."""

    @property
    def requests(self) -> int:
        return len(self.scene)

    def results(self, asked: RecommenderSettings) -> tuple[list[Result], list[Result]]:
        """What the checks of exposures and of feedback measure of the window."""
        every = np.ones(self.requests, dtype=np.bool_)
        whole = _rows(self, every)
        scenes = [name for number, name in enumerate(SCENES) if (self.scene == number).any()]
        parts = {name: _rows(self, self.scene == list(SCENES).index(name)) for name in scenes}
        found: dict[str, list[Result]] = {}
        for family in DRAWN:
            results = family.results([whole[family.name]], asked.metrics)
            if family.sliced:
                rows = [{**part[family.name], SCENE: name} for name, part in parts.items()]
                results += [
                    one
                    for one in family.results(rows, asked.metrics, SCENE, SCENE)
                    if one.metric in asked.slices.metrics
                ]
            found[family.name] = results
        return (
            [one for family in EXPOSURE_FAMILIES for one in found.get(family.name, ())],
            [one for family in FEEDBACK_FAMILIES for one in found.get(family.name, ())],
        )

    def frames(self, start: datetime) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The exposures and the feedback of the window as they would be logged."""
        lists = np.repeat(np.arange(self.requests), np.maximum(self.length, 1))
        begins = np.concatenate([[0], np.cumsum(np.maximum(self.length, 1))[:-1]])
        position = np.arange(len(lists)) - begins[lists]
        item = (self.first[lists] + position) % ITEMS
        at = pd.Timestamp(start).tz_localize(None) + pd.to_timedelta(
            lists * 3000.0 / max(1, self.requests), "s"
        )
        exposures = pd.DataFrame(
            {
                "request_id": [f"{start:%d%H}-{one}" for one in lists],
                "user_id": [f"u{one:06}" for one in self.user[lists]],
                "ts": at,
                "item_id": [
                    f"i{one:04}" if full else None
                    for one, full in zip(item, self.length[lists] > 0, strict=True)
                ],
                SCENE: np.array(list(SCENES))[self.scene[lists]],
            }
        )
        clicked = self.clicked[lists, np.minimum(position, LENGTH - 1)] & (self.length[lists] > 0)
        feedback = exposures.loc[clicked, ["request_id", "user_id", "item_id", "ts"]].copy()
        feedback["ts"] += pd.Timedelta(seconds=20)
        feedback["event"] = "click"
        return exposures, feedback


def draw(rate: float, mean: float, rng: np.random.Generator, change: Change = NO_CHANGE) -> Drawn:
    """A window of a recommender that expects `rate` requests in this hour and `mean` in a mean hour."""
    shares = np.array([0.0 if name == change.lost else share for name, share in SCENES.items()])
    scene = np.repeat(np.arange(len(SCENES)), rng.poisson(rate * change.requests * shares))
    n = len(scene)
    empty, short = rng.random((2, n))
    length = np.where(short < SHORT, rng.integers(1, LENGTH, n), LENGTH)
    length = np.where(empty < EMPTY, 0, length)
    users = max(_FEWEST_USERS, round(_USERS_A_REQUEST * mean))
    first = np.searchsorted(_appeal(), rng.random(n))
    clicked = rng.random((n, LENGTH), dtype=np.float32) < _CLICKS * change.clicks
    clicked &= np.arange(LENGTH) < length[:, None]
    return Drawn(scene, rng.integers(0, users, n), first, length, clicked)


@cache
def _appeal() -> npt.NDArray[np.float64]:
    weights = 1.0 / np.arange(1, ITEMS + 1) ** _SKEW
    summed: npt.NDArray[np.float64] = np.cumsum(weights / weights.sum())
    summed[-1] = 1.0
    return summed


def _rows(drawn: Drawn, mine: Bools) -> dict[str, Row]:
    """The row that each family's query would give of these requests, by the name of the family."""
    user, length, first = drawn.user[mine], drawn.length[mine], drawn.first[mine]
    clicks = drawn.clicked[mine].sum(axis=1)
    requests_of = np.bincount(user)
    there = requests_of > 0
    requests_of = requests_of[there]
    exposures_of = np.bincount(user, length)[there]
    clicks_of = np.bincount(user, clicks)[there]
    failed = np.bincount(user, length == 0)[there] > 0
    valid = np.bincount(user, length > 0)[there] > 0
    shown = _shown(first, length)
    requests, actions = len(user), int(clicks.sum())
    users = len(requests_of)
    ones = np.ones(users)
    rates = {
        "without_user": 0.0,
        **_ratio("pv_0", clicks_of, requests_of),
        **_ratio("uv_0", clicks_of, ones),
        **_ratio("exposure_0", clicks_of, exposures_of),
        "acting_0": float((clicks_of > 0).sum()),
    }
    acting = clicks_of[clicks_of > 0]
    return {
        "volume": {
            "requests": requests, "users": users, "exposures": int(length.sum()), "items": len(shown),
            "length": float(length.sum()), "length_squared": float((length**2).sum()),
        },
        "coverage": {
            "requests": requests, "valid": int((length > 0).sum()), "failed": int((length == 0).sum()),
            "without_user": 0, "users": users, "users_valid": int(valid.sum()),
            "users_failed": int(failed.sum()),
        },
        "concentration": _concentration(shown),
        "action_volume": {"rows": actions, "n_0": actions},
        "attribution": {
            "rows": actions, "shown": requests, "other_events": 0, "without_item": 0,
            "request_0": actions, "user_0": 0, "not_shown_0": 0, "unattributed_0": 0,
            **_ratio("lost", np.zeros(len(acting)), acting),
        },
        "action_rates": rates,
        "busy_users": _busy(clicks_of, exposures_of),
    }  # fmt: skip


def _shown(first: Ints, length: Ints) -> Ints:
    """How often each item was shown that was shown, the least first."""
    starts = np.zeros(ITEMS + LENGTH + 1)
    np.add.at(starts, first, length > 0)
    np.add.at(starts, first + length, -1.0 * (length > 0))
    counts = np.cumsum(starts)
    counts[: LENGTH + 1] += counts[ITEMS:]
    counts = counts[:ITEMS]
    return np.sort(counts[counts > 0]).astype(np.int64)


def _concentration(shown: Ints) -> Row:
    k = len(shown)
    above = np.arange(k)[::-1]
    return {
        "items": k,
        "total": int(shown.sum()),
        "ranked": float((np.arange(1, k + 1) * shown).sum()),
        "top_1_percent": int(shown[above * 100 < k].sum()),
        "top_10_percent": int(shown[above * 10 < k].sum()),
        "top_item": int(shown.max(initial=0)),
    }


def _busy(clicks: npt.NDArray[Any], exposures: npt.NDArray[Any]) -> Row:
    """Of all users, and of the busiest of them; ties by the number of the user."""
    busiest = np.argsort(-clicks, kind="stable")
    busiest = busiest[clicks[busiest] > 0]
    acting, ranks = len(busiest), np.arange(len(busiest))
    trimmed = ((ranks < acting * 0.01 - 1e-9) | (ranks == 0)) & (acting > 1)
    gone = np.where(trimmed, 1.0, 0.0)
    return {
        **_ratio("all_0", clicks, exposures),
        "of_known_0": float(clicks.sum()),
        "top_user_0": float(clicks[busiest[:1]].sum()),
        "top_1_percent_0": float(clicks[busiest[ranks * 100 < acting]].sum()),
        "acting_0": float(acting),
        **_ratio("trimmed_0", gone * clicks[busiest], gone * exposures[busiest]),
    }


def _ratio(name: str, over: npt.NDArray[Any], under: npt.NDArray[Any]) -> Row:
    """As `monitor.metrics.feedback.business.ratio_columns`."""
    return {
        f"{name}_n": float((under > 0).sum()),
        f"{name}_x": float(over.sum()),
        f"{name}_y": float(under.sum()),
        f"{name}_xx": float((over * over).sum()),
        f"{name}_yy": float((under * under).sum()),
        f"{name}_xy": float((over * under).sum()),
    }
