"""The verdicts of the whole scoreboard, stored in the repository.

`python -m benchmarks.scoreboard.results` rewrites docs/scoreboard.md from them without a run.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.scoreboard import kept, page, workers
from benchmarks.scoreboard.healthy import changed_by_restart, health
from benchmarks.scoreboard.jobs import JUDGING_CODE, Job, digest
from benchmarks.scoreboard.outcomes import outcome
from benchmarks.scoreboard.planned import DESIGN, RESULTS, Planned, in_order
from benchmarks.scoreboard.verdicts import Verdicts
from monitor.simulate.incidents.catalogue import INCIDENTS

VERDICTS: Final = "verdicts.jsonl"
PREVIOUS: Final = (
    "**This page is of the previous design**: three worlds without level steps, seasons and weather, "
    "incidents at three\nfixed times, and no confidence intervals. `make scoreboard` replaces it.\n"
)
_TITLE: Final = "# Scoreboard\n"


def found(
    planned: Planned, verdicts: Verdicts, failed: Mapping[Job, str], made: page.Made, *, other_code: bool
) -> page.Content:
    """The content of the page from the runs that have a verdict."""
    return page.Content(
        planned.plans,
        [outcome(job, verdicts[job]) for job in planned.incidents if job in verdicts],
        [health(job, verdicts[job]) for job in planned.healthy if job in verdicts],
        {
            job: changed_by_restart(job, verdicts[job], verdicts[Job(job.plan)])
            for job in planned.restarts
            if job in verdicts and Job(job.plan) in verdicts
        },
        failed,
        made,
        left=sum(job not in verdicts and job not in failed for job in planned.jobs),
        other_code=other_code,
    )


def save(work: Path, made: page.Made, path: Path = RESULTS) -> None:
    """Store the verdicts of a folder that the current rules gave, and how they were made."""
    verdicts = {raw["name"]: raw for raw in kept.read(work / VERDICTS) if raw["rules"] == made.judged}
    head = {"made": asdict(made), "design": DESIGN, "seconds": workers.seconds(work), "sizes": sizes()}
    lines = [json.dumps(one, separators=(",", ":")) for one in (head, *verdicts.values())]
    partial = path.with_name(f".{path.name}.part")
    partial.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    partial.replace(path)


def restore(work: Path, path: Path = RESULTS) -> None:
    """Continue from the stored verdicts, in a folder of the same code that has no verdict yet."""
    head, *verdicts = _read(path) or [{"made": {"ran": None}}]
    if head["made"]["ran"] != work.name or (work / VERDICTS).exists():
        return
    for name, value in ((VERDICTS, verdicts), (workers.SECONDS, head["seconds"].items())):
        for line in value:
            kept.append(work / name, line)


def sizes() -> dict[str, dict[str, float]]:
    """Incident -> size -> the number of its knob, in the order by which the worlds have their sizes."""
    return {name: dict(INCIDENTS[name].sizes) for name in in_order() if name in INCIDENTS}


def again(path: Path = RESULTS, target: Path = page.PAGE) -> str:
    """Write the page from the stored verdicts and return its text.

    Incidents that were added since count as runs without a verdict. A page of the previous design stays as it
    is, and says so. Raises ValueError if other runs are missing, or if an incident had other sizes.
    """
    now = sizes()
    head, *verdicts = _read(path) or [{"made": {"judged": ""}, "design": DESIGN, "sizes": now}]
    if head.get("design") != DESIGN:
        text = _of_previous_design(page.PAGE.read_text("utf-8"))
        target.write_text(text, "utf-8")
        return text
    if any(now.get(name) != then for name, then in head["sizes"].items()):
        raise ValueError(
            "the incidents have other sizes than those that were run; `make scoreboard` runs them"
        )
    with TemporaryDirectory() as folder:
        for line in verdicts:
            kept.append(Path(folder) / VERDICTS, line)
        known = Verdicts(Path(folder) / VERDICTS, head["made"]["judged"])
    planned = Planned.of()
    asked = [job for job in planned.jobs if not job.incident or job.incident in head["sizes"]]
    if missing := sum(job not in known for job in asked):
        raise ValueError(f"{missing} of {len(asked)} runs are not kept yet; `make scoreboard` goes on")
    return page.write(found(planned, known, {}, page.Made(**head["made"]), other_code=False), target)


def _of_previous_design(text: str) -> str:
    """The page with a note below its title."""
    return text if PREVIOUS in text else text.replace(_TITLE, f"{_TITLE}\n{PREVIOUS}", 1)


def is_of_this_code(path: Path = RESULTS) -> bool:
    """Whether the stored verdicts were run and judged by the current code."""
    head, *_ = _read(path)
    return bool((head["made"]["ran"], head["made"]["judged"]) == (Planned.of().code(), digest(JUDGING_CODE)))


def _read(path: Path) -> list[Any]:
    lines = gzip.decompress(path.read_bytes()).splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


if __name__ == "__main__":
    try:
        again()
    except ValueError as error:
        sys.exit(str(error))
    if not is_of_this_code():
        print("the code has changed since these runs; `make scoreboard` repeats them", file=sys.stderr)
