"""The page that lists the reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from monitor.history.snapshot import Snapshot
from monitor.report.frame import frame
from monitor.report.report_files import ReportFile
from monitor.report.views import Frame


@dataclass(frozen=True, slots=True)
class ReportsPage:
    """The reports, the newest first."""

    frame: Frame
    reports: tuple[ReportFile, ...]


def reports_page(snapshot: Snapshot, reports: Sequence[ReportFile], now: datetime) -> ReportsPage:
    """The content of the page."""
    return ReportsPage(frame(snapshot, now), tuple(reports))
