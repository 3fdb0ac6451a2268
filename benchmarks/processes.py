"""The processes of a daemon that is measured, and what they take; from /proc, so on Linux only."""

from __future__ import annotations

import os
from pathlib import Path


def descendants(root: int) -> list[int]:
    """The processes that this one started, and those that they started."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        parents.setdefault(parent, []).append(int(path.parent.name))
    found, left = [], [root]
    while left:
        children = parents.get(left.pop(), [])
        found += children
        left += children
    return found


def processor_seconds(process: int) -> float:
    """The processor time that a process has taken so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def mebibytes(process: int) -> float:
    """Its own memory, and its part of what it shares. Raises OSError if it has ended."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    parts = [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    if not parts:
        raise ProcessLookupError(f"process {process} has ended")
    return sum(parts) / 1024
