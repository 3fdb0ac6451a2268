"""What in a config with mistakes of form makes no sense either, so that both kinds come in one list.

The parts with mistakes are left out and the rest is checked as if it were the whole. Of what is found, only
that is told which does not rest on a part that was left out: a guess at what was meant would be noise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from monitor.config.checks.check import check_config
from monitor.config.problems import KeyPath, Problem, is_within, show_place
from monitor.core.columns import EXPOSURES, LOGS
from monitor.settings.config import Config

_ENTRIES = ("rules", "objectives")  # lists of which each entry is good or bad on its own
_NUMBERED = re.compile(r"recommenders\[(\d+)\](?:\.(rules|objectives)\[(\d+)\])?")

# Where a problem lies within its recommender -> what else it rests on; the first that fits. Of these the
# retention alone lies outside.
_RESTS_ON: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"window", ("history.retention",)),
    (r"max_wait", ("lateness",)),
    (r"catch_up", ("window",)),
    (r"metrics\.history", ("window",)),
    (r"metrics\..*", ("logs",)),
    (r"slices\..*", ("logs.exposures.columns",)),
    (r"objectives\[\d+\]\.metric", ("logs", "metrics.disable")),
    (r"objectives\[\d+\]\.labels", ("metrics.novelty", "slices.by")),
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake of form; nothing can rest on a key that is not known."""

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
    sound = _Sound({place for place, _ in whole})
    kept = sound.without(values)
    if not isinstance(kept.get("recommenders"), list):
        return []
    for number, one in zip(sound.kept[("recommenders",)], kept["recommenders"], strict=True):
        if isinstance(one, dict):
            _stand_in(one, number, values["recommenders"][number])
    try:
        checked = check_config(Config.model_validate(kept), folder)
    except ValidationError:  # nothing that could be checked is left
        return []
    out = {show_place(place) for place, unknown_key in whole if not unknown_key}
    found = (problem for one in checked for problem in one.problems)
    problems = (Problem(sound.numbered(one.place), sound.numbered(one.message)) for one in found)
    return [one for one in problems if not _rests_on(one.place, out)]


def _whole(place: KeyPath) -> KeyPath:
    """The smallest part around a mistake that can be left out: lists go as a whole, but for some."""
    for depth, part in enumerate(place):
        if isinstance(part, int) and depth > 1:
            return place[: depth + 1] if place[depth - 1] in _ENTRIES else place[:depth]
    return place


@dataclass(slots=True)
class _Sound:
    """What is left of a config; `kept` has the old numbers of the entries that each list still has."""

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

    def numbered(self, text: str) -> str:
        """A text about what is left, with the numbers that the entries have in the file."""

        def old(match: re.Match[str]) -> str:
            number = self.kept[("recommenders",)][int(match[1])]
            shown = f"recommenders[{number}]"
            if match[2] is None:
                return shown
            return f"{shown}.{match[2]}[{self.kept[('recommenders', number, match[2])][int(match[3])]}]"

        return _NUMBERED.sub(old, text)


def _stand_in(recommender: dict[str, Any], number: int, was: dict[str, Any]) -> None:
    """Give a recommender what none can be without; a log that was given is there, whatever is wrong in it."""
    recommender.setdefault("name", f"unnamed-{number}")
    given = was.get("logs")
    logs = recommender.setdefault("logs", {})
    for name in [one for one in LOGS if one in given] if isinstance(given, dict) else [EXPOSURES]:
        logs.setdefault(name, {}).setdefault("path", "unknown")


def _rests_on(place: str, out: set[str]) -> bool:
    """Whether a problem lies in what was left out, or rests on it."""
    match = re.match(r"(recommenders\[\d+\])\.", place)
    if match is None:
        return place in out
    within = place[match.end() :]
    needs = next((needs for pattern, needs in _RESTS_ON if re.fullmatch(pattern, within)), ())
    rests = [within, *needs]
    return any(is_within(one, left) for one in rests for left in _left_out(match[1], out))


def _left_out(recommender: str, out: set[str]) -> Iterator[str]:
    """What was left out, as seen from a recommender."""
    for place in out:
        if not place.startswith("recommenders"):
            yield place
        elif place.startswith(f"{recommender}."):
            yield place.removeprefix(f"{recommender}.")
