"""From frames and a config to a recommender whose logs are these frames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa

from monitor.config.load import checked_values, read_config
from monitor.config.problems import ConfigError, Problem, nearest
from monitor.core.columns import CATALOG, EXPOSURES, FEEDBACK, LOGS, SAMPLES, USERS
from monitor.core.record_path import parse
from monitor.core.text import quoted
from monitor.logs.frames import FrameError, frame_path
from recsys_monitor.frames import rows_of

if TYPE_CHECKING:
    from monitor.config.checks.check import Checked
    from monitor.settings.config import Config

Settings = Mapping[str, Any] | str | os.PathLike[str] | None
Columns = Mapping[str, Any] | None
Time = date | np.datetime64 | str | None
"""A time of a caller: also a datetime or a Timestamp of pandas, which are dates."""
NAME: Final = "frame"
"""The name of the recommender if the config gives none."""
_WHERE: Final = "recommenders[0]."
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2200


@dataclass(frozen=True, slots=True)
class Opened:
    """A recommender whose logs are frames."""

    config: Config
    checked: Checked
    frames: Mapping[str, pa.Table]

    @property
    def empty(self) -> frozenset[str]:
        """The frames without rows."""
        return frozenset(name for name, rows in self.frames.items() if not rows.num_rows)


def open_frames(
    given: Mapping[str, object], config: Settings, columns: Columns, recommender: str | None
) -> Opened:
    """Check the frames' config, as `recsys-monitor check` does.

    Args:
        given: log -> frame; None where there is none.
        config: the settings of a recommender, a whole config, or the path of a config file.
        columns: our column -> the frame's, for all frames that have it, or log -> such a mapping.
        recommender: which one of the config.

    Raises FrameError or ConfigError.
    """
    frames = {name: rows_of(frame, name) for name, frame in given.items() if frame is not None}
    if EXPOSURES not in frames and SAMPLES not in frames:
        raise FrameError("pass the exposures, or the samples of a model: nothing else can be judged alone")
    values, path = _values(config, recommender)
    place = _place(values, recommender)
    values = _with_frames(values, place, frames, _columns(columns, frames))
    try:
        whole, checked = checked_values(values, path)
    except ConfigError as exc:
        raise _plain(exc, config) from None
    chosen = checked[place]
    if chosen.problems:
        raise _plain(ConfigError(path, chosen.problems), config)
    return Opened(whole, chosen, frames)


def span_of(start: Time, end: Time) -> tuple[datetime | None, datetime | None]:
    """The times of a caller. Raises ValueError for what is no time, and if the span ends before it begins."""
    first, last = moment(start, "start"), moment(end, "end")
    if first is not None and last is not None and first >= last:
        raise ValueError("end must be later than start")
    return first, last


def moment(given: Time, name: str) -> datetime | None:
    """A time of a caller; without a zone it is UTC.

    >>> moment("2026-01-31T10:00", "start"), moment(None, "end")
    (datetime.datetime(2026, 1, 31, 10, 0, tzinfo=datetime.timezone.utc), None)
    >>> moment("yesterday", "start")
    Traceback (most recent call last):
    ValueError: start: 'yesterday' is not a time; write it as 2026-01-31 or 2026-01-31T10:00:00Z
    """
    if given is None:
        return None
    how = "write it as 2026-01-31 or 2026-01-31T10:00:00Z"
    wrong = ValueError(f"{name}: {quoted(str(given))} is not a time; {how}")
    if not isinstance(given, str | date | np.datetime64):
        raise wrong
    try:
        when = datetime.fromisoformat(given) if isinstance(given, str) else pd.Timestamp(given)
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError, TypeError):  # TypeError: NaT
        raise wrong from None
    if pd.isna(when):
        raise wrong
    if not _FIRST_YEAR <= when.year < _LAST_YEAR:
        raise ValueError(f"{name}: {quoted(str(given))} must lie between 1970 and 2199; {how}")
    return when if isinstance(given, str) else pd.Timestamp(when).to_pydatetime(warn=False)


def _values(config: Settings, recommender: str | None) -> tuple[dict[str, Any], Path]:
    """The values of a whole config, and the path that names it in messages."""
    if isinstance(config, str | os.PathLike):
        path = Path(config)
        return read_config(path), path
    if config is not None and not isinstance(config, Mapping):
        why = f"must be a mapping or the path of a file, not {type(config).__name__}"
        raise ConfigError(Path("config"), [Problem("", why)])
    own = dict(config or {})
    if "recommenders" not in own:
        own = {"recommenders": [{"name": recommender or NAME, **own}]}
    return own, Path.cwd() / "config"


def _place(values: Mapping[str, Any], recommender: str | None) -> int:
    """The place of the wanted recommender in the config; 0 if the config is not well formed."""
    listed = values.get("recommenders")
    if not isinstance(listed, list) or not listed:
        return 0
    names = [one.get("name") if isinstance(one, dict) else None for one in listed]
    if recommender is None:
        if len(names) > 1:
            raise FrameError(
                f"the config has {len(names)} recommenders; pass recommender= one of: {_of(names)}"
            )
        return 0
    if recommender in names:
        return names.index(recommender)
    meant = nearest(recommender, [str(name) for name in names])
    guess = f"did you mean {quoted(meant)}?" if meant else f"there are: {_of(names)}"
    raise FrameError(f"no recommender is called {quoted(recommender)}; {guess}")


def _of(names: list[Any]) -> str:
    return ", ".join(quoted(str(name)) for name in names)


def _with_frames(
    values: Mapping[str, Any],
    place: int,
    frames: Mapping[str, pa.Table],
    columns: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """The config whose recommender has these frames as its logs."""
    listed = values.get("recommenders")
    if not isinstance(listed, list) or not listed or not isinstance(listed[place], dict):
        return dict(values)  # the models say what is wrong
    own = dict(listed[place])
    if _is_mapping(own.get("logs")):
        logs = own["logs"] = dict(own.get("logs") or {})
        for name in frames:
            if _is_mapping(logs.get(name)):
                log = logs[name] = {**(logs.get(name) or {}), "path": frame_path(name)}
                if _is_mapping(log.get("columns")):
                    log["columns"] = {**(log.get("columns") or {}), **columns.get(name, {})}
    engine = values.get("engine")
    on_spark = isinstance(engine, dict) and engine.get("kind") == "spark"
    kept = {key: one for key, one in values.items() if key != "engine" or not on_spark}
    return {**kept, "recommenders": [*listed[:place], own, *listed[place + 1 :]]}


def _is_mapping(value: object) -> bool:
    """Whether a frame can take its place here: what is wrong stays, and the models say so."""
    return value is None or isinstance(value, dict)


def _columns(columns: Columns, frames: Mapping[str, pa.Table]) -> dict[str, dict[str, str]]:
    """Log -> our column -> the frame's column. Raises FrameError if no frame has a column."""
    if columns is not None and not isinstance(columns, Mapping):
        raise FrameError(f"columns: must be a mapping, not {type(columns).__name__}")
    by_log = {key: one for key, one in (columns or {}).items() if isinstance(one, Mapping)}
    found = {name: dict(by_log.get(name, {})) for name in frames}
    if unknown := [name for name in by_log if name not in frames]:
        known = (EXPOSURES, FEEDBACK, CATALOG, USERS, SAMPLES)
        why = "is not passed" if unknown[0] in known else f"is no log; the logs are {', '.join(LOGS[:-1])}"
        raise FrameError(f"columns: {quoted(unknown[0])} {why}")
    for ours, theirs in (columns or {}).items():
        if ours in by_log:
            continue
        having = [name for name, rows in frames.items() if _has(rows, str(theirs))]
        if not having:
            raise FrameError(
                f"columns: no frame has the column {quoted(str(theirs))} for {quoted(str(ours))}"
            )
        for name in having:
            found[name].setdefault(ours, theirs)
    return found


def _has(rows: pa.Table, name: str) -> bool:
    """Whether a frame has a column, or the column in which a path into records begins."""
    try:
        return name in rows.column_names or parse(name).fields[0] in rows.column_names
    except ValueError:
        return False


def _plain(error: ConfigError, config: Settings) -> ConfigError:
    """The error with places as the caller wrote them: the settings of one recommender have no list."""
    if isinstance(config, str | os.PathLike) or (config is not None and "recommenders" in config):
        return error
    problems = [Problem(one.place.removeprefix(_WHERE), one.message) for one in error.problems]
    return ConfigError(Path("config"), problems)
