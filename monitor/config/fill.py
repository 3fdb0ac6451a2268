"""Environment variables and secret files in values: `${NAME}`, `${NAME:-default}`, `${file:path}`.

They are filled into values, after the YAML was read, so nothing from the environment can change the
structure. `$${` is a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from monitor.config.problems import KeyPath, Problem, is_within, show_place

_REFERENCE = re.compile(
    r"\$\$\{"
    r"|\$\{file:(?P<path>[^}]+)\}"
    r"|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}"
    r"|(?P<broken>\$\{)"
)
_HOME = re.compile(r"~[\w.-]*/")
_BARE = re.compile(r"(?:^|/)\$([A-Z_][A-Z0-9_]*)(?=/|$)")
_PATHS = frozenset({"path", "state", "folder", "web_config", "suite", "blacklist"})  # the keys of paths
_SQLITE = "sqlite:///"
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,15})?")
_MAX_FILE_BYTES = 64 << 10
_UNTYPED = "parameters"
_LEAST = 4  # characters of a value that is hidden in messages about other places
_SHORTEST_CUT = 20  # messages cut long values, but not below this length


@dataclass(slots=True)
class Filler:
    """Fills the references of one config, and remembers them, so that no message shows a filled-in value.

    Attributes:
        wrong: the places of the problems.
        secrets: each place with pairs of the reference and the value that replaced it.
    """

    folder: Path
    environment: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)
    wrong: set[KeyPath] = field(default_factory=set)
    secrets: dict[KeyPath, list[tuple[str, str]]] = field(default_factory=dict)

    def fill(self, value: Any, place: KeyPath = ()) -> Any:
        """The value with every reference in its texts filled in. Keys stay as they are and must be texts."""
        if isinstance(value, dict):
            return {self._key(key, place): self.fill(one, (*place, str(key))) for key, one in value.items()}
        if isinstance(value, list):
            return [self.fill(one, (*place, number)) for number, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        self._check_unexpanded(value, place)
        filled = _REFERENCE.sub(lambda match: self._one(match, place), value) if "${" in value else value
        if "\0" in filled or not _encodable(filled):
            self._wrong(place, "has a character that is not allowed in a path, name or address")
        if place in self.secrets and _UNTYPED in place:  # no model says what type is wanted here
            return _as_number(filled)
        return filled

    def hide(self, message: str, shown: str) -> str:
        """The message about a shown place, with references in place of the values that were filled in.

        Values of the place, or of places inside or around it, are replaced; short ones only if they are
        whole words. Values of other places are replaced if they are longer and whole words: a short one may
        be any word of the sentence.
        """
        forms = [
            (form, reference, is_within(shown, place) or is_within(place, shown))
            for place, pairs in ((show_place(where), pairs) for where, pairs in self.secrets.items())
            for reference, filled in pairs
            for form in dict.fromkeys((filled, repr(filled)[1:-1]))
        ]
        parts = [message]  # every second one is a reference: it stays, even if its default is a value
        for form, reference, related in sorted(forms, key=lambda one: -len(one[0])):
            parts = [
                new
                for number, part in enumerate(parts)
                for new in ([part] if number % 2 else _put_back(part, form, reference, related))
            ]
        return "".join(parts)

    def is_filled(self, place: KeyPath) -> bool:
        """Whether a value at, above or below the place came from the environment or from a file."""
        return any(one[: len(place)] == place or place[: len(one)] == one for one in self.secrets)

    def _key(self, key: Any, place: KeyPath) -> str:
        """The key as text. Any other is wrong, but stays, so that its mapping keeps its length."""
        if isinstance(key, bool):
            why = f"YAML reads this key as {str(key).lower()} (like yes, no, on and off); put it in quotes"
            self._wrong((*place, str(key)), why)
        elif not isinstance(key, str):
            self._wrong((*place, str(key)), "a key must be text; put it in quotes")
        return str(key)

    def _check_unexpanded(self, value: str, place: KeyPath) -> None:
        """Report what a shell would expand in a path: the monitor would look for that very name."""
        key = next((key for key in reversed(place) if isinstance(key, str)), "")
        if key == "url" and value.startswith(_SQLITE):
            value = value.removeprefix(_SQLITE)
        elif key not in _PATHS and not key.endswith("_file"):
            return
        if _HOME.match(value):
            self._wrong(place, "`~` is not expanded; write ${HOME}, or the whole path")
        if (bare := _BARE.search(value)) is not None:
            self._wrong(place, f"${bare[1]} is not expanded; write ${{{bare[1]}}}")

    def _one(self, match: re.Match[str], place: KeyPath) -> str:
        if match[0] == "$${":
            return "${"
        if match["broken"]:
            why = "has a ${ that is not ${NAME}, ${NAME:-default} or ${file:path}; write $${ for a plain ${"
            self._wrong(place, why)
            return ""
        text = self._file(match["path"], place) if match["path"] else self._variable(match, place)
        self.secrets.setdefault(place, []).append((match[0], text))
        return text

    def _variable(self, match: re.Match[str], place: KeyPath) -> str:
        name = match["name"]
        found = self.environment.get(name, match["default"])
        if found is None:
            hint = f"set it, or give a default as ${{{name}:-...}}"
            self._wrong(place, f"the environment variable {name} is not set; {hint}")
            return ""
        return found

    def _file(self, name: str, place: KeyPath) -> str:
        try:
            with (self.folder / name).open("rb") as stream:
                content = stream.read(_MAX_FILE_BYTES + 1)
            if len(content) > _MAX_FILE_BYTES:
                self._wrong(place, f"the file {name!r} is larger than {_MAX_FILE_BYTES >> 10} KiB")
                return ""
            return content.decode("utf-8").rstrip("\r\n")
        except OSError as exc:
            self._wrong(place, f"the file {name!r} cannot be read: {exc.strerror}")
        except UnicodeDecodeError:
            self._wrong(place, f"the file {name!r} is not UTF-8 text")
        except ValueError:
            self._wrong(place, f"{name!r} cannot be the name of a file")
        return ""

    def _wrong(self, place: KeyPath, message: str) -> None:
        self.problems.append(Problem(show_place(place), message))
        self.wrong.add(place)


def _put_back(text: str, filled: str, reference: str, related: bool) -> list[str]:
    """The text in parts, every second one being the reference in place of the value."""
    if not filled or (not related and len(filled) < _LEAST):
        return [text]
    anywhere = related and len(filled) >= _LEAST
    pattern = re.escape(filled) if anywhere else rf"(?<!\w){re.escape(filled)}(?!\w)"
    rest = re.split(pattern, text)
    if len(filled) > _SHORTEST_CUT:
        rest = [part for whole in rest for part in _around_cuts(whole, filled)]
    return [part for one in rest for part in (one, reference)][:-1]


def _around_cuts(text: str, filled: str) -> Iterator[str]:
    """The text around each beginning of the value: messages cut long values."""
    start, at = filled[:_SHORTEST_CUT], 0
    while (cut := text.find(start, at)) >= 0:
        yield text[at:cut]
        same = takewhile(lambda pair: pair[0] == pair[1], zip(text[cut:], filled, strict=False))
        at = cut + sum(1 for _ in same)
    yield text[at:]


def _as_number(text: str) -> Any:
    """A number or a truth value if the text is exactly one, else the text."""
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text) is None:
        return text
    return float(text) if "." in text else int(text)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
