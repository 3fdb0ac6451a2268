"""Writes docs/config.md from the settings: `python -m monitor.config.reference > docs/config.md`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, Secret, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from monitor.config.explain import members, model_within
from monitor.config.models import Config
from monitor.config.problems import show_duration

_HEAD = """\
# Configuration

This page is generated from the settings; `make docs` writes it again. `recsys-monitor init LOG` writes a
config for a log, `recsys-monitor validate --config FILE` names every mistake of one with its place.

- A config is one YAML file. A key that is not on this page is a mistake. Paths are relative to its folder.
- Durations are `90s`, `5m`, `1h`, `7d`, `2w`, or sums such as `1h30m`.
- Values may use the environment, `${NAME}` or `${NAME:-default}`, and secret files, `${file:path}`; keys may
  not. A variable that is not set is a mistake. What is filled in is a value, whatever it holds, and is never
  shown in a message. `$${` is a plain `${`.
- YAML's anchors and merge keys (`<<: *base`) save repetition between recommenders.
"""


def reference() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(place, model) for place, model in _models("", Config))


def _models(place: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Every model of the config with its place; the logs, that are alike, once."""
    yield place, model
    seen: dict[type[BaseModel], list[str]] = {}
    for name, field in model.model_fields.items():
        inner, many = model_within(field.annotation)
        if inner is not None:
            seen.setdefault(inner, []).append(name + ("[]" if many else ""))
    for inner, names in seen.items():
        yield from _models(f"{place}.{' | '.join(names)}".lstrip("."), inner)


def _section(place: str, model: type[BaseModel]) -> str:
    title = f"`{place}`" if place else "The file"
    about = " ".join((model.__doc__ or "").split(">>>")[0].split())
    rows = "".join(_row(field.alias or name, field) for name, field in model.model_fields.items())
    return f"\n## {title}\n\n{about}\n\n| key | value | default | |\n|---|---|---|---|\n{rows}"


def _row(name: str, field: FieldInfo) -> str:
    cells = (f"`{name}`", _kind(field), _default(field), field.description or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _kind(field: FieldInfo) -> str:
    return " or ".join(dict.fromkeys(map(_word, members(field.annotation))))


def _word(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{one}`" for one in get_args(kind))
    if get_origin(kind) is tuple:
        return f"list of {_plural(get_args(kind)[0])}"
    if (isinstance(kind, type) and issubclass(kind, BaseModel)) or get_origin(kind) in (dict, Secret):
        return "mapping"
    words = {
        str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Path: "path",
        timedelta: "duration", datetime: "time", AwareDatetime: "time", SecretStr: "text",
    }  # fmt: skip
    return words.get(kind, "value")


def _plural(kind: Any) -> str:
    word = _word(members(kind)[0])
    return {"text": "texts", "mapping": "mappings", "number": "numbers"}.get(word, word)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return "**required**"
    if isinstance(default, timedelta):
        return f"`{show_duration(default)}`"
    if default is None or isinstance(default, BaseModel | Secret) or default in ((), {}, ""):
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`[{', '.join(map(str, default))}]`"
    return f"`{default}`"


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 (this is what the program is for)
