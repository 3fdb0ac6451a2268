"""The demo: a growing folder of logs in which a blacklisted item leaks from time to time."""

from __future__ import annotations

import glob
import logging
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from monitor.core.errors import ExpectedError
from monitor.simulate.endpoint import VARIANTS
from monitor.simulate.traffic import Simulator, Traffic

log = logging.getLogger(__name__)

SEED: Final = 20260101
RATE: Final = 20.0  # requests a second
EVERY: Final = 2.0  # seconds between two batches
FIRST_LEAK: Final = 8.0  # seconds after the start: on the page within a minute, with windows of 10 s
LEAK_EVERY: Final = 180.0  # seconds between two later leaks, on average
KEEP: Final = timedelta(minutes=30)  # older batches are deleted: a running demo must not fill the disk

_NAMES: Final = ("exposures", "feedback", "catalog.parquet", "blacklist.csv", "launch", "state")
_TITLE: Final = "# The demo's own configuration."  # as in the config below
_CONFIG = """\
# The demo's own configuration. Copy it as a start for your own; `recsys-monitor init LOGFILE` writes
# one that fits a log of yours.
state: {state}
history: {{retention: 1d}}
server:
  listen: "${{RECSYS_LISTEN:-127.0.0.1:9108}}"
  external_url: "${{RECSYS_EXTERNAL_URL:-}}"
recommenders:
  - name: demo
    logs:
      exposures: {{path: {exposures}}}
      feedback: {{path: {feedback}}}
      catalog: {{path: {catalog}}}
    window: 10s
    every: 2s
    lateness: 3s
    max_wait: 1m
    catch_up: 24
    deadline: 30s
    rules:
      - pack: blacklist
        parameters: {{blacklist: {blacklist}}}
      - pack: catalog
        parameters: {{available_from: available_from, available_until: available_until}}
      - pack: lists
      - pack: order
      - pack: scores
      - pack: time
    metrics: {{score_range: [0, 1], history: 10m, attribution: 10s}}
    slices: {{by: [scene], budget: 5}}
    objectives:
      - {{metric: coverage, labels: {{by: pv}}, min: 0.98}}
    health:
      parts:
        - {{metric: coverage, labels: {{by: pv}}, weight: 2, zero: 0.9, one: 1}}
        - {{metric: novelty, labels: {{by: item}}, zero: 0, one: 0.6}}
        - {{metric: personalization, zero: 0, one: 0.8}}
        - {{metric: action_rate, labels: {{by: exposure, event: click}}, weight: 2, zero: 0, one: 0.08}}
"""

RECORDED: Final = (datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 13, tzinfo=UTC))
RECORDED_RATE: Final = 0.5  # requests a second: 1,800 in the hour

_LAUNCH = """\
# Before a launch: an hour of the log is replayed against three models, and the candidates are judged.
# docs/launch.md explains each step.
state: {state}
recommenders:
  - name: recorded
    logs:
      exposures: {{path: {exposures}}}
      feedback: {{path: {feedback}}}
    window: 1h
    replay:
      allowed_hosts: [{host}]
      targets:
        - &target
          name: current
          url: {url}/recommend/current
          body: {{user_id: "{{{{ user_id }}}}", scene: "{{{{ scene }}}}", now: "{{{{ now }}}}"}}
          response: {{items: "$.items[*].id", scores: "$.items[*].score", user: $.user_id, model: $.model}}
          rate: 100
          concurrency: 64
          ramp_up: 2s
        - {{<<: *target, name: good, url: {url}/recommend/good}}
        - {{<<: *target, name: bad, url: {url}/recommend/bad}}
  - &replayed
    name: current
    logs: &logs
      exposures: {{path: {current}}}
      feedback: {{path: {feedback}}}
      catalog: {{path: {catalog}}}
    window: 1h
    rules: [{{pack: blacklist, parameters: {{blacklist: {blacklist}}}}}, {{pack: lists}}, {{pack: scores}}]
    metrics: {{score_range: [0, 1], attribution: 1m}}
  - <<: *replayed
    name: good
    logs: {{<<: *logs, exposures: {{path: {good}}}}}
    gate: &gate
      against: current
      conditions:
        - {{name: rules, owner: trust team, reason: A blacklisted item is a fine., rules: hard}}
        - name: empty-lists
          owner: on call
          reason: A page without items loses the visit.
          metric: failure
          labels: {{by: pv}}
          max: 0.01
        - name: latency
          owner: on call
          reason: The page waits for the list.
          metric: latency
          labels: {{by: p90}}
          max: 0.5
        - name: clicked-items
          owner: ranking team
          reason: What users clicked should be on top.
          metric: ndcg
          labels: {{k: "10"}}
          margin: 0.02
  - <<: *replayed
    name: bad
    logs: {{<<: *logs, exposures: {{path: {bad}}}}}
    gate: *gate
"""


class OtherFilesError(ExpectedError):
    """The folder holds files that no demo wrote."""

    hint = "Name an empty folder, or one that is not there yet, with --folder."


def demo_config(folder: Path | str) -> str:
    """The YAML text of a config that watches the demo's folder, with absolute paths.

    >>> "window: 10s" in demo_config("/tmp/demo")
    True
    """
    base = Path(folder).resolve()
    return _CONFIG.format(
        state=_quoted(str(base / "state")),
        exposures=_log(base / "exposures", "*.parquet"),
        feedback=_log(base / "feedback", "*.parquet"),
        catalog=_log(base, "catalog.parquet"),
        blacklist=_quoted(str(base / "blacklist.csv")),
    )


def prepare_launch(folder: Path | str, url: str) -> Path:
    """Write an hour of recorded traffic, and the config that replays it against the demo's recommender.

    The hour is the same in every demo, so that a replay can be done again. Returns the path of the config.

    Args:
        folder: of the demo; the files go into `launch` in it.
        url: of the recommender, such as http://127.0.0.1:9109.
    """
    base = Path(folder).resolve() / "launch"
    simulator = Simulator(Traffic(), SEED)
    batch = simulator.batch(*RECORDED, RECORDED_RATE, np.random.default_rng(SEED))
    _write(batch.exposures, base / "exposures.parquet")
    _write(batch.feedback, base / "feedback.parquet")
    _write(simulator.catalog(), base / "catalog.parquet")
    _write_text("\n".join(["item_id", *simulator.blacklist, ""]), base / "blacklist.csv")
    text = _LAUNCH.format(
        url=url,
        host=_quoted(urlsplit(url).netloc),
        state=_quoted(str(base / "state")),
        exposures=_log(base, "exposures.parquet"),
        feedback=_log(base, "feedback.parquet"),
        catalog=_log(base, "catalog.parquet"),
        blacklist=_quoted(str(base / "blacklist.csv")),
        **{name: _log(base / "replays" / name / "log", "*.parquet") for name in VARIANTS},
    )
    config = base / "launch.yaml"
    _write_text(text, config)
    return config


def write_batch(
    folder: Path | str,
    start: datetime,
    end: datetime,
    *,
    rate: float = RATE,
    rng: np.random.Generator,
    simulator: Simulator,
    blacklisted: bool = False,
) -> Path:
    """Write the traffic of [start, end) as one file of exposures and one of feedback.

    Files are written under a name that starts with a dot and then renamed, so readers never see an incomplete
    file. Returns the path of the exposures.
    """
    batch = simulator.batch(start, end, rate, rng, blacklisted=blacklisted)
    name = f"{start.astimezone(UTC):%Y%m%dT%H%M%S.%f}.parquet"
    base = Path(folder)
    _write(batch.feedback, base / "feedback" / name)
    _write(batch.exposures, base / "exposures" / name)
    return base / "exposures" / name


def prepare(
    folder: Path | str,
    now: datetime,
    *,
    history: timedelta = timedelta(minutes=3),
    rate: float = RATE,
    seed: int = SEED,
    traffic: Traffic | None = None,
) -> Path:
    """Write the catalog, the blacklist, the traffic of the `history` before `now`, and the config.

    Traffic of an earlier demo in the folder stays, and goes on where it ended: its monitor has judged it, and
    would miss the rows. Returns the path of the config.

    Raises OtherFilesError if the folder has files under the demo's names that no demo wrote.
    """
    base = Path(folder)
    config = base / "recsys-monitor.yaml"
    _check_free(base, config)
    base.mkdir(parents=True, exist_ok=True)
    _write_text(demo_config(base), config)  # first: it marks the folder as that of a demo
    for log in ("exposures", "feedback"):
        (base / log).mkdir(exist_ok=True)
    _remove_older(base, now - KEEP)
    start = _end_of_earlier(base) or now - history
    simulator = Simulator(traffic or Traffic(), seed)
    _write(simulator.catalog(), base / "catalog.parquet")
    _write_text("\n".join(["item_id", *simulator.blacklist, ""]), base / "blacklist.csv")
    rng = np.random.default_rng([seed, int(start.timestamp())])
    step = timedelta(seconds=30)
    while start < now:
        end = min(start + step, now)
        write_batch(base, start, end, rate=rate, rng=rng, simulator=simulator)
        start = end
    return config


def live(
    folder: Path | str,
    stop_event: threading.Event,
    *,
    start: datetime | None = None,
    rate: float = RATE,
    seed: int = SEED,
    traffic: Traffic | None = None,
    every: float = EVERY,
    first_leak: float = FIRST_LEAK,
    leak_every: float = LEAK_EVERY,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Append a batch every `every` seconds until `stop_event` is set; some leak a blacklisted item.

    Each batch starts where the last one ended (the first at `start`, default now), so a pause leaves no hole.
    A batch that cannot be written, as on a full disk, is a warning, and its time belongs to the next batch.
    The first leak comes `first_leak` seconds after the start, later ones `leak_every` seconds apart on
    average (between half and one and a half times that).
    """
    simulator = Simulator(traffic or Traffic(), seed)
    begun = last = start or clock()
    rng = np.random.default_rng([seed, int(begun.timestamp())])
    leak = begun + timedelta(seconds=first_leak)
    while not stop_event.wait(every):
        now = clock()
        if now <= last:  # the clock was set back: wait until it catches up
            continue
        last = max(last, now - KEEP)  # older traffic would be deleted at once
        try:
            write_batch(folder, last, now, rate=rate, rng=rng, simulator=simulator, blacklisted=now >= leak)
        except OSError as error:
            log.warning("the demo's traffic cannot be written, and is tried again: %s", error)
            continue
        if now >= leak:
            leak = now + timedelta(seconds=leak_every * (0.5 + rng.random()))
        last = now
        _remove_older(Path(folder), now - KEEP)


def _check_free(base: Path, config: Path) -> None:
    """Raise OtherFilesError if the demo would replace or delete files that no demo wrote.

    The config of a demo that was moved from another folder names its old one, and does not count.
    """
    text = config.read_text("utf-8", "replace") if config.is_file() else ""
    if text.startswith(_TITLE) and _log(base.resolve() / "exposures", "*.parquet") in text:
        return
    there = [name for name in (config.name, *_NAMES) if (base / name).exists()]
    if there:
        raise OtherFilesError(f"the folder {base} holds {', '.join(there)}, which no demo wrote there")


def _end_of_earlier(base: Path) -> datetime | None:
    """Where the traffic of an earlier demo ends; None without one."""
    for path in sorted((base / "exposures").glob("*.parquet"), reverse=True):
        try:
            newest: datetime | None = pc.max(pq.read_table(path, columns=["ts"])["ts"]).as_py()
        except pa.ArrowInvalid:  # cut off when the machine lost its power
            path.unlink()
            continue
        if newest is not None:
            return newest.replace(tzinfo=UTC) + timedelta(microseconds=1)
    return None


def _remove_older(base: Path, than: datetime) -> None:
    oldest = f"{than.astimezone(UTC):%Y%m%dT%H%M%S.%f}.parquet"
    for log in ("exposures", "feedback"):
        for path in (base / log).glob("*.parquet"):
            if path.name < oldest:
                path.unlink(missing_ok=True)


def _write(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(table, partial)
    os.replace(partial, path)


def _write_text(text: str, path: Path) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _log(folder: Path, pattern: str) -> str:
    """The path of a log in a folder, whose own name is no pattern."""
    return _quoted(str(Path(glob.escape(str(folder))) / pattern))


def _quoted(text: str) -> str:
    """The text as a single-quoted YAML scalar without references."""
    return "'" + text.replace("'", "''").replace("${", "$${") + "'"
