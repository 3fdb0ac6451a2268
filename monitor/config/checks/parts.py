"""Checks the well-formed parts of a config with mistakes of form, so that all problems come in one list.

The parts with mistakes are left out and the rest is checked as if it were the whole. A problem that depends
on a part that was left out is not reported: it would rest on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monitor.config.checks.check import check_config
from monitor.config.checks.server import check_server
from monitor.config.explain import places_of
from monitor.config.problems import KeyPath, Problem, is_within, show_place
from monitor.core.columns import EXPOSURES, LOGS
from monitor.settings.config import Config

_ENTRIES = ("rules", "objectives")  # lists whose entries are checked one by one
_NUMBERED = re.compile(r"recommenders\[(\d+)\](?:\.(rules|objectives)\[(\d+)\])?")

# The place of a problem within its recommender -> the settings that it depends on; the first match counts.
# All but the retention lie in the recommender too. A gate depends on every recommender: see `_depends_on`.
_SERIES = r"(objectives|health\.parts|forecast\.(targets|offline))\[\d+\](\.used\[\d+\])?"
_DEPENDS_ON: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"window", ("history.retention", "catch_up", "metrics.history", "rollups")),
    (r"max_wait", ("lateness",)),
    (r"catch_up", ("window",)),
    (r"metrics\.history", ("window",)),
    (r"metrics\..*", ("logs",)),
    (r"slices\..*", ("logs.exposures.columns",)),
    (rf"{_SERIES}\.metric", ("logs", "metrics.disable")),
    (
        rf"{_SERIES}\.labels",
        ("metrics.novelty", "metrics.events", "metrics.k", "slices.by", "slices.metrics", "rollups"),
    ),
    (r"(bands|forecast|platform)\b.*", ("window", "history.retention", "logs", "bands.timezone")),
    (r"rollups.*", ("window", "logs", "bands.timezone")),
    (r"(survey|models|experiments)\b.*", ("logs", "logs.exposures.columns", "metrics.disable")),
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake of form. No check depends on an unknown key."""

    place: KeyPath
    unknown_key: bool = False


def senseless_parts(values: dict[str, Any], mistakes: Iterable[Mistake], folder: Path) -> list[Problem]:
    """The problems that `check_config` finds in what has no mistake of form.

    Args:
        values: the raw config, references filled in.
        mistakes: where it is not well formed.
        folder: the config file's own.
    """
    whole = [(_whole(one.place), one.unknown_key) for one in mistakes]
    out_of = {place for place, unknown_key in whole if not unknown_key}
    left_out = {place for place, _ in whole}
    while True:
        sound = _Sound(left_out)
        kept = sound.without(values)
        if not isinstance(kept.get("recommenders"), list):
            return []
        for number, one in zip(sound.kept[("recommenders",)], kept["recommenders"], strict=True):
            if isinstance(one, dict):
                _stand_in(one, number, values["recommenders"][number])
        try:
            config = Config.model_validate(kept)
            break
        except ValidationError as exc:  # a part that needs what was left out, as a gate its conditions
            further = {sound.unfit(kept, place) for place, _ in places_of(exc, Config)} - left_out
            if not further or () in further:
                return []
            left_out |= further
            out_of |= further
    out = set(map(show_place, out_of))
    of_recommenders = (problem for one in check_config(config, folder) for problem in one.problems)
    found = (*check_server(config.server), *of_recommenders)
    problems = (Problem(sound.numbered(one.place), sound.numbered(one.message)) for one in found)
    return [one for one in problems if not _depends_on(one.place, out)]


def _whole(place: KeyPath) -> KeyPath:
    """The smallest part around a mistake that can be left out: an entry of `_ENTRIES`, else a whole list."""
    for depth, part in enumerate(place):
        if isinstance(part, int) and depth > 1:
            return place[: depth + 1] if place[depth - 1] in _ENTRIES else place[:depth]
    return place


@dataclass(slots=True)
class _Sound:
    """The rest of a config; `kept` holds, for each list, the old numbers of its remaining entries."""

    bad: set[KeyPath]
    kept: dict[KeyPath, list[int]] = field(default_factory=dict)

    def without(self, value: Any, place: KeyPath = ()) -> Any:
        if isinstance(value, dict):
            return {
                key: self.without(one, (*place, key))
                for key, one in value.items()
                if (*place, key) not in self.bad
            }
        if isinstance(value, list):
            self.kept[place] = [number for number in range(len(value)) if (*place, number) not in self.bad]
            return [self.without(value[number], (*place, number)) for number in self.kept[place]]
        return value

    def unfit(self, kept: Any, place: KeyPath) -> KeyPath:
        """The place in the file of an unfit part of the rest; of a lacking key, of what lacks it."""
        found: list[str | int] = []
        for part in place:
            numbers = self.kept.get(tuple(found))
            try:
                kept = kept[part]
            except (LookupError, TypeError):
                break
            found.append(numbers[part] if numbers is not None and isinstance(part, int) else part)
        return _whole(tuple(found))

    def numbered(self, text: str) -> str:
        """A text about the rest, with the numbers that the entries have in the file."""

        def old(match: re.Match[str]) -> str:
            number = self.kept[("recommenders",)][int(match[1])]
            shown = f"recommenders[{number}]"
            if match[2] is None:
                return shown
            return f"{shown}.{match[2]}[{self.kept[('recommenders', number, match[2])][int(match[3])]}]"

        return _NUMBERED.sub(old, text)


def _stand_in(recommender: dict[str, Any], number: int, was: dict[str, Any]) -> None:
    """Add the required keys that were left out. A log that was given stays, whatever is wrong in it."""
    recommender.setdefault("name", f"unnamed-{number}")
    given = was.get("logs")
    logs = recommender.setdefault("logs", {})
    for name in [one for one in LOGS if one in given] if isinstance(given, dict) else [EXPOSURES]:
        logs[name] = logs.get(name) or {}  # a name with nothing below it is null
        logs[name].setdefault("path", "unknown")


def _depends_on(place: str, out: set[str]) -> bool:
    """Whether a problem lies in a part that was left out, or depends on one."""
    match = re.match(r"(recommenders\[\d+\])\.", place)
    if match is None:
        return place in out
    within = place[match.end() :]
    if within.startswith("gate."):
        return any(one.startswith("recommenders") for one in out)
    needs = next((needs for pattern, needs in _DEPENDS_ON if re.fullmatch(pattern, within)), ())
    return any(is_within(part, left) for part in (within, *needs) for left in _left_out(match[1], out))


def _left_out(recommender: str, out: set[str]) -> Iterator[str]:
    """The places that were left out, relative to a recommender."""
    for place in out:
        if not place.startswith("recommenders"):
            yield place
        elif place.startswith(f"{recommender}."):
            yield place.removeprefix(f"{recommender}.")
