"""A mistake in a config: its place, its message, and how both are shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from monitor.core.errors import ExpectedError
from monitor.core.text import SETTING_LENGTH, cut, plural

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a config."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class ConfigError(ExpectedError):
    """A config that cannot be used, with all of its problems."""

    hint = "The reference of every key is in docs/config.md; `init` writes a config for a log."

    def __init__(self, path: Path, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(problems)
        count = len(self.problems)
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(f"{path}: {plural(count, 'problem')}\n{lines}")


def show_place(place: KeyPath) -> str:
    """A place as people write it; a key that is no plain word is quoted.

    >>> show_place(("recommenders", 0, "logs", "exposures", "path"))
    'recommenders[0].logs.exposures.path'
    >>> show_place(("columns", "a\\nb"))
    "columns.'a\\\\nb'"
    """
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        word = cut(part if part.isprintable() and part.strip() == part != "" else repr(part), SETTING_LENGTH)
        text += f".{word}" if text else word
    return text


def is_within(place: str, part: str) -> bool:
    """Whether a shown place is this part of the config, or inside it.

    >>> is_within("rules[1].pack", "rules[1]"), is_within("rules[10]", "rules[1]")
    (True, False)
    """
    return place == part or place.startswith((f"{part}.", f"{part}["))


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that was probably meant, whatever its case, `-` and `_`.

    >>> nearest("Max-Wait", ["max_wait", "lateness"])
    'max_wait'
    """
    plain = {one.lower().replace("_", "").replace("-", ""): one for one in known}
    asked = word[:SETTING_LENGTH].lower().replace("_", "").replace("-", "")
    close = difflib.get_close_matches(asked, plain, n=1, cutoff=cutoff)
    return plain[close[0]] if close else None
