"""`check`: the windows of frames, judged as `recsys-monitor check` judges files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Final

from monitor.core.columns import EXPOSURES, FEEDBACK, SAMPLES
from monitor.core.results import Result, Status, worst_status
from monitor.report.judged import Judged
from recsys_monitor.frames import Frame
from recsys_monitor.opened import Columns, Settings, Time, open_frames, span_of
from recsys_monitor.results import Results


def check(
    exposures: Frame | None = None,
    feedback: Frame | None = None,
    *,
    catalog: Frame | None = None,
    users: Frame | None = None,
    samples: Frame | None = None,
    config: Settings = None,
    columns: Columns = None,
    recommender: str | None = None,
    start: Time = None,
    end: Time = None,
) -> Results:
    """Judge every window of frames: rules, metrics, objectives and slices, with the values of the command.

    Args:
        exposures, feedback, catalog, users, samples: the logs, as pandas, Polars or Arrow frames. Times with
            a zone are converted to UTC; times without one are UTC, unless the config names a `timezone`.
        config: the settings of a recommender as in a config file (`window`, `rules`, `metrics`, ...), or the
            path of a config file. Frames take the place of its logs, with its `columns`; a log that is not
            passed is read from its files. The engine is always DuckDB.
        columns: the monitor's name -> the frame's name, for every frame that has it; or one such mapping for
            each log: `{"exposures": {"item_id": "sku"}}`.
        recommender: which recommender of the config; needed if it has several.
        start, end: the span to judge; by default from the first to the last row of the exposures. Without
            `end`, windows that still wait for rows are left out if another one is complete.

    Returns:
        The results. A frame without rows gives `no_data`, never `ok`. So does a config that judges nothing:
        no rule, objective or other bound.

    Raises:
        FrameError: a frame cannot be read, or lacks a column.
        ConfigError: the config has mistakes; the message lists all.
        ValueError: `start` or `end` is no time, or the span ends before it begins.

    >>> import pandas as pd
    >>> exposures = pd.DataFrame({
    ...     "request_id": ["r1", "r1", "r2"], "user_id": ["anna", "anna", "ben"],
    ...     "ts": pd.to_datetime(["2026-03-01 12:00"] * 3), "sku": ["a", "b", None],
    ... })
    >>> objective = {"metric": "failure", "labels": {"by": "pv"}, "max": 0.2}
    >>> results = check(exposures, columns={"item_id": "sku"}, config={"objectives": [objective]})
    >>> results.status.value
    'ok'
    >>> results.frame().query("series == 'failure by=pv'")[["value", "samples"]].values.tolist()
    [[0.5, 2]]
    """
    given = {
        "exposures": exposures, "feedback": feedback, "catalog": catalog, "users": users, "samples": samples
    }  # fmt: skip
    first, last = span_of(start, end)
    opened = open_frames(given, config, columns, recommender)
    from monitor.cli.judge import evaluate_span, judged_of
    from monitor.window.verdicts import window_status

    notes: list[str] = []
    now = datetime.now(UTC)
    evaluations, is_whole = evaluate_span(
        opened.config,
        opened.checked,
        now,
        first,
        last,
        frames=opened.frames,
        tell=notes.append,
    )
    name = opened.checked.settings.name
    judged: list[Judged] = []
    statuses = set() if is_whole and not opened.empty else {Status.NO_DATA}
    notes += [no_row(one) for one in sorted(opened.empty - {EXPOSURES, SAMPLES})]
    for evaluation in evaluations:
        part = evaluation.due.part
        for run in evaluation.runs:
            found = judged_of(name, evaluation.due.window, run)
            judged += [replace(one, result=known(one.result, part, opened.empty)) for one in found]
            blind = opened.empty & READS[part]
            statuses.add(Status.NO_DATA if blind else run.status or window_status(run.results))
    return Results(judged, worst_status(statuses), notes)


READS: Final = {
    EXPOSURES: frozenset({EXPOSURES}),
    FEEDBACK: frozenset({EXPOSURES, FEEDBACK}),
    SAMPLES: frozenset({SAMPLES}),
}
"""The logs without which a part of a window cannot be judged."""


def known(result: Result, part: str, empty: Collection[str]) -> Result:
    """The result as it is, or as `no_data` if a frame that it is made from has no row."""
    if not empty:
        return result
    needed = READS[part] | _needs().get((result.metric, result.labels.get("by", "")), frozenset())
    blind = sorted(needed.intersection(empty))
    if not blind:
        return result
    return replace(result, status=Status.NO_DATA, value=None, lower=None, upper=None, detail=no_row(blind[0]))


def no_row(log: str) -> str:
    """The sentence on a frame without rows."""
    return f"the frame of the {log} has no row"


@cache
def _needs() -> dict[tuple[str, str], frozenset[str]]:
    """The logs that each metric is made from, by its name and its label `by`."""
    from monitor.metrics.catalogue import FAMILIES

    return {
        (spec.name, one): frozenset(need.partition(".")[0] for need in family.needs)
        for family in FAMILIES
        for spec, by in family.outputs
        for one in by or ("",)
    }
