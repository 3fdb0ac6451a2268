"""The config of the tested monitor: every log, every pack of rules that fits, and bands."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from benchmarks.scoreboard.alerts import ROOT
from monitor.core.settings import show_duration
from monitor.settings.bands import SLICED
from monitor.settings.recommender import RecommenderSettings
from monitor.simulate.clicks import CLICK
from monitor.simulate.lists import BUCKET
from monitor.simulate.neighbours import FOUND, SEARCH, VISITS
from monitor.simulate.people import BUCKETS
from monitor.simulate.shop import AVAILABLE_FROM, AVAILABLE_UNTIL
from monitor.simulate.simulation import IMPRESSIONS
from monitor.simulate.world import World

NAME: Final = "shop"
LATENESS: Final = 5  # minutes, as is the default
MAX_WAIT: Final = 40  # minutes; longer than from a window's end to the next file of a log
JUDGED: Final = timedelta(minutes=LATENESS + MAX_WAIT)
"""How long after its end a window may be judged."""
REASONS: Final = {
    "platform": "by default there is no platform; the shop's has a search beside it",
    "max_wait": "the last file of an hour comes half an hour after it; a longer wait delays every alert",
    "catch_up": "a new model comes with rows of its training days; no limit would judge each of these hours",
    "metrics.history": "only novelty looks further back, and that costs time in each of thousands of windows",
    "models.over": "in the rows of a whole day an incident is a small part for hours, so it is reported late",
}
"""Setting that differs from its default -> the reason."""
_SWITCHED_ON: Final = ("rules", "models", "experiments", "bands")
BLACKLIST: Final = "blacklist.csv"
_PACKS: Final[dict[str, dict[str, Any]]] = {
    "blacklist": {"blacklist": BLACKLIST},
    "catalog": {"available_from": AVAILABLE_FROM, "available_until": AVAILABLE_UNTIL},
    "lists": {},
    "order": {},
    "scores": {},
    "time": {},
    "arithmetic": {"denominators": [IMPRESSIONS], "underflow": ["score"]},
}


@dataclass(frozen=True, slots=True)
class Deviation:
    """A setting that differs from its default, with both values as text, and the reason."""

    key: str
    here: str
    default: str
    why: str


def deviations() -> list[Deviation]:
    """The settings that differ from the defaults."""
    here = RecommenderSettings.model_validate(config(World())["recommenders"][0])
    default = RecommenderSettings(name=NAME, logs=here.logs)
    return [
        Deviation(key, _shown(attrgetter(key)(here)), _shown(attrgetter(key)(default)), why)
        for key, why in REASONS.items()
    ]


def _shown(value: timedelta | BaseModel | int | None) -> str:
    """The value as a config has it; of settings, those that are written."""
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return str(value.model_dump(mode="json", exclude_unset=True))
    return show_duration(value) if isinstance(value, timedelta) else str(value)


def write_config(folder: Path, world: World, *, measured: bool = False) -> Path:
    """Write the config of a monitor into `folder`, with its rules, and return the config's path.

    `measured`: without rules, models, experiments and bands, as for a monitor that only measures so far.
    The packs are copied and read as a team's own files, so that an incident can break one.
    """
    suites = folder / "rules"
    suites.mkdir(parents=True, exist_ok=True)
    for pack in _PACKS:
        shutil.copyfile(ROOT / "rules" / "business" / f"{pack}.yaml", suites / f"{pack}.yaml")
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config(world, measured=measured), sort_keys=False), "utf-8")
    return path


def config(world: World, *, measured: bool = False) -> dict[str, Any]:
    """The config as `write_config` writes it."""
    whole = _whole(world)
    if measured:
        shop = whole["recommenders"][0]
        for name in _SWITCHED_ON:
            del shop[name]
        del shop["logs"]["samples"]
    return whole


def _whole(world: World) -> dict[str, Any]:
    return {
        "state": "state",
        "log": {"level": "warning"},
        "engine": {"threads": 1},  # every run has its own core
        "recommenders": [
            {
                "name": NAME,
                "logs": {
                    log: {"path": f"logs/{log}/*.parquet"} for log in LOGS if log not in (SEARCH, VISITS)
                },
                "window": "1h",
                "lateness": f"{LATENESS}m",
                "max_wait": f"{MAX_WAIT}m",
                "catch_up": 6,
                "rules": [
                    {"suite": f"rules/{pack}.yaml", **({"parameters": given} if given else {})}
                    for pack, given in _PACKS.items()
                ],
                "metrics": {"attribution": "30m", "history": "1d", "score_range": [0, 1]},
                "slices": {"by": ["scene", "model", "user_activity"], "metrics": list(SLICED)},
                "models": {"over": "2h"},
                "experiments": [
                    {
                        "name": "ranker",
                        "column": "arm",
                        "split": dict.fromkeys(world.arms, 1),
                        "buckets": {"column": BUCKET, "count": BUCKETS},
                        "start": world.start.isoformat(),
                    }
                ],
                "platform": {
                    "totals": {"clicks": {"event": CLICK}},
                    "systems": [
                        {
                            "name": SEARCH,
                            "log": {
                                "path": f"logs/{SEARCH}/*.parquet",
                                "totals": {"clicks": {"event": FOUND}},
                            },
                        }
                    ],
                    # A run watches an incident for three days, in a world of 25: seven days would not fit.
                    "recent": "2d",
                    "before": "16d",
                    "demand": {"log": {"path": f"logs/{VISITS}/*.parquet"}, "add": "value"},
                },
                "bands": {
                    "holidays": [day.isoformat() for day in world.holidays],
                    "seasons": [
                        {"from": one.first.isoformat(), "to": one.last.isoformat(), "what": "a season"}
                        for one in world.seasons
                    ],
                },
            }
        ],
    }


LOGS: Final = ("exposures", "feedback", "catalog", "samples", SEARCH, VISITS)
