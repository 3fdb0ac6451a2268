"""The work of `check` and `backfill`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from monitor.cli.export import check_name
from monitor.cli.interrupt import end_if_asked
from monitor.cli.one_off import OneOff, one_off
from monitor.cli.span import judge_span
from monitor.cli.terminal import NOT_JUDGED, OK, VIOLATED, note, progress, say
from monitor.config.checks.check import Checked
from monitor.config.load import load_checked
from monitor.config.problems import ConfigError
from monitor.core.columns import INDISPENSABLE, SAMPLES
from monitor.core.json_value import iso
from monitor.core.results import ResultKind, Status, Window
from monitor.core.text import plural, quoted
from monitor.history.errors import StoreError
from monitor.history.record import CheckRun
from monitor.history.store import Store
from monitor.history.watched import WATCHING, watched_since
from monitor.judging.evaluate import Evaluation
from monitor.logs.files import STILL_WRITTEN, WHEN_READ
from monitor.logs.frames import FrameLog
from monitor.logs.index import FileEntry
from monitor.logs.listing import no_file
from monitor.logs.log import Log
from monitor.logs.windows import ALWAYS
from monitor.report.judged import Judged, SpanSummary
from monitor.rollups.check import RollupCheck
from monitor.service.rollup_days import RollupDays
from monitor.service.salt import SALT_FILE, salt_of
from monitor.service.state_folder import keep_private
from monitor.service.state_lock import StateLock
from monitor.settings.config import Config
from monitor.settings.maintenance import covers
from monitor.settings.recommender import ROLLUP, RecommenderSettings
from monitor.window.verdicts import is_judged, window_status

Tell = Callable[[str], None]
MANY_WINDOWS = 1000


def load(path: Path, only: str | None = None) -> tuple[Config, list[Checked]]:
    """The config and its recommenders with their rules. Raises ConfigError if there is any problem."""
    config, checked = load_checked(path)
    problems = [problem for one in checked for problem in one.problems]
    if problems:
        raise ConfigError(path, problems)
    if only is not None:
        check_name(only, config)
        checked = [one for one in checked if one.settings.name == only]
    return config, checked


def judge(
    path: Path, first: datetime | None, last: datetime | None, only: str | None
) -> tuple[list[Judged], int]:
    """The results of the windows in the span, and the exit code."""
    config, checked = load(path, only)
    judged: list[Judged] = []
    statuses: set[Status] = set()
    now = datetime.now(UTC)
    for one in checked:
        evaluations, is_whole = evaluate_span(config, one, now, first, last)
        if not is_whole:
            statuses.add(Status.NO_DATA)
        for evaluation in evaluations:
            for run in evaluation.runs:
                judged += judged_of(one.settings.name, evaluation.due.window, run)
                statuses.add(run.status or window_status(run.results))
    if Status.VIOLATED in statuses:
        return judged, VIOLATED
    return judged, OK if statuses <= {Status.OK} else NOT_JUDGED


def evaluate_span(
    config: Config,
    checked: Checked,
    now: datetime,
    first: datetime | None,
    last: datetime | None,
    *,
    frames: Mapping[str, pa.Table] | None = None,
    tell: Tell = note,
) -> tuple[list[Evaluation], bool]:
    """The windows of a recommender in the span, judged part by part; and whether the span has a verdict.

    It has none where it holds no window or a long gap, or where every result is only measured.

    Args:
        config: of all recommenders.
        checked: the recommender.
        now: the time on the clock.
        first, last: the span; by default that of the log. Without `last`, what still waits for rows is left
            to a later call, if any window is complete.
        frames: the rows of logs that are tables in memory and no files.
        tell: called with a sentence on each thing that nobody sees in the results.
    """
    name, salt = checked.settings.name, monitor_salt(config, tell)
    with one_off(config, checked, salt, frames=frames) as judging:
        windows, gaps = _windows(judging, now, first, last, tell)
        evaluations = []
        with progress(len(windows), f"{name}: judging") as step:
            since = _watched_since(config, name, tell)
            waiting = [] if last is not None else _waiting(judging, windows, now, since)
            skips = len(waiting) < len(windows)  # else the rows so far are all that there is to show
            if waiting and skips:
                tell(
                    f"{name}: rows are still to come in {plural(len(waiting), 'window')}, from "
                    f"{iso(waiting[0].start)} on, and what needs them is not judged; "
                    f"--to {iso(waiting[-1].end)} judges it on the rows so far, as late"
                )
            judged = judge_span(
                config, checked, judging, windows, now,
                salt=salt, watched_since=since, for_history=skips and bool(waiting),
                in_memory=frames is not None,
            )  # fmt: skip
            for evaluation in judged:
                step(f"{name} {evaluation.due.window.start:%Y-%m-%d %H:%M}")
                evaluations.append(evaluation)
    only_measured = bool(windows) and not any(map(_has_verdict, evaluations))
    if only_measured:
        tell(f"{name}: nothing is judged: {_why_only_measured(checked.settings)}")
    return evaluations, bool(windows) and not gaps and not only_measured


def _waiting(
    judging: OneOff, windows: list[Window], now: datetime, watched_since: datetime | None
) -> list[Window]:
    """The windows with a part that still waits for rows."""
    parts, since = judging.evaluator.parts, now if watched_since is None else watched_since
    return [
        one
        for one in windows
        if not all(parts.completeness(one, part, now, since)[0] for part in parts.names)
    ]


def _has_verdict(evaluation: Evaluation) -> bool:
    """Whether a rule or a bound judges a result. The results of a check that failed are unknown."""
    return any(
        run.status is Status.ERROR
        or any(is_judged(one) and one.kind is not ResultKind.LOG for one in run.results)
        for run in evaluation.runs
    )


def _why_only_measured(settings: RecommenderSettings) -> str:
    if any(one.labels.get("dimension") == ROLLUP for one in settings.objectives):
        return (
            "every objective is on days or weeks, and no rule or other bound applies to a window; "
            "`recsys-monitor backfill` and the daemon judge days and weeks"
        )
    return (
        "no rule, no objective and no other bound applies, so all values are only measured; add rules: or "
        "objectives: to the config"
    )


def judged_of(recommender: str, window: Window, run: CheckRun) -> list[Judged]:
    """The results of a check with their recommender, check and window."""
    return [Judged(recommender, run.check, window, result) for result in run.results]


def backfill(path: Path, first: datetime | None, last: datetime | None, only: str | None) -> int:
    """Judge the windows of a span and store the verdicts. Returns the exit code."""
    config, checked = load(path, only)
    keep_private(config.state)
    salt = salt_of(config.history, config.state)
    now = datetime.now(UTC)
    code = OK
    with StateLock(config.state), Store.open(config.history.location(config.state)) as store:
        for one in checked:
            name, changed, summary = one.settings.name, set[Window](), SpanSummary()
            with one_off(config, one, salt, config.state) as judging:
                asked, _ = _windows(judging, now, first, last)
                since = store.watermarks(name).get(WATCHING)
                windows = _expected(judging, asked, since)
                with progress(len(windows), f"{name}: judging") as step:
                    for evaluation in judge_span(
                        config, one, judging, windows, now, salt=salt, watched_since=since, for_history=True
                    ):
                        due = evaluation.due
                        step(f"{name} {due.window.start:%Y-%m-%d %H:%M}")
                        recorded = store.record_window(
                            name, due.window, evaluation.runs,
                            fingerprint=due.fingerprint, rows=due.rows, evaluated_at=now,
                            in_maintenance=covers(one.settings.maintenance, due.window),
                        )  # fmt: skip
                        if recorded.changed:
                            changed.add(due.window)
                        for run in evaluation.runs:
                            summary.add(due.window, run.status or window_status(run.results), run.results)
                done = summary.windows
                if done:
                    _roll_up(judging, store, Window(min(done).start, max(done).end), now)
            code = code if done else NOT_JUDGED
            say(f"{name}: judged {plural(len(done), 'window')}, {len(changed)} of them new or changed")
            for line in summary.lines():
                say(f"  {line}")
            if waiting := len(windows) - len(done):
                left = plural(waiting, "window")
                note(f"{name}: rows are still to come in {left}; the daemon will judge them")
    return code


def _expected(judging: OneOff, windows: list[Window], watched_since: datetime | None) -> list[Window]:
    """The windows that may be stored, with a note on the others.

    As for the daemon, a window without rows counts only between rows, or while the daemon watches. Outside,
    nobody expected a row, or its files were deleted after it was judged.
    """
    parts = judging.evaluator.parts
    held = {window for part in parts.names for window in parts.timeline(part).windows()}
    first, end = (min(held).start, max(held).end) if held else (ALWAYS, ALWAYS)
    expected = [
        one
        for one in windows
        if first <= one.start < end or (watched_since is not None and watched_since <= one.start)
    ]
    if held and (outside := len(windows) - len(expected)):
        note(
            f"{judging.evaluator.settings.name}: the log does not reach {plural(outside, 'window')} of this "
            f"span, so nothing is stored there; {held_span(held)}"
        )
    return expected


def held_span(held: Collection[Window]) -> str:
    """The span of the windows of a log, for messages."""
    if not held:
        return "the log holds no window"
    return f"the log holds windows from {iso(min(held).start)} to {iso(max(held).end)}"


def _roll_up(judging: OneOff, store: Store, span: Window, now: datetime) -> None:
    """Add up the days of a span that was judged."""
    evaluator = judging.evaluator
    name = evaluator.settings.name
    check = next((one for one in evaluator.checks if isinstance(one, RollupCheck)), None)
    if check is None:
        return
    rollups = RollupDays(evaluator.settings, check, evaluator, store)
    days = rollups.days_in(span, now)
    before, summary = len(store.evaluated(name, check.name)), SpanSummary("day")
    with progress(len(days), f"{name}: adding up days") as step:

        def recorded(day: Window, run: CheckRun) -> None:
            summary.add(day, run.status or window_status(run.results), run.results)
            step(name)

        while rollups.roll_up(judging.runtime, days, now, recorded=recorded):
            end_if_asked()
    say(f"{name}: added up {plural(len(store.evaluated(name, check.name)) - before, 'new day')}")
    for line in summary.lines():
        say(f"  {line}")


def _windows(
    judging: OneOff, now: datetime, first: datetime | None, last: datetime | None, tell: Tell = note
) -> tuple[list[Window], list[Window]]:
    """The windows to judge and the skipped gaps, with a note on gaps, and on no or very many windows."""
    name = judging.evaluator.settings.name
    with progress(0, f"{name}: reading the logs") as step:
        judging.look(now, step)
    windows, gaps = judging.windows(first, last, now)
    log = judging.evaluator.source.main
    if len(windows) > MANY_WINDOWS:
        tell(f"{name}: {len(windows):,} windows to judge; --from and --to judge fewer")
    if log.watermark is None:
        tell(f"{name}: {why_empty(log)}")
    elif not windows:
        tell(f"{name}: the log has no window in this span; {held_span(log.windows())}")
    for each in judging.evaluator.source.logs.values():
        # Of a file that cannot hold rows of a judged window, no result says that it was skipped.
        if each.entries and (each is not log or log.watermark is not None) and (why := why_unread(each)):
            tell(f"{name}: {why}")
    if gaps:
        longest = max(gaps, key=lambda gap: gap.length)
        others = f" (and {plural(len(gaps) - 1, 'more such gap')})" if len(gaps) > 1 else ""
        tell(
            f"{name}: no row from {iso(longest.start)} to {iso(longest.end)}{others}: no data, and not "
            "judged window by window; --from skips the windows before it"
        )
    return windows, gaps


def why_empty(log: Log) -> str:
    """Why no row of a log lies in a window, as a sentence that begins with the log's name."""
    if why := why_unread(log):
        return why
    entries = [one for one in log.read_entries if one.rows]
    if not entries:
        if isinstance(log, FrameLog):
            return f"the frame of the {log.name} has no row"
        what = "online row" if log.name == SAMPLES else "row"
        return f"{log.name}: no {what} in {_such_as(log.read_entries)}"
    rows, future = sum(one.rows for one in entries), sum(one.future for one in entries)
    is_frame = isinstance(log, FrameLog)
    if future > rows / 2:
        own = "their file; correct `timezone` or the clock of the writer"
        than = "now; times without a zone are UTC" if is_frame else own
        why = f"{future:,} of {rows:,} rows are later than {than}"
    else:
        needed = " or ".join(quoted(log.settings.columns.get(one, one)) for one in INDISPENSABLE[log.name])
        why = f"{needed} is empty or cannot be read in {rows - future:,} of {rows:,} rows"
        why += "" if is_frame else "; `recsys-monitor validate` shows which"
    return f"the frame of the {log.name}: {why}" if is_frame else f"{log.name}: {_such_as(entries)}: {why}"


def why_unread(log: Log) -> str:
    """Why a log or some of its files cannot be read, as such a sentence; empty if all files can."""
    if log.error:
        return log.error
    if not log.entries:
        return f"{log.name}: {log.unlisted[0] if log.unlisted else no_file(log.settings)}"
    faults = [one for one in log.skipped if not one.is_duplicate]
    if not faults:
        return ""
    reason = faults[0].reason
    why = f"{reason}; {WHEN_READ}" if reason == STILL_WRITTEN else reason
    if len(log.entries) == 1:
        return f"{log.name}: {faults[0].file.path}: {why}"
    many = f"{len(faults):,} of {len(log.entries):,} files are skipped"
    return f"{log.name}: {many}, such as {faults[0].file.path}: {why}"


def _such_as(entries: Sequence[FileEntry]) -> str:
    first = entries[0].file.path
    return first if len(entries) == 1 else f"{len(entries)} files, such as {first}"


def _watched_since(config: Config, name: str, tell: Tell) -> datetime | None:
    """When the daemon began to watch this recommender. None if it never did, or the history is unreadable."""
    try:
        return watched_since(config.history.location(config.state), name)
    except StoreError as error:
        tell(f"{name}: the history cannot be read; the windows are judged without it: {error}")
        return None


def monitor_salt(config: Config, tell: Tell = note) -> str:
    """The salt of the config or the daemon, so that a user has one hash everywhere; else a new one."""
    if config.history.salt is not None:
        return config.history.salt.get_secret_value()
    path = config.state / SALT_FILE
    try:
        salt = path.read_text("ascii") if path.is_file() else ""
    except PermissionError:
        salt = ""
        tell(f"{path} belongs to another user: hashes of users differ from those of the daemon")
    return salt or secrets.token_hex(16)  # a crash of the machine can leave an empty file
