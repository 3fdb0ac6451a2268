"""Evaluates the alert rules on recorded series: blocks from OpenMetrics, a real Prometheus, range queries."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.scoreboard import openmetrics
from benchmarks.scoreboard.alerts import Alert, Episode, firing, standing
from benchmarks.scoreboard.messages import Labels
from benchmarks.scoreboard.openmetrics import Target
from benchmarks.scoreboard.selectors import lookback, selectors
from benchmarks.scoreboard.servers import ask, program, serving

STEP: Final = 60
_POINTS: Final = 10_000  # Prometheus answers with 11,000 a series at most
# A series that is gone is marked by a scrape; a sample a minute and a look at that minute say the same.
_LOOKBACK: Final = "59s"
_BLOCK: Final = "486h"  # promtool reads its input once more for every block
_Present = dict[tuple[str, int, Labels], list[int]]  # target, number of the alert, labels -> times


def episodes(targets: Sequence[Target], alerts: Sequence[Alert]) -> dict[str, list[Episode]]:
    """Name of each target -> every alert of it that fired, in the order of time.

    An alert is its target's by the label `recommender` or `instance`; one with neither (the watchdog, a
    monitor that is not there at all) says nothing of a single target and is left out.
    """
    known = selectors(alert.expr for alert in alerts)
    by_name = {target.name: target for target in targets}
    with tempfile.TemporaryDirectory(prefix="scoreboard-") as scratch:
        folder = Path(scratch)
        text = folder / "samples.om"
        openmetrics.write(text, targets, lambda name, labels: lookback(known, name, labels))
        make_blocks(text, folder / "data")
        text.unlink()
        with running(folder) as url:
            present = {
                (name, number, labels): moments
                for number, alert in enumerate(alerts)
                for name, labels, moments in _results(url, alert.expr, targets)
            }
        asking = [key for key in present if _asks_of(alerts[key[1]]) == alerts[key[1]].name]
        if asking:
            fires = [
                (
                    by_name[name],
                    {"alertname": alerts[number].name, **dict(labels)},
                    [(by_name[name].first, by_name[name].last)],
                )
                for name, number, labels in asking
            ]
            openmetrics.write_firing(text, fires)
            make_blocks(text, folder / "data")
            with running(folder) as url:
                for number in dict.fromkeys(number for _, number, _ in asking):
                    alert = alerts[number]
                    for name, labels, held in _results(url, alert.expr, targets):
                        if moments := present.get((name, number, labels)):
                            present[name, number, labels] = standing(
                                moments, held, step=STEP, wait=alert.wait, keep=alert.keep
                            )
        present |= _asking_of_others(folder, by_name, alerts, present)
    found: dict[str, list[Episode]] = {name: [] for name in by_name}
    for (name, number, labels), moments in present.items():
        found[name] += _of(by_name[name], alerts[number], dict(labels), moments)
    return {name: sorted(mine, key=lambda one: (one.since, one.name)) for name, mine in found.items()}


def _asking_of_others(
    folder: Path, targets: Mapping[str, Target], alerts: Sequence[Alert], present: _Present
) -> _Present:
    """The results of the alerts that read the state of others, once these others are known."""
    asking = {n: asked for n, one in enumerate(alerts) if (asked := _asks_of(one)) not in ("", one.name)}
    asked_for = set(asking.values())
    for alert in alerts:
        if alert.name in asked_for and _asks_of(alert):
            raise ValueError(f"{alert.name} reads the state of an alert, and another alert reads its own")
    fires = []
    for (name, number, labels), moments in present.items():
        if alerts[number].name not in asked_for:
            continue
        target = targets[name]
        for one in _of(target, alerts[number], dict(labels), moments):
            until = target.last + 1 if one.until is None else one.until // 60
            fires.append((target, one.labels, [(one.since // 60, until - 1)]))
    if not fires:
        return {}
    openmetrics.write_firing(folder / "samples.om", fires)
    make_blocks(folder / "samples.om", folder / "data")
    with running(folder) as url:
        return {
            (name, number, labels): moments
            for number in asking
            for name, labels, moments in _results(url, alerts[number].expr, list(targets.values()))
        }


def _asks_of(alert: Alert) -> str:
    """The alert whose state the expression reads, empty if it reads none.

    Raises ValueError if it reads several, or another state than firing.
    """
    asked = selectors([alert.expr]).get("ALERTS", [])
    names = {
        value for one in asked for label, kind, value in one.matchers if (label, kind) == ("alertname", "=")
    }
    if not asked:
        return ""
    (name,) = names if len(names) == 1 else ("",)
    if not all(one.matches({"alertname": name, "alertstate": "firing"}) for one in asked):
        raise ValueError(f"{alert.name} asks more than whether one other alert fires; that is not known here")
    return name


def make_blocks(text: Path, folder: Path) -> None:
    """Make blocks of OpenMetrics text. Raises RuntimeError with what promtool says."""
    command = [program("promtool"), "tsdb", "create-blocks-from", f"--max-block-duration={_BLOCK}"]
    command += ["openmetrics", str(text), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"promtool: {done.stderr[-1000:]}")


def running(folder: Path) -> Any:
    """The URL of a Prometheus that serves the blocks in `data`; it scrapes nothing and deletes nothing."""
    (folder / "prometheus.yml").write_text("global: {}\n", "utf-8")

    def command(address: str) -> list[str]:
        return [
            program("prometheus"), f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}", "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={address}", f"--query.lookback-delta={_LOOKBACK}",
            "--query.max-samples=1000000000", "--query.timeout=10m", "--log.level=warn",
        ]  # fmt: skip

    return serving(command, folder, "prometheus")


def _results(url: str, expression: str, targets: Sequence[Target]) -> Iterator[tuple[str, Labels, list[int]]]:
    """Each series of the result: its target, its labels, and the times at which it has a value."""
    names = {target.name for target in targets}
    first, last = min(one.first for one in targets) * 60, max(one.last for one in targets) * 60
    found: dict[Labels, list[int]] = {}
    for begin in range(first, last + 1, _POINTS * STEP):
        end = min(begin + (_POINTS - 1) * STEP, last)
        form = {"query": expression, "start": begin, "end": end, "step": STEP}
        for one in ask(f"{url}/api/v1/query_range", form)["data"]["result"]:
            labels = {name: value for name, value in one["metric"].items() if name != "__name__"}
            moments = found.setdefault(tuple(sorted(labels.items())), [])
            moments += [int(moment) for moment, _ in one["values"]]
    for pairs, moments in found.items():
        labels = dict(pairs)
        name = labels.get("recommender", labels.get("instance", ""))
        if name in names:
            yield name, pairs, moments


def _of(target: Target, alert: Alert, labels: dict[str, str], present: Sequence[int]) -> Iterator[Episode]:
    """The episodes of one alert of a target, within the recorded time."""
    first, last = target.first * 60, target.last * 60
    within = [moment for moment in present if first <= moment <= last]
    all_labels = {"alertname": alert.name, **labels, **alert.labels}
    for since, until in firing(within, step=STEP, last=last, wait=alert.wait, keep=alert.keep):
        yield Episode(all_labels, since, until)
