"""The verdict on a window, from the verdicts of its checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from monitor.core.results import Status, worst_status
from monitor.history.reads import Evaluated
from monitor.judging.registry import CHECKS_OF

OF_LOGS: Final = frozenset(check for checks in CHECKS_OF.values() for check in checks)
"""The checks that read the logs of a window."""


def window_verdict(checks: Iterable[Evaluated]) -> Status:
    """The worst verdict of the checks of one window.

    A check of the history without data, such as of bands that are still learnt, is no verdict on the window.
    """
    return worst_status(
        one.status for one in checks if one.status is not Status.NO_DATA or one.check in OF_LOGS
    )
