"""The output of `check` for people: a few lines for each window, readable at 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from monitor.core.results import VERDICTS, Result, ResultKind, Status, Window
from monitor.core.text import plural, visible
from monitor.health.specs import HEALTH_SCORE
from monitor.report.causes import cause_name, causes_of, is_cause, share_text
from monitor.report.judged import Judged, title
from monitor.report.numbers import number, window

MARKS = {
    Status.OK: ("✓", "green"),
    Status.VIOLATED: ("✗", "bold red"),
    Status.NO_DATA: ("∅", "yellow"),
    Status.LATE: ("…", "yellow"),
    Status.ERROR: ("!", "bold magenta"),
    Status.UNDEFINED: ("–", "dim"),
}
_NAME_AT = 12
_NUMBERS = (("value", 11), ("interval", 16), ("bound", 10), ("samples", 9))
_WIDEST = 160
_CAUSE_LENGTH = 2000  # characters: the finding and what to do


def print_table(
    judged: Sequence[Judged], console: Console, *, everything: bool = False, how: str = "--all shows them"
) -> None:
    """Print a block for each window, then one line with the number of each verdict.

    Without `everything` a block shows the judged, violated and failed results, and counts the others. The
    width is that of the terminal. If there is none, it is that of the longest name. `how` says how the others
    are shown.
    """
    width = max(72, min(console.width, _WIDEST))
    if not console.is_terminal:
        width = max(width, _needed([one.result for one in judged if everything or worth_a_line(one.result)]))
    for (name, span), results in by_window(judged):
        _print(console, Text(f"{name}  {window(span)}", style="bold"))
        _print(console, Text(_heading(width), style="dim"))
        alone = [one for one in results if not is_cause(one)]
        shown = [one for one in alone if everything or worth_a_line(one)]
        hidden = [one for one in alone if not (everything or worth_a_line(one))]
        for one in shown:
            for line in _lines(one, width):
                _print(console, line)
            for cause in causes_of(one, results):
                for line in _cause_lines(cause, width):
                    _print(console, line)
        _print(console, Text(_hidden(hidden, how), style="dim"))
    _print(console, Text(summary(judged), style="bold"))


def summary(judged: Sequence[Judged]) -> str:
    """The number of windows, of verdicts on their results, and of each verdict."""
    windows = plural(len({(one.recommender, one.window) for one in judged}), "window")
    count, counts = verdict_counts(one.result for one in judged)
    return f"{windows}, {plural(count, 'verdict')}: {counts}" if count else f"{windows}: nothing was judged"


def verdict_counts(results: Iterable[Result]) -> tuple[int, str]:
    """How many results have a verdict, and how many have each; errors count in any case."""
    counts = Counter(one.status for one in results if _is_judged(one) or one.status is Status.ERROR)
    text = ", ".join(f"{counts[status]:,} {status}" for status in VERDICTS if counts[status])
    return sum(counts[status] for status in VERDICTS), text


def by_window(judged: Iterable[Judged]) -> Iterator[tuple[tuple[str, Window], list[Result]]]:
    blocks: dict[tuple[str, Window], list[Result]] = {}
    for one in judged:
        blocks.setdefault((one.recommender, one.window), []).append(one.result)
    yield from blocks.items()


def _heading(width: int) -> str:
    numbers = "".join(name.rjust(size) for name, size in _NUMBERS)
    return " " * _NAME_AT + " " * (width - _NAME_AT - len(numbers)) + numbers


def _needed(results: Iterable[Result]) -> int:
    """The width at which no name is cut."""
    needed = (cell_len(visible(name_text(one))) + len(_numbers(one)) for one in results if not is_cause(one))
    return _NAME_AT + max(needed, default=0)


def _numbers(result: Result) -> str:
    numbers = (
        "" if result.value is None else number(result.value),
        "" if result.lower is None or result.upper is None else interval_text(result.lower, result.upper),
        "" if result.threshold is None else bound_text(result),
        "" if result.samples is None else f"{result.samples:,}",
    )
    return "".join(f" {text}".rjust(size) for text, (_, size) in zip(numbers, _NUMBERS, strict=True))


def _lines(result: Result, width: int) -> Iterator[Text]:
    mark, style = MARKS[result.status]
    right = _numbers(result)
    room = width - _NAME_AT - len(right)
    name = visible(name_text(result))
    fitted = name if cell_len(name) <= room else set_cell_size(name, room)
    fitted += " " * (room - cell_len(fitted))
    yield Text.assemble((f"{mark} {result.status}".ljust(_NAME_AT), style), fitted, right)
    if cell_len(name) > room:
        yield from _indented(name, width)
    if result.detail and result.status is not Status.OK:
        yield from _indented(visible(result.detail), width)


def _cause_lines(cause: Result, width: int) -> Iterator[Text]:
    """A cause of the gap above. It has no verdict, so it has no mark."""
    share = share_text(cause)
    part = f"{share} of the gap" if share else "its share of the gap is unknown"
    yield Text(f"{' ' * _NAME_AT}{cause_name(cause)}: {part}")
    yield from _indented(visible(cause.detail, _CAUSE_LENGTH), width)


def name_text(result: Result) -> str:
    if result.kind is ResultKind.RULE:
        return f"{result.labels['rule']} ({result.labels['kind']})"
    return title(result)


def _indented(text: str, width: int) -> Iterator[Text]:
    for line in textwrap.wrap(text, width - _NAME_AT - 2, break_on_hyphens=False):
        yield Text(" " * (_NAME_AT + 2) + line, style="dim")


def interval_text(lower: float, upper: float) -> str:
    return f"{_short(lower)} - {_short(upper)}"


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else number(value)


def bound_text(result: Result) -> str:
    assert result.threshold is not None
    below = result.kind is not ResultKind.RULE and result.bound == "min"
    return f"{'>=' if below else '<='} {number(result.threshold)}"


def _hidden(results: Sequence[Result], how: str) -> str:
    if not results:
        return ""
    without = sum(one.value is None for one in results)
    also = f", {without:,} without a value" if without else ""
    return f"{' ' * _NAME_AT}{len(results):,} more measured but not judged{also}; {how}\n"


def worth_a_line(result: Result) -> bool:
    wanted = _is_judged(result) or result.metric == HEALTH_SCORE.name
    return wanted or result.status in (Status.VIOLATED, Status.ERROR)


def _is_judged(result: Result) -> bool:
    if "dimension" in result.labels and result.threshold is None:
        return False
    if result.kind is ResultKind.LOG:  # shown only if something is wrong
        return result.status is not Status.OK
    return result.kind is ResultKind.RULE or result.threshold is not None


def _print(console: Console, line: Text) -> None:
    console.print(line, soft_wrap=True)
