"""The base of all settings models, and the types that several of them use."""

from __future__ import annotations

import difflib
import math
import re
from datetime import timedelta
from typing import Annotated, Any, get_args
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)

from monitor.core.text import SETTING_LENGTH, VALUE_LENGTH, cut, quoted

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

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """YAML reads `yes` and `no` as true and false, and Python takes these for 1 and 0."""
        types = _types(cls.model_fields[info.field_name or ""].annotation)
        if isinstance(value, bool) and types & {int, float} and bool not in types:
            raise ValueError(f"{str(value).lower()} is not a number")
        return value


def _types(annotation: Any) -> set[Any]:
    """The types that an annotation names."""
    return {annotation} | {one for part in get_args(annotation) for one in _types(part)}


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


def show_duration(length: timedelta) -> str:
    """A duration as it is written in a config.

    >>> show_duration(timedelta(hours=25)), show_duration(timedelta(seconds=90))
    ('1d1h', '1m30s')
    """
    left = int(length.total_seconds())
    text = ""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise ValueError("must be longer than 0")
    return value


def _whole_days(value: timedelta) -> timedelta:
    if value <= timedelta(0) or value % timedelta(days=1):
        raise ValueError("must be whole days, such as 1d or 7d")
    return value


def _runs_upwards(value: tuple[float, float]) -> tuple[float, float]:
    if not (all(map(math.isfinite, value)) and value[0] < value[1]):
        raise ValueError(f"must be two finite numbers, the lower one first, got {list(value)}")
    return value


def _known_zone(name: str) -> str:
    known = available_timezones()
    if name not in known:
        close = difflib.get_close_matches(name[:SETTING_LENGTH], sorted(known))
        hint = f"did you mean {' or '.join(close)}?" if close else "write it as Europe/Berlin or UTC"
        raise ValueError(f"{quoted(name)} is not a known time zone; {hint}")
    return name


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
Days = Annotated[Duration, AfterValidator(_whole_days)]
Range = Annotated[tuple[float, float], AfterValidator(_runs_upwards)]
TimeZone = Annotated[str, AfterValidator(_known_zone)]
