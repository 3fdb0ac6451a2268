"""The output of `diagnose`: a model's splits, its gaps and their causes."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from monitor.core.json_value import json_value
from monitor.core.results import Result, ResultKind, Status
from monitor.core.text import plural, visible
from monitor.metrics.scores.auc import AUC
from monitor.metrics.scores.calibration import CALIBRATION, LOG_LOSS
from monitor.metrics.scores.user_auc import USER_AUC
from monitor.models.feature_specs import DISTANCES, FEATURE_DISTANCE, FEATURE_LABEL, FEATURE_SKEW
from monitor.models.specs import SAMPLE_ROWS
from monitor.models.split_results import unexplained
from monitor.report.causes import share_bound
from monitor.report.judged import Judged
from monitor.report.numbers import number, share, window
from monitor.report.result_json import result_as_json
from monitor.report.table import MARKS

_COLUMNS = (  # the heading, the metric and its `by`, the width
    ("split", "", "", 9),
    ("rows", SAMPLE_ROWS.name, "", 12),
    ("AUC", AUC.name, "", 28),
    ("user AUC", USER_AUC.name, "equal", 11),
    ("log loss", LOG_LOSS.name, "", 11),
    ("calibration", CALIBRATION.name, "", 11),
)
_NAME, _SKEW, _NUMBER = 24, 30, 11
_WIDEST = 110
_BAR = 20
_DETAIL = 2000  # characters: the finding and what to do
_SHARE = len("at least 100% of the gap ")


def print_diagnosis(judged: Sequence[Judged], console: Console) -> None:
    """Print a block for each model: its splits, then each gap with its causes, the largest share first."""
    width = max(72, min(console.width, _WIDEST))
    blocks: dict[tuple[str, str], list[Judged]] = {}
    for one in judged:
        blocks.setdefault((one.recommender, one.result.labels["model"]), []).append(one)
    for (name, model), found in blocks.items():
        shown = f"{name}  model {visible(model) or '(no name)'}  as of {window(found[0].window)}"
        _print(console, Text(shown, style="bold"))
        for line in _lines([one.result for one in found], width):
            _print(console, line)
        _print(console, Text())


def as_json(judged: Sequence[Judged]) -> str:
    """The results in the shape of `check --format json`, each with `threshold` and `evidence`."""
    content = [
        result_as_json(one.recommender, one.check, one.window, one.result)
        | {
            "threshold": one.result.threshold,
            "evidence": [json_value(row) for row in one.result.evidence],
        }
        for one in judged
    ]
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def _lines(results: Sequence[Result], width: int) -> Iterator[Text]:
    whole = [one for one in results if "dimension" not in one.labels]
    yield Text("  " + "".join(name.ljust(size) for name, _, _, size in _COLUMNS), style="dim")
    for split in dict.fromkeys(one.labels["split"] for one in whole if "split" in one.labels):
        own = [one for one in whole if one.labels.get("split") == split]
        yield Text("  " + "".join(_cell(own, split, *column) for column in _COLUMNS))
        for note in dict.fromkeys(one.detail for one in own if one.detail and one.value is not None):
            yield from _indented(visible(note), width)
    for gap in (one for one in whole if one.kind is ResultKind.GAP):
        yield from _gap(gap, width)
        causes = [
            one for one in whole if one.kind is ResultKind.CAUSE and one.labels["pair"] == gap.labels["pair"]
        ]
        for one in causes:
            yield from _cause(one, width)
        if gap.status is Status.VIOLATED and not causes:
            yield from _indented(unexplained(gap), width)
    yield from _features([one for one in whole if FEATURE_LABEL in one.labels and one.value is not None])


def _features(results: Sequence[Result]) -> Iterator[Text]:
    """A line for each feature: how often service differs from offline, and its distance from training."""
    names = list(dict.fromkeys(one.labels[FEATURE_LABEL] for one in results))
    if not names:
        return
    width = max(_NAME, *(cell_len(visible(name)) + 2 for name in names))
    known = {(one.labels[FEATURE_LABEL], one.metric, one.labels.get("by", "")): one for one in results}
    heading = "".join(f"{by:>{_NUMBER}}" for by in ("psi", "JS", "KS"))
    yield Text(f"  {'feature':<{width}}{'differs from offline':<{_SKEW}}{heading}", style="dim")
    for name in names:
        skew = known.get((name, FEATURE_SKEW.name, ""))
        differs = "" if skew is None else f"{share(skew.value or 0.0)}{_interval(skew)}"
        far = [known.get((name, FEATURE_DISTANCE.name, by)) for by in DISTANCES]
        numbers = ["" if one is None else number(one.value or 0.0) for one in far]
        cells = "".join(f"{one:>{_NUMBER}}" for one in numbers)
        shown = visible(name)
        yield Text(f"  {shown}{' ' * (width - cell_len(shown))}{differs:<{_SKEW}}{cells}")


def _cell(results: Sequence[Result], split: str, name: str, metric: str, by: str, size: int) -> str:
    if not metric:
        return split.ljust(size)
    found = [one for one in results if one.metric == metric and one.labels.get("by", "") == by]
    if not found:
        return "".ljust(size)
    one = found[0]
    text = one.status.value if one.value is None else number(one.value)
    return (text + (_interval(one) if name == "AUC" else "")).ljust(size)


def _gap(gap: Result, width: int) -> Iterator[Text]:
    mark, style = MARKS[gap.status]
    better, worse = gap.labels["pair"].split("_")
    value = "" if gap.value is None else f"{gap.value:.4f}{_interval(gap)}"
    bound = "" if gap.threshold is None else f"at most {gap.threshold:g} is allowed"
    numbers = ", ".join(filter(None, (value, bound)))
    yield Text.assemble(
        "  ", (f"{mark} {gap.status}", style), (f"  AUC {better} minus {worse}  ", "bold"), numbers
    )
    if gap.detail:
        yield from _indented(visible(gap.detail), width)


def _cause(cause: Result, width: int) -> Iterator[Text]:
    bar = "" if cause.value is None else "█" * max(1, round(cause.value * _BAR))
    part = "share unknown"
    if cause.value is not None:
        part = f"{share_bound(cause)} {cause.value:.0%} of the gap".strip()
    name = cause.labels["cause"].replace("_", " ")
    yield Text.assemble(f"    {part:<{_SHARE}}", (f"{bar:<{_BAR}} ", "red"), (visible(name), "bold"))
    yield from _indented(visible(cause.detail, _DETAIL), width)
    if cause.evidence:
        rows = plural(len(cause.evidence), "row")
        yield from _indented(f"{rows} of evidence: --format json prints them", width)


def _interval(result: Result) -> str:
    if result.lower is None or result.upper is None:
        return ""
    return f"  ({result.lower:.4f} to {result.upper:.4f})"


def _indented(text: str, width: int) -> Iterator[Text]:
    for line in textwrap.wrap(text, width - 8, break_on_hyphens=False):
        yield Text(" " * 8 + line, style="dim")


def _print(console: Console, line: Text) -> None:
    console.print(line, soft_wrap=True)
