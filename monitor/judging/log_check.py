"""The check of the logs themselves: did rows arrive, and what could not be read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Self

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.core.text import plural
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.settings.recommender import SliceSettings
from monitor.window.check import Check, Recommender, WindowJob

NAME = "logs"
SKIPPED_FILES = "log_skipped_files"
DEFINITION = "1"


class LogCheck(Check[WindowJob]):
    """Rows, skipped files and bad values of each log in a window.

    - `log_rows`: rows of the window. `no_data` if there are none (exposures only: feedback may be rare,
      and a catalog has no windows), `late` if rows that were read before cannot be read now.
    - `log_skipped_files`: unreadable files that were written since the window began (for a catalog: at any
      time). `error` if there are any, because their rows are not judged. A file with the same rows as
      another is counted and is no error. Neither is one that is just being written, except of a catalog.
    - `log_bad_values`: values that could not be read as their type, and rows without a usable time or
      request; of a catalog and users in all files, with the rows without an id.
    - `log_lacks_slices`: columns in `slices.by` that no file of the log has. `error` if there are any,
      because nothing is measured by them.
    """

    name = NAME
    part = EXPOSURES

    def __init__(self, source: Source, slices: SliceSettings) -> None:
        self._source = source
        self._slices = slices

    @classmethod
    def of(cls, recommender: Recommender) -> Iterable[Self]:
        return [cls(recommender.source, recommender.settings.slices)]

    def run(self, job: WindowJob) -> list[Result]:
        return self.look(job.window)

    def look(self, window: Window) -> list[Result]:
        """What the index of the files says about the window."""
        logs = self._source.logs.values()
        results = [result for log in logs for result in _results_of(log, window)]
        for log in logs:
            wanted = self._slices.columns(log.name)
            if wanted and log.read_entries:
                results.append(_missing_slices(log.name, wanted, self._source.schema(log.name)))
        return results

    def failed(self, why: str) -> list[Result]:
        return [_result("log_rows", EXPOSURES, Status.ERROR, detail=why)]


def _result(metric: str, log: str, status: Status = Status.OK, **more: Any) -> Result:
    return Result(
        kind=ResultKind.LOG, metric=metric, labels={"log": log}, status=status, definition=DEFINITION, **more
    )


def _results_of(log: Log, window: Window) -> Iterator[Result]:
    if log.error is not None:
        for metric in ("log_rows", SKIPPED_FILES):
            yield _result(metric, log.name, Status.ERROR, detail=log.error)
        return
    if log.has_windows:
        rows = log.rows(window)
        lost = log.lost(window)
        empty = rows == 0 and log.is_required
        yield _result(
            "log_rows",
            log.name,
            Status.LATE if lost else Status.NO_DATA if empty else Status.OK,
            value=float(rows),
            samples=rows,
            detail=lost or (_why_empty(log) if empty else ""),
        )
        yield _result("log_bad_values", log.name, value=float(log.bad_values(window)), samples=rows)
    elif log.entries:
        rows = sum(one.rows for one in log.read_entries)
        bad = float(log.bad_values(window))
        yield _result("log_bad_values", log.name, value=bad, samples=rows)
    # A catalog has no windows: the rows of an unreadable file are missing from all of them.
    skipped = [entry for entry in log.skipped if entry.file.modified >= window.start or not log.has_windows]
    # A file that is being written is no fault of the window: if it may hold rows of it, the window is late.
    faults = [
        entry
        for entry in skipped
        if not entry.is_duplicate and not (log.has_windows and entry.is_being_written)
    ]
    yield _result(
        SKIPPED_FILES,
        log.name,
        Status.ERROR if faults else Status.OK,
        value=float(len(skipped)),
        samples=len(log.entries),
        detail="; ".join(f"{entry.file.path}: {entry.reason}" for entry in faults[:3]),
    )


def _missing_slices(log: str, wanted: Sequence[str], present: Container[str]) -> Result:
    missing = [column for column in wanted if column not in present]
    return _result(
        "log_lacks_slices",
        log,
        Status.ERROR if missing else Status.OK,
        value=float(len(missing)),
        samples=len(wanted),
        detail=f"slices.by asks for what the log does not have: {', '.join(missing)}" if missing else "",
    )


def _why_empty(log: Log) -> str:
    text = "the log holds no row of this window"
    ahead = [entry for entry in log.read_entries if entry.future]
    if ahead and not log.windows():
        count = sum(entry.future for entry in ahead)
        text += f"; {plural(count, 'row')} with a time after the file was written, as in {ahead[0].file.path}"
    return text
