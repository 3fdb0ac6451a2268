"""The check of the logs themselves: did rows arrive, and what could not be read."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Self

from monitor.core.columns import EXPOSURES
from monitor.core.results import Result, ResultKind, Status, Window
from monitor.logs.log import Log
from monitor.logs.source import Source
from monitor.settings.recommender import SliceSettings
from monitor.window.check import Check, Recommender, WindowJob

NAME = "logs"
DEFINITION = "1"


class LogCheck(Check[WindowJob]):
    """Rows, skipped files and bad values of each log in a window.

    - `log_rows`: rows of the window; `no_data` where there is none (exposures only: feedback may be
      rare, and a catalog has no windows), `late` where rows that were read once cannot be read any more.
    - `log_skipped_files`: files that could not be read and were written since the window began (of a
      catalog: at any time);
      `error` where there is one, since what they hold is not judged. The same rows delivered twice
      are counted and are no error.
    - `log_bad_values`: values of the window that could not be read as their type, and rows without
      a usable time or request.
    - `log_lacks_slices`: columns that the metrics are to be sliced by and that no file of the log has;
      `error` where there is one, since nothing is measured by them.
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
        """What the index of the files says of the window."""
        logs = self._source.logs.values()
        found = [result for log in logs for result in _of(log, window)]
        for log in logs:
            wanted = self._slices.columns(log.name)
            if wanted and log.read_entries:
                found.append(_lacking(log.name, wanted, self._source.schema(log.name)))
        return found

    def failed(self, why: str) -> list[Result]:
        return [
            Result(
                kind=ResultKind.LOG,
                metric="log_rows",
                labels={"log": EXPOSURES},
                status=Status.ERROR,
                definition=DEFINITION,
                detail=why,
            )
        ]


def _of(log: Log, window: Window) -> Iterator[Result]:
    labels = {"log": log.name}
    if log.error is not None:
        for metric in ("log_rows", "log_skipped_files"):
            yield Result(
                kind=ResultKind.LOG, metric=metric, labels=labels, status=Status.ERROR,
                definition=DEFINITION, detail=log.error,
            )  # fmt: skip
        return
    if log.has_windows:
        rows = log.rows(window)
        lost = log.lost(window)
        empty = rows == 0 and log.is_required
        yield Result(
            kind=ResultKind.LOG,
            metric="log_rows",
            labels=labels,
            status=Status.LATE if lost else Status.NO_DATA if empty else Status.OK,
            definition=DEFINITION,
            value=float(rows),
            samples=rows,
            detail=lost or (_why_empty(log) if empty else ""),
        )
        yield Result(
            kind=ResultKind.LOG,
            metric="log_bad_values",
            labels=labels,
            status=Status.OK,
            definition=DEFINITION,
            value=float(log.bad_values(window)),
            samples=rows,
        )
    # A catalog has no windows: what cannot be read of it is missing from every one.
    skipped = [one for one in log.skipped if one.file.modified >= window.start or not log.has_windows]
    faults = [one for one in skipped if not one.is_duplicate]
    yield Result(
        kind=ResultKind.LOG,
        metric="log_skipped_files",
        labels=labels,
        status=Status.ERROR if faults else Status.OK,
        definition=DEFINITION,
        value=float(len(skipped)),
        samples=len(log.entries),
        detail="; ".join(f"{one.file.path}: {one.reason}" for one in faults[:3]),
    )


def _lacking(log: str, wanted: Sequence[str], present: Container[str]) -> Result:
    lacking = [column for column in wanted if column not in present]
    return Result(
        kind=ResultKind.LOG,
        metric="log_lacks_slices",
        labels={"log": log},
        status=Status.ERROR if lacking else Status.OK,
        definition=DEFINITION,
        value=float(len(lacking)),
        samples=len(wanted),
        detail=f"slices.by asks for what the log does not have: {', '.join(lacking)}" if lacking else "",
    )


def _why_empty(log: Log) -> str:
    text = "the log holds no row of this window"
    ahead = [one for one in log.read_entries if one.future]
    if ahead and not log.windows():
        count = sum(one.future for one in ahead)
        text += f"; {count:,} rows claim a time after their file was written, as in {ahead[0].file.path}"
    return text
