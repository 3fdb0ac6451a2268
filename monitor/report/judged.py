"""The output of `check` for machines: JSON for programs, JUnit for a CI server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from monitor.core.results import VERDICTS, Result, ResultKind, Status, Window, worst_status
from monitor.core.text import plural, visible
from monitor.metrics.family import MODEL_LABEL
from monitor.report.causes import cause_name, causes_of, is_cause, share_text
from monitor.report.result_json import result_as_json
from monitor.report.rows import model_name

_SURROGATES = range(0xD800, 0xE000)  # a file name may contain them, but they cannot be encoded
NOT_TEXT = {
    code: "�" for code in (*range(0x20), 0x7F, *_SURROGATES, 0xFFFE, 0xFFFF) if code not in (9, 10, 13)
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A result with its recommender, check and window."""

    recommender: str
    check: str
    window: Window
    result: Result


def as_json(judged: Sequence[Judged]) -> str:
    """A list of results; see the README for the fields."""
    content = [result_as_json(one.recommender, one.check, one.window, one.result) for one in judged]
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def as_junit(judged: Sequence[Judged]) -> str:
    """A test suite for each recommender, a test case for each result.

    A violation is a failure. A result that could not be judged is an error. A metric without a value is
    skipped. Message and text give the reason. The text also contains the evidence and the causes of a gap.
    """
    root = ElementTree.Element("testsuites", name="recsys-monitor")
    for name in dict.fromkeys(one.recommender for one in judged):
        own = [one for one in judged if one.recommender == name]
        mine = [one for one in own if not is_cause(one.result)]
        explained: dict[Window, list[Result]] = {}
        for one in own:
            if is_cause(one.result):
                explained.setdefault(one.window, []).append(one.result)
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(len(mine)))
        counts = {"failures": 0, "errors": 0, "skipped": 0}
        for one in mine:
            when = f"{one.window.start:%Y-%m-%dT%H:%M:%SZ}"
            shown = f"{title(one.result)} {when}".translate(NOT_TEXT)  # a slice's value is the log's
            case = ElementTree.SubElement(suite, "testcase", classname=f"{name}.{one.check}", name=shown)
            kind = _junit_kind(one.result)
            if kind is not None:
                counts[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1
                text = (one.result.detail or one.result.status).translate(NOT_TEXT)
                node = ElementTree.SubElement(case, kind, message=text, type=str(one.result.status))
                causes = causes_of(one.result, explained.get(one.window, ()))
                parts = [text, _rows(one.result), *map(_cause_text, causes)]
                # Some CI servers show only the message, others only the text.
                node.text = "\n".join(filter(None, parts)).translate(NOT_TEXT)
        for key, count in counts.items():
            suite.set(key, str(count))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _cause_text(cause: Result) -> str:
    share = share_text(cause) or "share unknown"
    return "\n".join(filter(None, (f"{cause_name(cause)} ({share}): {cause.detail}", _rows(cause))))


def _rows(result: Result) -> str:
    return json.dumps(list(result.evidence), indent=1, ensure_ascii=True) if result.evidence else ""


def _junit_kind(result: Result) -> str | None:
    match result.status:
        case Status.OK:
            return None
        case Status.VIOLATED:
            return "failure"
        case Status.ERROR | Status.LATE:
            return "error"
        case _:
            judged = result.kind is ResultKind.RULE or result.threshold is not None
            judged = judged and result.status is not Status.UNDEFINED  # a rule that does not apply to the log
            return "error" if judged else "skipped"


class SpanSummary:
    """Many windows summed up as they come: a year of them takes little more room than a day.

    >>> from datetime import UTC, datetime
    >>> summary = SpanSummary()
    >>> hour = Window(datetime(2026, 1, 5, 10, tzinfo=UTC), datetime(2026, 1, 5, 11, tzinfo=UTC))
    >>> summary.add(hour, Status.OK, [])
    >>> summary.add(hour, Status.VIOLATED, [])  # of another check
    >>> list(summary.lines())
    ['windows: 1 violated']
    """

    def __init__(self, noun: str = "window") -> None:
        self._noun = noun
        self._verdicts: dict[Window, set[Status]] = {}
        self._named: dict[Status, dict[str, set[Window]]] = {Status.VIOLATED: {}, Status.ERROR: {}}

    @property
    def windows(self) -> Collection[Window]:
        """Those that were added."""
        return self._verdicts.keys()

    def add(self, window: Window, verdict: Status, results: Iterable[Result]) -> None:
        """Add a check of a window: its verdict and its results."""
        self._verdicts.setdefault(window, set()).add(verdict)
        for result in results:
            if result.status in self._named and not is_cause(result):
                self._named[result.status].setdefault(title(result), set()).add(window)

    def lines(self) -> Iterator[str]:
        """The number of windows of each verdict, the worst of a window's checks; then the violated and failed
        results. Anomalies are counted by cause.
        """
        counts = Counter(map(worst_status, self._verdicts.values()))
        if not counts:
            return
        yield f"{self._noun}s: " + ", ".join(f"{counts[one]:,} {one}" for one in VERDICTS if counts[one])
        for status, windows in self._named.items():
            most_first = sorted(windows.items(), key=lambda named: -len(named[1]))
            for name, where in most_first:
                yield f"{status}: {visible(name)} in {plural(len(where), self._noun)}"


def title(result: Result) -> str:
    """The name of a result, for people.

    >>> title(Result(metric="coverage", labels={"by": "pv"}, status=Status.OK, definition="1"))
    'coverage by=pv'
    """
    if result.kind is ResultKind.RULE:
        return f"rule {result.labels['rule']} ({result.labels['kind']})"
    labels = dict(result.labels)
    if MODEL_LABEL in labels:
        labels[MODEL_LABEL] = model_name(labels[MODEL_LABEL])
    return " ".join([result.metric, *(f"{key}={value}" for key, value in sorted(labels.items()))])
