"""What `check` prints for machines: JSON for programs, JUnit for a CI server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from monitor.metrics.model_specs import MODEL_LABEL
from monitor.report.causes import cause_name, causes_of, is_cause, share_text
from monitor.report.result_json import result_as_json
from monitor.report.rows import model_name
from monitor.results import Result, Status, Window

_NOT_TEXT = {code: "�" for code in (*range(0x20), 0x7F, 0xFFFE, 0xFFFF) if code not in (9, 10, 13)}


@dataclass(frozen=True, slots=True)
class Judged:
    """One result with its place."""

    recommender: str
    check: str
    window: Window
    result: Result


def as_json(judged: Sequence[Judged]) -> str:
    """A list of results; see the README for the fields."""
    content = [result_as_json(one.recommender, one.check, one.window, one.result) for one in judged]
    return json.dumps(content, indent=1, ensure_ascii=True, allow_nan=False)


def as_junit(judged: Sequence[Judged]) -> str:
    """A test suite a recommender, a test case a result: violated is a failure, what could not be judged an
    error, and a metric without a value skipped. The causes of a gap are told within its failure."""
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
            shown = f"{title(one.result)} {when}".translate(_NOT_TEXT)  # a slice's value is the log's
            case = ElementTree.SubElement(suite, "testcase", classname=f"{name}.{one.check}", name=shown)
            kind = _junit_kind(one.result)
            if kind is not None:
                counts[{"failure": "failures", "error": "errors"}.get(kind, kind)] += 1
                text = (one.result.detail or one.result.status).translate(_NOT_TEXT)
                node = ElementTree.SubElement(case, kind, message=text, type=str(one.result.status))
                if one.result.evidence:
                    node.text = json.dumps(list(one.result.evidence), indent=1, ensure_ascii=True)
                causes = causes_of(one.result, explained.get(one.window, ()))
                if causes:
                    node.text = "\n".join(_cause_text(cause) for cause in causes).translate(_NOT_TEXT)
        for key, count in counts.items():
            suite.set(key, str(count))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _cause_text(cause: Result) -> str:
    share = share_text(cause) or "share unknown"
    rows = json.dumps(list(cause.evidence), indent=1, ensure_ascii=True) if cause.evidence else ""
    return "\n".join(part for part in (f"{cause_name(cause)} ({share}): {cause.detail}", rows) if part)


def _junit_kind(result: Result) -> str | None:
    match result.status:
        case Status.OK:
            return None
        case Status.VIOLATED:
            return "failure"
        case Status.ERROR | Status.LATE:
            return "error"
        case _:
            judged = result.metric == "rule" or result.threshold is not None
            judged = judged and result.status is not Status.UNDEFINED  # a rule that does not apply to the log
            return "error" if judged else "skipped"


def title(result: Result) -> str:
    """A result's name as people read it.

    >>> title(Result(metric="coverage", labels={"by": "pv"}, status=Status.OK, definition="1"))
    'coverage by=pv'
    """
    if result.metric == "rule":
        return f"rule {result.labels['rule']} ({result.labels['kind']})"
    labels = dict(result.labels)
    if MODEL_LABEL in labels:
        labels[MODEL_LABEL] = model_name(labels[MODEL_LABEL])
    return " ".join([result.metric, *(f"{key}={value}" for key, value in sorted(labels.items()))])
