"""The output of `replay`: how the requests ended, the metrics of the answers, and where the log is."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from monitor.core.columns import INTERRUPTED, OK
from monitor.core.redaction import redact
from monitor.core.results import Result
from monitor.core.text import plural, visible
from monitor.replay.exposure_log import log_file
from monitor.replay.pace import least_seconds
from monitor.replay.results import Measured
from monitor.replay.run import RunInfo
from monitor.replay.send import REFUSED, Sent
from monitor.replay.templates import Rendered
from monitor.report.numbers import count, number, seconds
from monitor.report.numbers import share as percent
from monitor.report.result_json import result_as_json
from monitor.report.rows import shower_of
from monitor.settings.replay import TargetSettings

CHECK: Final = "replay"
_NAME, _NUMBER, _INTERVAL, _WIDTH = 22, 11, 26, 78
_BODY: Final = 2_000  # characters of a body that a dry run prints


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """A run after one call of the command.

    Attributes:
        info: the plan.
        folder: of the run.
        sent: what this call has sent.
        found: what the whole log says; None if nothing was ever sent.
        time_travel: whether the endpoint could know the future of the requests.
    """

    info: RunInfo
    folder: Path
    sent: Sent
    found: Measured | None
    time_travel: str

    @property
    def begun(self) -> int:
        """How many requests have a row in the log."""
        return 0 if self.found is None else sum(self.found.statuses.values())

    @property
    def refused(self) -> int:
        """How many of them never arrived, so that they are not sent."""
        return 0 if self.found is None else self.found.statuses.get(REFUSED, 0)

    @property
    def arrived(self) -> int:
        return self.begun - self.refused

    @property
    def state(self) -> str:
        """`done`, `aborted`, `stopped` by a signal, or `incomplete` with requests that were refused."""
        if self.sent.aborted:
            return "aborted"
        if self.arrived == self.info.requests:
            return "done"
        return "stopped" if self.sent.stopped or self.begun < self.info.requests else "incomplete"


@dataclass(frozen=True, slots=True)
class DryRun:
    """The first requests as they would be sent, and how many there are."""

    target: TargetSettings
    rendered: Sequence[Rendered]
    requests: int
    unwritten: int
    reasons: Sequence[str]
    time_travel: str


def as_content(report: ReplayReport) -> dict[str, Any]:
    """The run as plain JSON values: for `--format json` and the summary in its folder."""
    info, sent, found = report.info, report.sent, report.found
    return {
        "run": info.run,
        "recommender": info.asked.recommender,
        "target": info.asked.target,
        "version": info.version,
        "state": report.state,
        "reason": sent.aborted,
        "log": None if found is None else str(log_file(report.folder)),
        "plan": asdict(info),
        "sent": report.arrived,
        "not_sent": info.requests - report.arrived,
        "statuses": {} if found is None else dict(found.statuses),
        "this_call": {
            "sent": sent.arrived, "retries": sent.retries, "seconds": round(sent.seconds, 3),
            "stopped": sent.stopped,
        },
        "time_travel": {"now_passed": info.now_passed, "note": report.time_travel},
        "results": []
        if found is None
        else [result_as_json(info.asked.recommender, CHECK, found.span, one) for one in found.results],
    }  # fmt: skip


def as_json(report: ReplayReport) -> str:
    return json.dumps(as_content(report), indent=1, ensure_ascii=True, allow_nan=False)


def print_report(report: ReplayReport, console: Console) -> None:
    """Print one block, readable at 80 columns."""
    info = report.info
    version = f", version {visible(info.version)}" if info.version else ""
    title = f"{info.run}  {info.asked.recommender} to {info.asked.target}{version}"
    console.print(Text(title, style="bold"), soft_wrap=True)
    for line in _lines(report):
        console.print(Text(line), soft_wrap=True)


def _lines(report: ReplayReport) -> Iterator[str]:
    info, sent, found = report.info, report.sent, report.found
    yield from _wrapped(f"{report.state}: {_sent(report)}")
    if sent.aborted:
        yield from _wrapped(f"reason: {sent.aborted}. The same command with --run {info.run} goes on.")
    elif report.state != "done":
        yield from _wrapped(f"The same command with --run {info.run} goes on.")
    if info.unwritten:
        yield from _wrapped(
            f"Not in the plan, since the templates cannot write them: {plural(info.unwritten, 'request')}; "
            + "; ".join(map(visible, info.reasons))
        )
    if found is None:
        return
    yield ""
    yield f"{'status':<{_NAME}}{'requests':>{_NUMBER}}{'share':>{_NUMBER}}"
    for status, requests in sorted(found.statuses.items(), key=lambda one: (one[0] != OK, -one[1])):
        part = percent(requests / report.begun)
        yield f"{visible(status):<{_NAME}}{count(requests):>{_NUMBER}}{part:>{_NUMBER}}"
    if report.refused:
        yield from _wrapped("refused: no connection was made, so these requests never arrived.")
    if found.statuses.get(INTERRUPTED):
        yield from _wrapped(
            "interrupted: begun, and the process ended before the answer. They are never sent again by "
            "themselves, since they may have arrived; see --send-interrupted."
        )
    yield ""
    yield f"{'metric':<{_NAME}}{'value':>{_NUMBER}}{'interval of 95 %':>{_INTERVAL}}{'samples':>{_NUMBER}}"
    for result in found.results:
        yield from _result(result)
    if report.time_travel:
        yield ""
        yield from _wrapped(f"time travel: {report.time_travel}")
    yield ""
    yield f"log  {log_file(report.folder)}"


def _sent(report: ReplayReport) -> str:
    info, sent = report.info, report.sent
    of = f" of {plural(info.users, 'user')}" if info.users else ""
    of += f" ({count(info.without_user)} without a user)" if info.without_user else ""
    whole = f"{count(report.arrived)} of {plural(info.requests, 'request')}{of} sent"
    if report.refused:
        whole += f", {count(report.refused)} refused"
    if not sent.arrived:
        return f"{whole}, none now" if report.refused else f"{whole}, none of them now"
    speed = f", {number(round(sent.arrived / sent.seconds, 1))} a second" if sent.seconds > 0 else ""
    again = f", {count(sent.retries)} {'retry' if sent.retries == 1 else 'retries'}" if sent.retries else ""
    return f"{whole}, {count(sent.arrived)} now in {seconds(sent.seconds)}{speed}{again}"


def _result(result: Result) -> Iterator[str]:
    show = seconds if result.metric == "latency" else shower_of(result)
    by = result.labels.get("by", "")
    name = f"{result.metric} {by}".strip()
    value = str(result.status) if result.value is None else show(result.value)
    interval = ""
    if result.lower is not None and result.upper is not None:
        interval = f"{show(result.lower)} to {show(result.upper)}"
    samples = "" if result.samples is None else count(result.samples)
    yield f"{name:<{_NAME}}{value:>{_NUMBER}}{interval:>{_INTERVAL}}{samples:>{_NUMBER}}"
    if result.detail:
        yield from _wrapped(visible(result.detail, 500), "    ")


def print_dry_run(dry: DryRun, console: Console) -> None:
    """Print the first requests, with secrets masked."""
    secret = dry.target.secret_headers.get_secret_value()
    for one in dry.rendered:
        lines = [f"{dry.target.method} {one.url}"]
        lines += [f"{name}: {value}" for name, value in one.headers.items()]
        lines += [f"{name}: ***" for name in secret]
        if one.body is not None:
            lines += ["", one.body.decode("ascii", "backslashreplace")]
        for line in lines:
            console.print(Text(visible(redact(line), _BODY)), soft_wrap=True)
        console.print()
    took = least_seconds(dry.requests, dry.target.rate, dry.target.ramp_up.total_seconds())
    last = [
        f"{plural(dry.requests, 'request')} would be sent, at up to {number(dry.target.rate)} a second, in "
        f"at least {seconds(took)}. Nothing was sent or written."
    ]
    if dry.unwritten:
        last.append(
            f"{count(dry.unwritten)} more cannot be written by the templates: "
            + "; ".join(map(visible, dry.reasons))
        )
    if dry.time_travel:
        last.append(f"time travel: {dry.time_travel}")
    for text in last:
        for line in _wrapped(text):
            console.print(Text(line), soft_wrap=True)


def dry_run_as_json(dry: DryRun) -> str:
    """The first requests as JSON, with secrets masked."""
    masked = dict.fromkeys(dry.target.secret_headers.get_secret_value(), "***")
    content = {
        "requests": dry.requests,
        "unwritten": dry.unwritten,
        "reasons": list(dry.reasons),
        "time_travel": dry.time_travel,
        "first": [
            {
                "method": dry.target.method,
                "url": one.url,
                "headers": {**one.headers, **masked},
                "body": None if one.body is None else json.loads(one.body),
            }
            for one in dry.rendered
        ],
    }
    return redact(json.dumps(content, indent=1, ensure_ascii=True))


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip
