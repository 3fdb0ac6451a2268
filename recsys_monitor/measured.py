"""`metric`: one metric of the catalogue on frames as a whole; and the list of metrics."""

from __future__ import annotations

import difflib
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd

from monitor.core.columns import CATALOG, EXPOSURES, FEEDBACK, USERS
from monitor.core.errors import ExpectedError
from monitor.core.results import Window, worst_status
from monitor.core.text import NAME_LENGTH, quoted
from monitor.report.judged import Judged
from recsys_monitor.frames import Frame
from recsys_monitor.judged import known
from recsys_monitor.opened import Columns, Opened, Settings, open_frames
from recsys_monitor.results import Results, typed

if TYPE_CHECKING:
    from monitor.cli.one_off import OneOff
    from monitor.config.checks.check import Checked
    from monitor.history.record import CheckRun
    from monitor.logs.windows import Part
    from monitor.metrics.family import Family, MetricSpec

_SHOWN = 30


class MetricError(ExpectedError, ValueError):
    """A metric that there is not, or that these frames cannot give."""


def metric(
    name: str,
    exposures: Frame,
    feedback: Frame | None = None,
    *,
    catalog: Frame | None = None,
    users: Frame | None = None,
    config: Settings = None,
    columns: Columns = None,
    recommender: str | None = None,
    **labels: object,
) -> Results:
    """Measure one metric of the catalogue, once, over all rows of the frames.

    Args:
        name: as in docs/metrics; `metrics()` lists all.
        exposures, feedback, catalog, users, config, columns, recommender: as for `check`. From the config
            only the logs, the metrics, the slices and the objectives matter.
        labels: only the results that have these labels, such as `by="item"`, `k=10` or `event="click"`.

    Returns:
        The results. `.value` is the number if there is exactly one.

    Raises:
        MetricError: there is no such metric, with the names that are near; or a column or a frame is
            missing, with its name.
        FrameError, ConfigError: as for `check`.

    >>> import pandas as pd
    >>> exposures = pd.DataFrame({
    ...     "request_id": ["r1", "r1", "r2", "r2"], "user_id": ["anna", "anna", "ben", "ben"],
    ...     "ts": pd.to_datetime(["2026-03-01 12:00"] * 4), "item_id": ["a", "b", "a", "c"],
    ... })
    >>> catalog = pd.DataFrame({"item_id": ["a", "b", "c", "d"]})
    >>> metric("coverage", exposures, catalog=catalog, by="item").value
    0.75
    >>> metric("coverage", exposures, by="pv").frame()[["value", "samples"]].values.tolist()
    [[1.0, 2]]
    >>> metric("coverge", exposures)
    Traceback (most recent call last):
    recsys_monitor.measured.MetricError: no metric is called 'coverge'; did you mean coverage?
    """
    families = _families(name)
    given = {EXPOSURES: exposures, FEEDBACK: feedback, CATALOG: catalog, USERS: users}
    opened = open_frames(given, config, columns, recommender)
    from monitor.cli.judge import judged_of
    from monitor.cli.one_off import one_off

    with one_off(opened.config, _only(opened, name), "", frames=opened.frames) as judging:
        now = datetime.now(UTC)
        judging.look(now)
        span = _span(judging, now)
        found: list[Judged] = []
        for part in dict.fromkeys(map(_part, families)):
            for run in _runs(judging, span, part) if part in judging.evaluator.parts.names else ():
                found += [
                    replace(one, result=known(one.result, part, opened.empty))
                    for one in judged_of(opened.checked.settings.name, span, run)
                    if one.result.metric == name
                ]
        wanted = {key: str(value) for key, value in labels.items()}
        chosen = [one for one in found if wanted.items() <= one.result.labels.items()]
        if not chosen:
            why = filter(None, (_why_not(judging, family, name, span) for family in families))
            there = ", ".join(dict.fromkeys(_labels(one.result.labels) for one in found))
            has = f"{name} has no result with {_labels(wanted)}; it has: {there}"
            nothing = f"{name} cannot be measured: these frames and settings give no value"
            raise MetricError("; ".join(filter(None, [there and has, *why])) or nothing)
    return Results(chosen, worst_status(one.result.status for one in chosen), everything=True)


def metrics() -> pd.DataFrame:
    """The metrics that `metric` knows: name, what each answers, its formula, what it needs, its labels.

    >>> metrics().set_index("name").loc["ndcg", "needs"]
    'feedback'
    """
    from monitor.metrics.catalogue import FAMILIES

    rows: dict[str, dict[str, Any]] = {}
    for family in FAMILIES:
        for spec, _ in family.outputs:
            rows.setdefault(
                spec.name,
                {
                    "name": spec.name, "answers": spec.answers, "formula": spec.formula,
                    "needs": ", ".join(family.needs), "labels": ", ".join(_names_of_labels(spec)),
                },
            )  # fmt: skip
    return typed(list(rows.values()), dict.fromkeys(("name", "answers", "formula", "needs", "labels"), "str"))


def _names_of_labels(spec: MetricSpec) -> list[str]:
    return [*(["by"] if spec.by else []), *spec.labels]


def _families(name: str) -> list[Family]:
    """The families that give the metric. Raises MetricError if there is none."""
    from monitor.catalogue import ALL_SPECS
    from monitor.metrics.catalogue import FAMILIES

    giving = [family for family in FAMILIES if any(spec.name == name for spec, _ in family.outputs)]
    if giving:
        return giving
    if name in ALL_SPECS:
        raise MetricError(
            f"{name} is not measured on one frame: check(config=...) gives it if it is about models or "
            "experiments, and open_history(...) if it is about the past"
        )
    known = [spec.name for family in FAMILIES for spec, _ in family.outputs]
    near = difflib.get_close_matches(name, dict.fromkeys(known), n=3, cutoff=0.65)
    guess = f"did you mean {' or '.join(near)}?" if near else "recsys_monitor.metrics() lists all"
    raise MetricError(f"no metric is called {quoted(name)}; {guess}")


def _only(opened: Opened, name: str) -> Checked:
    """The recommender with this metric alone."""
    from monitor.metrics.catalogue import SPECS

    settings = opened.checked.settings
    disable = tuple(one for one in SPECS if one != name)
    alone = {
        "logs": settings.logs.model_copy(update={"samples": None}),
        "metrics": settings.metrics.model_copy(update={"disable": disable}),
        "objectives": tuple(one for one in settings.objectives if one.metric == name),
        "experiments": (), "health": None, "bands": None, "forecast": None, "platform": None,
    }  # fmt: skip
    return replace(opened.checked, settings=settings.model_copy(update=alone), rules=())


def _span(judging: OneOff, now: datetime) -> Window:
    """The whole windows from the first row to the last; the window of now if there is no row."""
    source = judging.evaluator.source
    held = source.main.windows()
    if not held:
        return Window.of(now, source.time.window)
    return Window(min(held).start, max(held).end)


def _part(family: Family) -> Part:
    return "feedback" if FEEDBACK in family.needs else "exposures"


def _runs(judging: OneOff, span: Window, part: Part) -> list[CheckRun]:
    from monitor.logs.windows import (
        Due,
    )  # as the other imports inside: only a call needs them, and it takes long

    evaluator = judging.evaluator
    due = Due(span, "", 0, part=part)
    return evaluator.evaluate(judging.runtime, due).runs


def _why_not(judging: OneOff, family: Family, name: str, span: Window) -> str:
    """Why the family is not measured: which frame or column is missing, and how to pass it; or nothing."""
    from monitor.metrics.measure import resolved
    from monitor.window.tables import prepare

    evaluator = judging.evaluator
    source, settings = evaluator.source, evaluator.settings
    for need in family.needs:
        log, _, column = need.partition(".")
        if log not in source.logs:
            return f"{name} needs the {log}; pass it as {log}="
        if column and column not in source.schema(log):
            there = ", ".join(quoted(one, NAME_LENGTH) for one in list(source.schema(log))[:_SHOWN])
            return (
                f"{name} needs the column {column} of the {log}; the frame has {there}; if the column has "
                f"another name there, pass columns={{'{column}': NAME}}"
            )
    part = _part(family)
    around = evaluator.parts.span(span, part) if part == FEEDBACK else None
    tables = prepare(judging.runtime.engine, source, span, settings, evaluator.kept, around)
    reason = family.reason_not(tables.shared, resolved(settings.metrics, tables.shared))
    return f"{name} {reason}" if reason else ""


def _labels(labels: Any) -> str:
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"
