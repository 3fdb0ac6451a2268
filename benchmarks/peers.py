"""The monitor beside RecTools and Evidently on the metrics that they offer too: `make bench-peers`.

Installs the peers into an environment of their own, writes the files that all read, runs each tool in a
process of its own and prints one table. Seconds count from reading the files to the values, imports not
included; of several repetitions the fastest counts. Ratios are of this run only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import page, peer_data
from benchmarks.environments import install

HERE = Path(__file__).parent
WORK = HERE / "work" / "peers"
REQUIREMENTS = HERE / "peers-requirements.txt"
OWN, RECTOOLS, EVIDENTLY = "recsys-monitor", "RecTools", "Evidently"
MODULES = {OWN: "peer_own", RECTOOLS: "peer_rectools", EVIDENTLY: "peer_evidently"}
BOUNDS = {RECTOOLS: 5, EVIDENTLY: 20}

RANKING = ("coverage", "NDCG@10", "MAP@10", "novelty")
ILD = "ILD by category"
TOGETHER: dict[str, tuple[str, ...]] = {
    RECTOOLS: (*RANKING, "AUC by user", ILD),
    EVIDENTLY: (*RANKING, "personalization", "AUC", ILD),
}
SINGLE = (*RANKING, "personalization", "AUC", "AUC by user", ILD)
_PAIRS = "mean over a list's pairs of 1 where the categories differ"
_RATIO = "mean over users of DCG / DCG of the best list; "
DEFINITIONS = {
    "coverage": {
        OWN: "items shown / items of the catalog",
        RECTOOLS: "items shown / items of the catalog",
        EVIDENTLY: "items shown that the history holds / items of the history",
    },
    "NDCG@10": {
        OWN: f"{_RATIO}an item is worth 2^relevance - 1",
        RECTOOLS: f"{_RATIO}a relevant item is worth 1",
        EVIDENTLY: f"{_RATIO}an item is worth its relevance, and the best list has the rows of the list only",
    },
    "MAP@10": {
        OWN: "mean over users of the sum of precisions at hits / the smaller of 10 and the relevant items",
        RECTOOLS: "the same, / the relevant items",
        EVIDENTLY: "the same, / the relevant items of the list",
    },
    "novelty": {
        OWN: "self-information, mean over exposures; an item that is new takes one user",
        RECTOOLS: "the same, mean over users of the means of their lists",
        EVIDENTLY: "the same, mean over users of the means of their lists; items that are new are left out",
    },
    "personalization": {
        OWN: "1 - mean cosine of two users' items",
        EVIDENTLY: "1 - mean of the items that two users have in common / 10",
    },
    "AUC": {
        OWN: "over all exposures, ties at their average rank",
        EVIDENTLY: "over all rows, as scikit-learn has it",
    },
    "AUC by user": {
        OWN: "mean over users with both labels of the AUC of their own list",
        RECTOOLS: "partial AUC: mean over users with a click; each click counts "
        "(10 - negatives above it) / 10, also where the list holds fewer than 10 negatives",
    },
    ILD: {
        OWN: _PAIRS,
        RECTOOLS: _PAIRS,
        EVIDENTLY: "sum over a list's pairs of 1 where the categories differ / length of the list",
    },
}
LACKING = {
    "personalization": {RECTOOLS: "no such metric"},
    "AUC": {RECTOOLS: "no AUC over all rows"},
    "AUC by user": {EVIDENTLY: "no AUC by user"},
}
_SAME = 1e-9

Measurements = dict[str, dict[str, dict[str, Any]]]


def main() -> int:
    """Install, write, run, print; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="put the table into docs/benchmarks.md")
    chosen = parser.parse_args()
    python = install(REQUIREMENTS, WORK / "env")
    peer_data.write(WORK / "data")
    found = {tool: ask(tool, sys.executable if tool == OWN else python, chosen.repeat) for tool in MODULES}
    text = report(found)
    print(text)
    if chosen.keep:
        page.keep("bench-peers", f"{page.machine()}\n\n{text}")
    return int(any(ratio(found, peer, peer) < bound for peer, bound in BOUNDS.items()))


def sets_of(tool: str) -> dict[str, tuple[str, ...]]:
    """What is timed of a tool: each metric alone, and all that it is compared on together."""
    sets: dict[str, tuple[str, ...]] = {
        name: (name,) for name in SINGLE if tool == OWN or name in TOGETHER[tool]
    }
    for peer in BOUNDS if tool == OWN else (tool,):
        sets |= {peer: TOGETHER[peer], _without_ild(peer): TOGETHER[peer][:-1]}
    return sets


def _without_ild(peer: str) -> str:
    return f"{peer} without ILD"


def ask(tool: str, python: str, repeat: int) -> dict[str, dict[str, Any]]:
    """Run a tool in a process of its own."""
    asked = {"folder": str(WORK / "data"), "repeat": repeat, "sets": sets_of(tool)}
    done = subprocess.run(
        [python, "-W", "ignore", "-m", f"benchmarks.{MODULES[tool]}"],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=HERE.parent,
    )
    (WORK / f"{MODULES[tool]}.json").write_text(done.stdout, "utf-8")
    answer: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answer


def ratio(found: Measurements, peer: str, name: str, what: str = "seconds") -> float:
    """How many times as long the peer took for a set of metrics."""
    return float(found[peer][name][what]) / float(found[OWN][name][what])


def report(found: Measurements) -> str:
    """The tables of one run."""
    return "\n".join(
        [
            f"{peer_data.USERS:,} lists of {peer_data.LIST_LENGTH}, {peer_data.ITEMS:,} items, a history of "
            f"up to {peer_data.EARLIER:,} pairs of user and item; each metric alone, from the files to its "
            "value:\n",
            *_singles(found),
            "\nWhere values differ, or a peer has none:\n",
            *_definitions(found),
            "\nAll metrics that both have, in one run of each tool; most of the peers' time is in ILD, so "
            "that the rest is given apart:\n",
            *_together(found),
        ]
    )


def _singles(found: Measurements) -> Iterator[str]:
    tools = list(MODULES)
    yield f"| metric | {' | '.join(tools)} | {' | '.join(f'{t}, s' for t in tools)} | ratios |"
    yield f"|---|{'--:|' * (2 * len(tools))}---|"
    for name in SINGLE:
        each = [found[tool].get(name) for tool in tools]
        values = ["-" if one is None else f"{one['values'][name]:.6f}" for one in each]
        seconds = ["-" if one is None else f"{one['seconds']:.3f}" for one in each]
        ratios = [f"{ratio(found, tool, name):.1f} x {tool}" for tool in BOUNDS if name in found[tool]]
        yield f"| {name} | {' | '.join(values)} | {' | '.join(seconds)} | {', '.join(ratios)} |"


def _definitions(found: Measurements) -> Iterator[str]:
    """Which definition each tool uses, of the metrics whose values are not all the same."""
    for name in SINGLE:
        values = [found[tool][name]["values"][name] for tool in MODULES if name in found[tool]]
        if max(values) - min(values) > _SAME * abs(values[0]):
            told = "; ".join(f"{tool}: {text}" for tool, text in DEFINITIONS[name].items())
            yield f"- {name}: {told}."
        if name in LACKING:
            yield f"- {name}: {'; '.join(f'{tool} has {text}' for tool, text in LACKING[name].items())}."


def _together(found: Measurements) -> Iterator[str]:
    yield "| against | metrics | seconds | peer's | ratio | at least | processor's seconds | peer's | ratio |"
    yield f"|---|---|{'--:|' * 7}"
    for peer, bound in BOUNDS.items():
        for name, least in ((peer, str(bound)), (_without_ild(peer), "")):
            figures = []
            for what in ("seconds", "cpu"):
                figures += [f"{found[tool][name][what]:.2f}" for tool in (OWN, peer)]
                figures += [f"{ratio(found, peer, name, what):.1f}"] + ([least] if what == "seconds" else [])
            yield f"| {peer} | {', '.join(sets_of(peer)[name])} | {' | '.join(figures)} |"


if __name__ == "__main__":
    sys.exit(main())
