"""Where the logs are, how they are read, and when a window of them is judged."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    Secret,
    field_validator,
    model_validator,
)

from monitor.core.columns import CATALOG, LOGS, RESERVED, SAMPLES, SPLITS, SURVEY, USERS
from monitor.core.record_path import parse, problem
from monitor.core.settings import Duration, PositiveDuration, Settings, TimeZone, parse_duration

_QUERY = re.compile(r"\?[\w.-]+=")  # `?` alone is a glob's
_CREDENTIAL = re.compile(r"key|secret|token|password", re.IGNORECASE)


def _credentials_are_text(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse a key or secret that YAML took for a number: 0123 would have become 83 unseen."""
    for name, value in options.items():
        if isinstance(value, dict):
            _credentials_are_text(value)
        elif _CREDENTIAL.search(name) and isinstance(value, int | float) and not isinstance(value, bool):
            raise ValueError(f"{name} was read as a number; put it in quotes")
    return options


def _is_a_name_or_a_path(text: str) -> str:
    if why := problem(text):
        raise ValueError(why)
    return text


def _walks_one_list(log: LogSettings | None) -> LogSettings | None:
    """Refuse paths through several lists of one row: their values belong to no common item."""
    lists: dict[str, str] = {}
    for ours, theirs in log.columns.items() if log else ():
        if (name := parse(theirs).list_name) is not None:
            lists.setdefault(name, ours)
    if len(lists) > 1:
        (one, ours), (other, beside) = list(lists.items())[:2]
        raise ValueError(
            f"columns: {ours} reads the list {one!r} and {beside} the list {other!r}; "
            "all items of a row must come from one list"
        )
    return log


def _duration_or_auto(value: Any) -> timedelta | None:
    """A duration, or None for `auto`; raises ValueError for anything else."""
    try:
        return None if value in ("auto", None) else parse_duration(value)
    except ValueError as exc:
        raise ValueError(f"{exc}, or auto") from None


def _holds_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        raise ValueError("the host or bucket of a URL has no [ or ]; these belong behind it") from None


class LogSettings(Settings):
    """One log: a glob of files or a table, local or by URL, and how to read it."""

    path: Annotated[
        str | tuple[str, ...],
        Field(description="a glob or a list of globs, local or s3://...; or a table, see docs/tables.md"),
    ]
    format: Literal["auto", "parquet", "csv", "json", "delta", "iceberg"] = Field(
        "auto", description="delta and iceberg are tables, and need the extra `lake`"
    )
    columns: dict[str, Annotated[str, AfterValidator(_is_a_name_or_a_path)]] = Field(
        default_factory=dict,
        description="the monitor's name: the name in the file, or a path into records, such as ab.exp or "
        "recs[].iid",
    )
    only: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="the monitor's column: the value or values that mark this recommender's rows; * matches "
        "any value",
    )
    timezone: TimeZone = Field("UTC", description="the time zone of times without an offset")
    timestamp_unit: Literal["auto", "s", "ms", "us", "ns"] = "auto"
    list_separator: str | None = Field(
        None,
        min_length=1,
        max_length=3,
        description="splits a list in one text field; brackets and quotes are dropped",
    )
    file_deadline: PositiveDuration = Field("2m", description="a file that takes longer to index is skipped")  # type: ignore[assignment]
    max_file_size: ByteSize = Field(
        "20GB",  # type: ignore[assignment]
        ge=1,
        description="a larger file is skipped; for a compressed file the uncompressed size counts",
    )
    max_rows: int = Field(500_000_000, ge=1, description="a file with more rows is skipped")
    max_columns: int = Field(2000, ge=1, description="a file with more columns, or keys in JSON, is skipped")
    stalled_after: Annotated[timedelta | None, BeforeValidator(_duration_or_auto)] = Field(
        "auto",  # type: ignore[assignment]
        description="for exposures and feedback: the log counts as stalled when its newest row is this old; "
        "auto learns it from the times at which files arrived",
    )
    storage_options: Secret[Annotated[dict[str, Any], AfterValidator(_credentials_are_text)]] = Field(
        Secret({}), description="passed to fsspec: key, secret, endpoint_url, ...; secrets are never shown"
    )
    catalog: Secret[Annotated[dict[str, Any], AfterValidator(_credentials_are_text)]] = Field(
        Secret({}),
        description="for iceberg, passed to pyiceberg: name, type, uri, warehouse, credential, ...; secrets "
        "are never shown",
    )

    @field_validator("columns")
    @classmethod
    def _no_column_is_reserved(cls, value: dict[str, str]) -> dict[str, str]:
        if any(ours.lower().startswith(RESERVED) for ours in value):
            raise ValueError(f"names that begin with {RESERVED} are the monitor's own; choose another one")
        return value

    @field_validator("path")
    @classmethod
    def _path_has_no_password(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        paths = (value,) if isinstance(value, str) else value
        if not paths or not all(paths):
            raise ValueError("must name at least one file or glob, and none may be empty")
        if any("://" in one and _holds_password(one) for one in paths):
            raise ValueError("a password in a path would be shown in messages; put it into storage_options")
        if any("://" in one and _QUERY.search(one) for one in paths):
            raise ValueError("a query in a URL may hold a token; put credentials into storage_options")
        return value

    @model_validator(mode="after")
    def _only_iceberg_has_a_catalog(self) -> Self:
        if not self.has_catalog:
            return self
        if self.format != "iceberg":
            raise ValueError("catalog: only format: iceberg has one")
        if any("." not in one or "/" in one for one in self.paths):
            raise ValueError("path: with a catalog it is the name of a table, as namespace.table")
        return self

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,) if isinstance(self.path, str) else self.path

    @property
    def is_table(self) -> bool:
        """Whether each path is a table, which says itself which files it consists of.

        >>> LogSettings(path="x", format="delta").is_table, LogSettings(path="x").is_table
        (True, False)
        """
        return self.format in ("delta", "iceberg")

    @property
    def has_catalog(self) -> bool:
        """Whether a catalog knows where the tables are, so that `path` is no place."""
        return bool(self.catalog.get_secret_value())


class SampleLogSettings(LogSettings):
    """A log of scored, labelled rows, and the names of its splits."""

    splits: dict[Literal["train", "test", "online", "offline"], str | tuple[str, ...]] = Field(
        default_factory=dict,
        description="the monitor's split: its value or values in the log; default: the split's name",
    )

    @model_validator(mode="after")
    def _a_value_is_of_one_split(self) -> SampleLogSettings:
        values = [value for values in self.split_values().values() for value in values]
        if twice := sorted({value for value in values if values.count(value) > 1}):
            raise ValueError(f"splits: {twice[0]!r} stands for two of {', '.join(SPLITS)}")
        return self

    def split_values(self) -> dict[str, tuple[str, ...]]:
        """Each of our splits with its values in the log.

        >>> SampleLogSettings(path="x", splits={"test": "reference"}).split_values()["test"]
        ('reference',)
        """
        given = {name: self.splits.get(name, name) for name in SPLITS}
        return {name: (one,) if isinstance(one, str) else one for name, one in given.items()}


class LogsSettings(Settings):
    """The logs of one recommender: exposures, or samples of its models, or both. The other logs are
    optional.
    """

    exposures: Annotated[LogSettings | None, AfterValidator(_walks_one_list)] = None
    feedback: LogSettings | None = None
    catalog: LogSettings | None = None
    users: LogSettings | None = None
    samples: SampleLogSettings | None = None
    survey: LogSettings | None = None

    @model_validator(mode="after")
    def _only_rows_that_keep_coming_stall(self) -> LogsSettings:
        for name in (CATALOG, USERS, SAMPLES, SURVEY):
            log = getattr(self, name)
            if log is not None and log.stalled_after is not None:
                raise ValueError(
                    f"{name}: stalled_after has no effect here; set it for exposures or feedback"
                )
        return self

    def named(self) -> dict[str, LogSettings]:
        """The logs that are configured, by name.

        >>> list(LogsSettings(exposures={"path": "*.parquet"}).named())
        ['exposures']
        """
        return {name: log for name in LOGS if (log := getattr(self, name)) is not None}


class TimeSettings(Settings):
    """When a window is judged."""

    window: Annotated[Duration, Field(description="length of a window, aligned to 1970-01-01 UTC")] = Field(
        default="1h"  # type: ignore[assignment]
    )
    lateness: Duration = Field(
        "5m", description="a window is judged once the log reaches this far past its end"
    )  # type: ignore[assignment]
    max_wait: Duration = Field(
        "1h", description="a window that still waits when the clock is this far past its end is late"
    )  # type: ignore[assignment]
    catch_up: int = Field(48, ge=1, description="how many missed windows are judged later, newest first")
    future_tolerance: Duration = Field(
        "5m", description="how far a row's time may lie after its file was written"
    )  # type: ignore[assignment]

    @property
    def divides_a_day(self) -> bool:
        """Whether no window lies in two days, so that a day is a sum of windows.

        >>> [TimeSettings(window=length).divides_a_day for length in ("1h", "7h", "1d", "2d", "0s")]
        [True, False, True, False, False]
        """
        return self.window > timedelta(0) and timedelta(days=1) % self.window == timedelta(0)
