"""The output of `estimate`: the overlap of target and log, then the value by each estimator."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from monitor.core.results import Result
from monitor.core.text import visible
from monitor.off_policy.results import POLICY_OVERLAP, POLICY_VALUE
from monitor.report.judged import Judged
from monitor.report.numbers import number, window
from monitor.report.result_json import result_as_json

_NAME, _NUMBER, _WIDEST = 29, 12, 110


def print_estimates(judged: Sequence[Judged], console: Console) -> None:
    """Print one block: where from, the overlap, the values with their intervals, and each reason."""
    width = min(console.width, _WIDEST) if console.is_terminal else _WIDEST
    first = judged[0]
    labels = first.result.labels
    title = f"{first.recommender}  {window(first.window)}"
    console.print(Text(title, style="bold"), soft_wrap=True)
    what = f"target {visible(labels['target'])}, event {visible(labels['event'])}"
    console.print(Text(what, style="bold"), soft_wrap=True)
    for metric, heading in ((POLICY_OVERLAP, "overlap"), (POLICY_VALUE, "value")):
        console.print(Text(f"\n{heading:<{_NAME}}{'value':>{_NUMBER}}  interval of 95 %", style="dim"))
        for one in judged:
            if one.result.metric == metric:
                for line in _lines(one.result, width):
                    console.print(Text(line), soft_wrap=True)


def as_json(judged: Sequence[Judged]) -> str:
    """The results in the shape of `check --format json`."""
    content = [result_as_json(one.recommender, one.check, one.window, one.result) for one in judged]
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def _lines(result: Result, width: int) -> Iterator[str]:
    value = str(result.status) if result.value is None else number(result.value)
    interval = ""
    if result.lower is not None and result.upper is not None:
        interval = f"  {number(result.lower)} to {number(result.upper)}"
    yield f"{result.labels['by']:<{_NAME}}{value:>{_NUMBER}}{interval}"
    if result.detail:
        yield from textwrap.wrap(
            visible(result.detail), width, initial_indent="    ", subsequent_indent="    "
        )
