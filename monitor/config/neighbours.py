"""Finds a catalog, a feedback log and a table of users that lie beside the exposures."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.config.guess import Guess, guess_columns
from monitor.config.profile import TABLE, CannotProfile, Profile, profile
from monitor.logs import columns as c
from monitor.logs.engine import Engine
from monitor.logs.settings import LogSettings

_NAMES = {
    c.FEEDBACK: ("feedback", "clicks", "actions", "interactions"),
    c.CATALOG: ("catalog", "catalogue", "items", "products", "articles"),
    c.USERS: ("users", "customers", "members"),
}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another log of the same recommender."""

    paths: tuple[str, ...]
    profile: Profile
    guesses: dict[str, Guess]

    def has(self, role: str) -> bool:
        """Whether a column of ours was found."""
        return role in self.guesses


def neighbours(engine: Engine, exposures: Profile, arguments: Sequence[str]) -> dict[str, Neighbour]:
    """The logs beside the exposures that have every column they need, by what they are."""
    first = exposures.files[0]
    if not first.is_local or len(arguments) != 1:
        return {}
    own = {Path(one.path).name for one in exposures.files}
    found: dict[str, Neighbour] = {}
    for log, names in _NAMES.items():
        for path in _files(Path(first.path).parent, names):
            if path.name not in own and (one := _neighbour(engine, log, path)) is not None:
                found[log] = one
                break
    return found


def _files(folder: Path, names: Sequence[str]) -> list[Path]:
    """The files of a folder that are called by one of the names."""
    found: list[Path] = []
    for name in names:
        found += sorted(folder.glob(f"{name}.*"))
    return [path for path in found if path.is_file()]


def _neighbour(engine: Engine, log: str, path: Path) -> Neighbour | None:
    paths = (glob.escape(str(path)),)
    try:
        seen = profile(engine, LogSettings(path=paths))
    except CannotProfile:
        return None
    guesses = guess_columns(log, seen, engine.backend.table(TABLE))
    needed = [role for role in c.REQUIRED[log] if role not in guesses]
    return None if needed else Neighbour(paths, seen, guesses)
