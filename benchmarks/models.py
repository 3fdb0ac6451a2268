"""What judging a model costs: `python -m benchmarks.models`; 1 where a bound is broken.

Two parts, each in a process of its own on files that are written for it: the exact AUC with DeLong's interval
of ten million samples, beside numpy's argsort of the same scores; and two hundred features compared online
against offline on a million paired rows, beside the plain read of both files. A ratio is of two times taken
one after the other; of three the middle one counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from benchmarks import page
from benchmarks.window import PlainRead
from monitor.engines.duckdb import Engine
from monitor.metrics.scores.auc import auc_sums, rank_sums
from monitor.models.feature_skew import measure_skew
from monitor.statistics.auc import delong_interval

ROUNDS = 3
LIMITS = {"auc": 3.0, "features": 30.0}
MEMORY_LIMIT_MIB = 2048
KEYS = ("request_id", "item_id")
TITLES = {
    "auc": ("AUC with DeLong's interval", "numpy's argsort of the scores"),
    "features": ("features online against offline", "plain read of both files"),
}
# In the offline file rows are in another order: the factor has no divisor in common with a power of ten.
_ORDER = {"online": "n", "offline": "n * 7919 % {rows}"}
_UNIFORM = "hash({seed}) / 18446744073709551616.0"


def write_samples(path: Path, rows: int, positives: float) -> None:
    """Scores that tell some of the labels, hardly a tie among them."""
    score = f"0.8 * {_UNIFORM.format(seed='n')} + 0.2 * label * {_UNIFORM.format(seed='n + 0.5')}"
    label = f"CAST({_UNIFORM.format(seed='-n - 1')} < {positives} AS BIGINT)"
    numbers = f"SELECT n, {label} AS label FROM range({rows}) AS numbers(n)"
    duckdb.execute(f"COPY (SELECT {score} AS score, label FROM ({numbers})) TO '{path}' (FORMAT parquet)")


def feature(number: int, side: str) -> str:
    """A feature as SQL: of twenty one is text and one whole; a twentieth of the values is missing.

    Of ten features one is wrong online in a hundredth of the rows, where it has a default.
    """
    seed = f"i * 1009 + {number}"
    value = _UNIFORM.format(seed=seed)
    default = "0.0"
    if number % 20 == 18:
        value, default = f"'v' || hash({seed}) % 50", "'none'"
    elif number % 20 == 19:
        value, default = f"CAST(hash({seed}) % 100 AS BIGINT)", "0"
    null = f"WHEN hash({seed} + 0.5) % 20 = 0 THEN NULL "
    wrong = f"WHEN hash(i) % 100 = 7 THEN {default} " if side == "online" and number % 10 == 9 else ""
    return f"CASE {wrong}{null}ELSE {value} END AS f{number}"


def write_features(path: Path, rows: int, features: int, side: str) -> None:
    """One side: ten items a request, and the features."""
    order = _ORDER[side].format(rows=rows)
    columns = ", ".join(feature(number, side) for number in range(features))
    duckdb.execute(
        f"COPY (SELECT 'r' || i // 10 AS request_id, 'i' || i % 10 AS item_id, {columns} "
        f"FROM (SELECT {order} AS i FROM range({rows}) AS numbers(n))) TO '{path}' (FORMAT parquet)"
    )


def engine(threads: int) -> Engine:
    return Engine(duckdb.connect(config={"threads": threads}))


def timed_auc(path: Path, threads: int) -> dict[str, Any]:
    """Seconds of the AUC and of argsort, round by round."""
    own = engine(threads)
    table = own.reader("samples", "read_parquet", [str(path)])
    scores = duckdb.execute(f"SELECT score FROM '{path}'").fetchnumpy()["score"]
    found: dict[str, Any] = {"seconds": [], "beside": []}
    auc = ""
    for _ in range(ROUNDS):
        began = time.perf_counter()
        (row,) = rank_sums(table).to_pyarrow().to_pylist()
        sums = auc_sums(row, len(scores))
        if sums is None:
            raise ValueError("the samples have one class only")
        interval = delong_interval(sums)
        auc = f"AUC {sums.auc:.6f}, interval {interval}"
        found["seconds"].append(time.perf_counter() - began)
        began = time.perf_counter()
        scores.argsort()
        found["beside"].append(time.perf_counter() - began)
    return found | {"rows": len(scores), "said": auc}


def timed_features(online: Path, offline: Path, threads: int) -> dict[str, Any]:
    """Seconds of the comparison and of the plain read of both files, round by round."""
    own = engine(threads)
    served, rebuilt = (own.reader(path.stem, "read_parquet", [str(path)]) for path in (online, offline))
    features = [name for name in served.columns if name not in KEYS]
    found: dict[str, Any] = {"seconds": [], "beside": []}
    for _ in range(ROUNDS):
        began = time.perf_counter()
        skew = measure_skew(served, rebuilt, features, KEYS)
        found["seconds"].append(time.perf_counter() - began)
        reads = [PlainRead(path, threads) for path in (online, offline)]
        for read in reads:
            read.again(1)
        found["beside"].append(sum(read.seconds for read in reads))
    wrong = sum(one.wrong > 0 for one in skew.features)
    said = f"{skew.pairing.pairs:,} pairs, {wrong} of {len(features)} features wrong somewhere"
    return found | {"rows": skew.pairing.pairs, "said": said}


def in_a_process(*arguments: str) -> dict[str, Any]:
    """What a part prints, measured where nothing else was in memory before."""
    command = [sys.executable, "-m", "benchmarks.models", *arguments]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return found


def ratio(found: dict[str, Any]) -> float:
    """The middle one of the rounds' ratios."""
    return median(float(own / beside) for own, beside in zip(found["seconds"], found["beside"], strict=True))


def kept(parts: dict[str, dict[str, Any]]) -> bool:
    """Whether every part is within its bound of time and of memory."""
    return all(
        ratio(found) <= LIMITS[name] and found["peak_mib"] <= MEMORY_LIMIT_MIB
        for name, found in parts.items()
    )


def report(parts: dict[str, dict[str, Any]]) -> str:
    """The table of one run."""
    lines = [
        "| part | rows | seconds | beside it | seconds | ratio | at most | peak MiB | at most |",
        "|------|-----:|--------:|-----------|--------:|------:|--------:|---------:|--------:|",
    ]
    for name, found in parts.items():
        own, beside = TITLES[name]
        lines.append(
            f"| {own} | {found['rows']:,} | {median(found['seconds']):.2f} | {beside} "
            f"| {median(found['beside']):.2f} | {ratio(found):.1f} | {LIMITS[name]:g} "
            f"| {found['peak_mib']:,.0f} | {MEMORY_LIMIT_MIB:,} |"
        )
    return "\n".join([*lines, "", *(f"{TITLES[name][0]}: {found['said']}" for name, found in parts.items())])


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("--samples", type=int, default=10_000_000)
    found.add_argument("--positives", type=float, default=0.1, help="share of the samples with label 1")
    found.add_argument("--pairs", type=int, default=1_000_000)
    found.add_argument("--features", type=int, default=200)
    found.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    found.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    found.add_argument("--auc", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    found.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help=argparse.SUPPRESS)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write the files, measure each part in a fresh process, print the table."""
    chosen = parser().parse_args(arguments)
    if chosen.auc or chosen.compare:
        found = (
            timed_auc(chosen.auc, chosen.threads)
            if chosen.auc
            else timed_features(chosen.compare[0], chosen.compare[1], chosen.threads)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found | {"peak_mib": peak}))
        return 0
    threads = ["--threads", str(chosen.threads)]
    with TemporaryDirectory() as name:
        folder = Path(name)
        samples = folder / "samples.parquet"
        write_samples(samples, chosen.samples, chosen.positives)
        parts = {"auc": in_a_process("--auc", str(samples), *threads)}
        sides = [folder / "online.parquet", folder / "offline.parquet"]
        for side in sides:
            write_features(side, chosen.pairs, chosen.features, side.stem)
        parts["features"] = in_a_process("--compare", *map(str, sides), *threads)
    text = report(parts)
    print(text)
    if chosen.keep:
        page.keep("bench-models", f"{page.machine()}\n\n{text}")
    return int(not kept(parts))


if __name__ == "__main__":
    sys.exit(main())
