"""Series, bytes, seconds and memory of a scrape for 1 to 200 recommenders: `python -m benchmarks.sizing`.

The real daemon judges windows of the demo's log, with slices by scene and by model. Its snapshot is copied
under other names, and the real exporter exports the copies. Each number of recommenders has a process of its
own, so that its memory is its own. Times are seconds of one core: the exporter uses one.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import pickle
import re
import statistics
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.page import keep, machine
from monitor.anomalies.causes import EXPOSURE_CAUSES, FEEDBACK_CAUSES
from monitor.anomalies.past import SeriesName
from monitor.anomalies.series import BandedSeries
from monitor.anomalies.specs import ANOMALY, DAILY, DEVIATION, DRIFT, EXPECTED
from monitor.core.results import Result, ResultKind, Status
from monitor.history.snapshot import RecommenderState, Series, Snapshot
from monitor.metrics.family import MetricSpec
from monitor.models.specs import CAUSE_LABEL
from monitor.service.daemon import Daemon
from monitor.service.prometheus.exporter import Exporter
from monitor.service.web.app import COMPRESSION
from monitor.settings.bands import SLICED, WITHOUT
from monitor.simulate.demo import prepare

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"
COUNTS = (1, 10, 30, 200)
DIMENSIONS = ("scene", "model")
RUNS = 5
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured for a number of recommenders.

    Attributes:
        text: bytes of a scrape.
        compressed: the same, as the server sends it.
        first: seconds of the first scrape after a start.
        again: seconds of a scrape after each recommender had a run, and every tenth a new window.
        kept: bytes that the exporter holds between two scrapes.
        most: bytes that it holds at most, while it scrapes.
    """

    recommenders: int
    bands: bool
    series: int
    left_out: int
    text: int
    compressed: int
    first: float
    again: float
    kept: int
    most: int


def main() -> None:
    """Measure, print the table, and write it into docs/sizing.md with `--keep`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", action="store_true", help="write the table into docs/sizing.md")
    asked = parser.parse_args()
    snapshot = judged()
    rows = [measure(snapshot, count, bands=bands) for bands in (False, True) for count in COUNTS]
    text = f"{machine()}\n\n{told(snapshot)}\n\n{table(rows)}"
    print(text)
    if asked.keep:
        keep("sizing", text, PAGE)


def judged() -> Snapshot:
    """The snapshot of a daemon that has judged the last minutes of the demo."""
    with tempfile.TemporaryDirectory(prefix="sizing-") as folder:
        now = datetime.now(UTC)
        path = prepare(folder, now, history=timedelta(minutes=4))
        config = path.read_text("utf-8")
        for was, becomes in (
            ("window: 10s", "window: 1m"),
            ("by: [scene]", f"by: [{', '.join(DIMENSIONS)}]"),
        ):
            assert was in config
            config = config.replace(was, becomes)
        path.write_text(config, "utf-8")
        daemon = Daemon(path, clock=lambda: now)
        try:
            daemon.turn("demo")
            return daemon.publisher.current()
        finally:
            daemon.close()


def fleet(snapshot: Snapshot, count: int, *, bands: bool = False) -> Snapshot:
    """So many recommenders like the first one, each with objects of its own."""
    (state,) = snapshot.recommenders
    if bands:
        state = replace(state, series=(*state.series, *_bands(state)))
    copies = [_named(state, f"recommender-{number:03}") for number in range(count)]
    counters = {
        (name, tuple((label, copy.name if label == "recommender" else text) for label, text in labels)): value
        for copy in copies
        for (name, labels), value in snapshot.counters.items()
    }
    return replace(snapshot, recommenders=tuple(copies), counters=counters)


def _named(state: RecommenderState, name: str) -> RecommenderState:
    series = (
        replace(one, recommender=name, result=replace(one.result, labels=dict(one.result.labels)))
        for one in state.series
    )
    return replace(state, name=name, series=tuple(series))


def _bands(state: RecommenderState) -> Iterator[Series]:
    """The results of bands, drift and causes, for every series that has a band after enough weeks."""
    for known in state.series:
        result = known.result
        labels = BandedSeries.named(SeriesName(result.metric, dict(result.labels))).labels
        is_slice = "dimension" in labels
        if result.kind is not ResultKind.METRIC or result.value is None or result.metric in WITHOUT:
            continue
        if is_slice and (result.metric not in SLICED or labels["dimension"] == "model"):
            continue
        value = result.value
        yield _of(known, EXPECTED, labels, 300, value=value, lower=value, upper=value)
        yield _of(known, DEVIATION, labels, 300, value=value)
        if not is_slice:
            yield _of(known, DRIFT, labels, 300, value=value)
            yield _of(known, DAILY, labels, 300, value=value)
    for cause in (*EXPOSURE_CAUSES, *FEEDBACK_CAUSES):
        yield _of(known, ANOMALY, {CAUSE_LABEL: cause.name}, 90, value=0.0)


def _of(
    known: Series,
    spec: MetricSpec,
    labels: dict[str, str],
    samples: int,
    *,
    value: float,
    lower: float | None = None,
    upper: float | None = None,
) -> Series:
    result = Result(
        kind=spec.kind,
        metric=spec.name,
        labels=labels,
        definition=spec.version,
        status=Status.OK,
        value=value,
        lower=lower,
        upper=upper,
        samples=samples,
    )
    return replace(known, check="bands", result=result, standing=Status.OK, past=())


def measure(snapshot: Snapshot, count: int, *, bands: bool) -> Row:
    """What a scrape of so many recommenders costs, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_measure, (pickle.dumps(snapshot), count, bands))


def _measure(pickled: bytes, count: int, bands: bool) -> Row:
    shown = [fleet(pickle.loads(pickled), count, bands=bands)]
    exporter = Exporter(
        lambda: shown[0], version="0.1.0", url="http://monitor.test", clock=lambda: shown[0].taken_at
    )
    gc.collect()
    before = _memory()
    first, body, compressed = _scrape(exporter)
    most = _memory(peak=True) - before
    gc.collect()
    kept = _memory() - before
    again = []
    for number in range(RUNS):
        shown[0] = _later(shown[0], number)
        again.append(_scrape(exporter)[0])
    values = exporter.values()
    return Row(
        recommenders=count,
        bands=bands,
        series=int(values["recsys_series"][()]),
        left_out=int(sum(values["recsys_series_dropped"].values())),
        text=body,
        compressed=compressed,
        first=first,
        again=statistics.median(again),
        kept=kept,
        most=most,
    )


def _scrape(exporter: Exporter) -> tuple[float, int, int]:
    """Seconds, bytes and compressed bytes of a scrape, compressed as the server does."""
    begun = time.process_time()
    body, _ = exporter.scrape()
    packer = zlib.compressobj(COMPRESSION, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    packed = len(packer.compress(body)) + len(packer.flush())
    return time.process_time() - begun, len(body), packed


def _later(snapshot: Snapshot, number: int) -> Snapshot:
    """Each recommender had a run, and every tenth a new window: more than happens between two scrapes."""
    later = timedelta(seconds=30)

    def moved(place: int, state: RecommenderState) -> RecommenderState:
        if place % 10 != number:
            series = tuple(
                replace(one) for one in state.series
            )  # as a snapshot is read: with the same results
        else:
            at = snapshot.taken_at
            series = tuple(replace(one, result=replace(one.result), evaluated_at=at) for one in state.series)
        return replace(state, last_run=snapshot.taken_at + later, series=series)

    states = tuple(moved(place, state) for place, state in enumerate(snapshot.recommenders))
    return replace(snapshot, taken_at=snapshot.taken_at + later, recommenders=states)


def _memory(*, peak: bool = False) -> int:
    """The resident memory of this process in bytes, now or at its highest since the last call. Linux only."""
    status = Path("/proc/self/status").read_text("utf-8")
    (found,) = re.findall(rf"^Vm{'HWM' if peak else 'RSS'}:\s+(\d+) kB", status, re.MULTILINE)
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # the highest begins again
    return int(found) * 1024


def told(snapshot: Snapshot) -> str:
    """What each recommender of the table is."""
    (state,) = snapshot.recommenders
    rules = {one.result.labels["rule"] for one in state.series if one.result.kind is ResultKind.RULE}
    slices = {
        (labels["dimension"], labels["value"])
        for one in state.series
        if "dimension" in (labels := one.result.labels)
    }
    objectives = state.settings.objectives if state.settings else ()
    return (
        f"Each recommender has {len(state.logs)} logs, {len(rules)} rules, {len(objectives)} objective, a "
        f"health score, and slices by {' and '.join(DIMENSIONS)} with {len(slices)} values together. It "
        f"measures {len(state.series):,} numbers a window."
    )


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of Markdown."""
    columns = (
        "recommenders", "bands", "series", "left out", "text", "compressed", "first scrape", "later scrapes",
        "memory kept", "at most",
    )  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for one in rows:
        cells = (
            f"{one.recommenders}",
            "yes" if one.bands else "no",
            f"{one.series:,}",
            f"{one.left_out:,}",
            f"{one.text / 1e6:.2f} MB",
            f"{one.compressed / 1e6:.2f} MB",
            f"{one.first:.2f} s",
            f"{one.again:.2f} s",
            f"{one.kept / _MB:.0f} MB",
            f"{one.most / _MB:.0f} MB",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
