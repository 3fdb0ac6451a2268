"""Writes docs/config.md from the settings: `python -m monitor.config.reference > docs/config.md`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, ByteSize, Secret, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from monitor.config.explain import members, model_within
from monitor.core.settings import show_duration
from monitor.settings.config import Config

_HEAD = """\
# Configuration

This page is generated from the settings; `make docs` writes it again. `recsys-monitor init LOG` writes a
config for a log. `recsys-monitor validate --config FILE` reports every mistake with its place in the file.

- A config is one YAML file. A key that is not on this page is a mistake. Paths are relative to its folder.
- Durations are `90s`, `5m`, `1h`, `7d`, `2w`, or sums such as `1h30m`.
- Values may use the environment, `${NAME}` or `${NAME:-default}`, and secret files, `${file:path}`; keys may
  not. A variable that is not set is a mistake. The text that is filled in is always a plain value, never
  YAML. Write `$${` for a plain `${`. A path that begins with `~`, or has a part `$NAME`, is a mistake: write
  `${HOME}` and `${NAME}`.
- No message shows a secret of 8 characters or more: what is in `storage_options` (except endpoints and
  regions) and `secret_headers`, a secret or password in `catalog`, the password of `history.url`, a value
  from a secret file, or from a variable whose name contains `SECRET`, `TOKEN`, `PASSWORD`, `CREDENTIAL`,
  `PRIVATE` or the word `KEY`. Messages show `${NAME}` or `***`.
- Problems of the config show no value from the environment. Messages at run time show paths, names and
  addresses, because somebody must find the broken file. So write credentials into `storage_options`, not into
  a path. See [decision 0031](decisions/0031-secrets-in-messages.md).
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
        ByteSize: "size, as `10GB`",
    }  # fmt: skip
    return words.get(kind, "value")


def _plural(kind: Any) -> str:
    word = _word(members(kind)[0])
    return {"text": "texts", "mapping": "mappings", "number": "numbers"}.get(word, word)


def _default(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return "**required**"
    if default is None or isinstance(default, BaseModel | Secret) or default in ((), {}, ""):
        return ""
    return f"`{_yaml(default)}`"


def _yaml(value: Any) -> str:
    """A value as a config says it; what a mapping leaves at null is left out.

    >>> from monitor.settings.config import LoggingSettings
    >>> _yaml({"click": LoggingSettings()})
    '{click: {format: plain, level: info}}'
    """
    if isinstance(value, BaseModel):
        value = {name: one for name, one in dict(value).items() if one is not None}
    match value:
        case dict():
            return f"{{{', '.join(f'{name}: {_yaml(one)}' for name, one in value.items())}}}"
        case tuple() | list():
            return f"[{', '.join(map(_yaml, value))}]"
        case bool():
            return str(value).lower()
        case timedelta():
            return show_duration(value)
        case _:
            return str(value)


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 (this is what the program is for)
