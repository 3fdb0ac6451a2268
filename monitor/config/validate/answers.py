"""The findings of `validate` on the answers of a survey: how many count, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import ibis.expr.types as ir

from monitor.config.validate.findings import ConfigFinding, Reporter, percent
from monitor.core import columns as c
from monitor.core.results import Window
from monitor.core.text import NAME_LENGTH, visible
from monitor.settings.recommender import RecommenderSettings
from monitor.survey import answers as a

_EVER: Final = Window(datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
_MANY: Final = 0.05
_SHOWN: Final = 4


def of_answers(
    say: Reporter, settings: RecommenderSettings, tables: Mapping[str, ir.Table], *, has_all: bool
) -> Iterator[ConfigFinding]:
    """Whether the answers in the files looked at can be read and joined with the exposures.

    Args:
        say: makes the findings.
        settings: of the recommender.
        tables: the keys of the logs.
        has_all: whether all rows were looked at; else an answer may belong to a list in another file.
    """
    rows = a.numbered(tables[c.SURVEY], {})
    lists = a.lists_of(tables[c.EXPOSURES])
    questions = a.questions_of(rows, _EVER, settings.survey)
    judged = a.judged(
        rows, lists, _EVER, questions, settings.survey.attribution,
        named=bool(settings.survey.questions), invited=None,
    )  # fmt: skip
    counts = a.faults(judged)
    every = sum(counts.values())
    if not every:
        return
    lacking = [name for name in questions if not _has(rows, name)]
    if lacking:
        shown = ", ".join(visible(name, NAME_LENGTH) for name in lacking[:_SHOWN])
        yield say.warning(
            "answers", f"the files looked at have no answer to the question {shown}", "survey.questions"
        )
    good = counts.pop("", 0)
    reasons = sorted(counts.items(), key=lambda one: -one[1])[:_SHOWN]
    why = ", ".join(f"{count:,} {name}" for name, count in reasons)
    count = "answer counts" if every == 1 else "answers count"
    text = f"{percent(good, every)} of {every:,} {count}" + (f"; not: {why}" if why else "")
    if good >= (1 - _MANY) * every:
        yield say.ok("answers", text)
    elif good == 0 and has_all:
        yield say.problem("answers", text, "logs.survey")
    else:
        yield say.warning("answers", text, "logs.survey")


def _has(rows: ir.Table, question: str) -> bool:
    return bool(rows.filter(rows[c.QUESTION] == question).count().to_pyarrow().as_py())
