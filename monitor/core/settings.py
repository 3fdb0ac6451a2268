"""What all settings models have in common: frozen, no unknown keys, durations as `90s`, `5m`, `1h`, `7d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from monitor.core.text import VALUE_LENGTH, cut

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}

_LONGEST_DAYS = 36500

NAME_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,62}$"
Name = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN,
        description="lower-case letters, digits, - and _, 63 at most; it is a label and part of a URL",
    ),
]


class Settings(BaseModel):
    """The base of every settings model."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def parse_duration(value: Any) -> timedelta:
    """Read `90s`, `5m`, `1h`, `7d`, `2w`, or sums of them such as `1h30m`.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        return value
    if isinstance(value, str) and re.fullmatch(r"([0-9]{1,12}[smhdw]){1,9}", value):
        parts = re.findall(r"([0-9]+)([smhdw])", value)
        seconds = sum(int(number) * _UNITS[unit] for number, unit in parts)
        if seconds > _LONGEST_DAYS * 86400:
            raise ValueError(f"{value!r} is too long; {_LONGEST_DAYS}d at most")
        return timedelta(seconds=seconds)
    raise ValueError(
        f"{cut(repr(value), VALUE_LENGTH)} is not a duration; write it as 90s, 5m, 1h, 7d or 1h30m"
    )


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
