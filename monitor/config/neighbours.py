"""Finds a catalog, a feedback log and a table of users that lie beside the exposures.

They are files or folders that are called what such logs are called, in the folder of the exposures; where
that folder is itself one of several (logs/exposures, logs/feedback), in the one around it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from monitor.config.actions import Actions, look_at_actions
from monitor.config.guess import Guess, guess_columns, time_settings
from monitor.config.profile import TABLE, CannotProfile, Profile, patterns, profile
from monitor.config.traits import READ
from monitor.logs import columns as c
from monitor.logs.engine import Engine
from monitor.logs.settings import LogSettings

_NAMES = {
    c.FEEDBACK: ("feedback", "clicks", "actions", "interactions"),
    c.CATALOG: ("catalog", "catalogue", "items", "products", "articles"),
    c.USERS: ("users", "customers", "members"),
}


_OWN_FOLDERS = ("exposures", "exposure", "impressions", "shown")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another log of the same recommender. `actions` is there for a feedback log that has what it needs."""

    paths: tuple[str, ...]
    profile: Profile
    guesses: dict[str, Guess]
    actions: Actions | None = None

    def has(self, role: str) -> bool:
        """Whether a column of ours was found."""
        return role in self.guesses

    def missing(self, log: str) -> list[str]:
        """The columns of ours that it needs and that were not found."""
        return [role for role in c.REQUIRED[log] if role not in self.guesses]


def neighbours(
    engine: Engine, exposures: Profile, arguments: Sequence[str], feedback: Sequence[str] = ()
) -> dict[str, Neighbour]:
    """The logs beside the exposures that have every column they need, by what they are.

    A feedback log that was named is there in any case.

    Raises:
        CannotProfile: the feedback log that was named cannot be looked at.
    """
    found: dict[str, Neighbour] = {}
    if feedback:
        found[c.FEEDBACK] = _neighbour(engine, c.FEEDBACK, patterns(feedback), exposures)
    first = exposures.files[0]
    if not first.is_local or len(arguments) != 1:
        return found
    own = {Path(one.path).resolve() for one in exposures.files}
    for log, names in _NAMES.items():
        for path in _beside(Path(first.path).parent, names) if log not in found else ():
            if path.resolve() in own:
                continue
            try:
                one = _neighbour(engine, log, patterns([str(path)]), exposures)
            except CannotProfile:
                continue
            if not one.missing(log):
                found[log] = one
                break
    return found


def _beside(folder: Path, names: Sequence[str]) -> list[Path]:
    """The files and folders beside a log that are called by one of the names."""
    around = [folder, folder.parent] if folder.name.lower() in _OWN_FOLDERS else [folder]
    found = [path for name in names for path in sorted(folder.glob(f"{name}.*")) if path.is_file()]
    return found + [path for one in around for name in names if (path := one / name).is_dir()]


def _neighbour(engine: Engine, log: str, paths: tuple[str, ...], exposures: Profile) -> Neighbour:
    seen = profile(engine, LogSettings(path=paths))
    guesses = guess_columns(log, seen, engine.backend.table(TABLE))
    one = Neighbour(paths, seen, guesses)
    if log != c.FEEDBACK or one.missing(log):
        return one
    columns = {role: guess.column for role, guess in guesses.items()}
    times = {key: value for key, value, _ in time_settings(seen, guesses)}
    settings = LogSettings.model_validate({"path": paths, "columns": columns, **times})
    shown = engine.backend.table(READ) if READ in engine.backend.list_tables() else None
    complete = seen.complete and exposures.complete
    return replace(one, actions=look_at_actions(engine, settings, shown, complete))
