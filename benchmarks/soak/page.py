"""The table of a soak, for the terminal and for docs/soak.md."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.page import machine
from benchmarks.soak.comparison import EXCLUDED
from benchmarks.soak.killer import WAYS
from benchmarks.soak.report import Report
from benchmarks.soak.samples import MOST_FILES, MOST_MEMORY, Growth
from benchmarks.soak.traffic import RECOMMENDERS

PAGE: Final = Path(__file__).parents[2] / "docs" / "soak.md"


def text(report: Report) -> str:
    """What a soak found, in Markdown."""
    quiet, disturbed = report.undisturbed, report.disturbed
    parts = [
        machine(),
        f"{report.windows:,} windows of {len(RECOMMENDERS)} recommenders each, two processes that judge. "
        f"The undisturbed run took {quiet.seconds / 60:.0f} minutes, the disturbed one "
        f"{disturbed.seconds / 60:.0f}.",
        _table("files", "times", {**report.events}),
        _table("disturbance", "times", {
            **{f"{way} killed": str(disturbed.kills.ways[way]) for way in WAYS},
            **{name: str(times) for name, times in disturbed.troubles.items()},
            **dict.fromkeys(report.left_out, "not done: this user may not mount a small disk"),
            "the daemon ended by itself meanwhile, and was started again": str(len(disturbed.exits)),
            "starts": str(disturbed.starts),
        }),
        _stages(report),
        _compared(report),
        _flat(report),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _table(first: str, second: str, rows: dict[str, str]) -> str:
    lines = [f"| {first} | {second} |", "|---|---:|"]
    return "\n".join(lines + [f"| {name} | {value} |" for name, value in rows.items()])


def _stages(report: Report) -> str:
    kills = report.disturbed.kills
    lines = ["| stage | kills | of a daemon | of a judge |", "|---|---:|---:|---:|"]
    lines += [
        f"| {stage} | {kills.in_stage[stage]} | {kills.daemon[stage]} | {kills.judge[stage]} |"
        for stage in report.stages
    ]
    return "\n".join(lines)


def _compared(report: Report) -> str:
    counts = report.undisturbed.history.counts()
    differing = dict.fromkeys(counts, 0)
    for line in report.differences:
        differing[line.partition(":")[0]] += 1
    lines = ["| compared | rows | that differ |", "|---|---:|---:|"]
    lines += [f"| {name} | {count:,} | {differing[name]:,} |" for name, count in counts.items()]
    return "\n".join(lines)


def _flat(report: Report) -> str:
    lines = [
        "| run | windows of the longest life | memory | growth | open files | growth | verdict |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for name, one in (("undisturbed", report.quiet_growth), ("disturbed", report.disturbed_growth)):
        lines.append(
            f"| {name} | {one.windows:,} | {one.memory.level:.0f} MiB | {one.memory.growth:+.1f} MiB "
            f"| {one.files.level:.0f} | {one.files.growth:+.1f} | {_verdict(one)} |"
        )
    return "\n".join(lines)


def _verdict(one: Growth) -> str:
    if not one.memory.is_long_enough:
        return "too short to say"
    return "flat" if one.is_flat else "**grows**"


def excluded() -> str:
    """What is not compared, as a table."""
    lines = ["| not compared | why |", "|---|---|"]
    return "\n".join(lines + [f"| {name} | {why} |" for name, why in EXCLUDED.items()])


def bounds() -> str:
    return (
        f"Memory is flat if it grows by at most {MOST_MEMORY:.0%} over the second half of the windows, and "
        f"open files if they grow by at most {MOST_FILES:g}."
    )
