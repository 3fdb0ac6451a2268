"""Commands as processes of their own, which take the slow half of their work from an earlier command.

To judge takes seconds, and to print what was found in another format does not. So a command here keeps what
it has judged in its folder. A later one with the same config and options reads that, and only prints.
"""

from __future__ import annotations

import hashlib
import importlib
import pickle
import shutil
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.cli.conftest import Ran, run_monitor

_CODE = """\
import pathlib, runpy, sys
from tests.cli.kept import keep
keep(sys.argv[1], pathlib.Path("kept"))
runpy.run_module("monitor", run_name="__main__", alter_sys=True)
"""
# The module of a command, and its function that does all but the printing.
_WORK = {
    "history": ("look_back", "looked_back"),
    "platform": ("platform", "watched"),
    "survey": ("survey", "survey"),
}


def run_keeping(*arguments: object, cwd: Path, **environment: str) -> Ran:
    """Run a command; the logs in its folder must stay as they are from command to command."""
    return run_monitor(*arguments, cwd=cwd, code=_CODE, **environment)


def keep(command: str, folder: Path) -> None:
    """Make this process keep what it judges. `compare` and `gate` keep each side, and the others all."""
    folder.mkdir(exist_ok=True)
    if command not in _WORK:
        _keep_sides(importlib.import_module(f"monitor.cli.{command}"), folder)
        return
    name, function = _WORK[command]
    module = importlib.import_module(f"monitor.cli.{name}")
    work = getattr(module, function)

    def kept(config: Path, *asked: Any) -> Any:
        def make():
            found = work(config, *asked)
            return list(found) if isinstance(found, Iterator) else found

        return _once(folder / _name((config.read_text(), asked)), make)

    setattr(module, function, kept)


def _keep_sides(module: Any, folder: Path) -> None:
    judge_side, judge_split = module.judge_side, getattr(module, "judge_split", None)

    def side(config, checked, side, times, *, slices=False, metrics: Collection[str] = (), lists=None):
        asked = (_of(checked), side, times, slices, sorted(metrics), lists and lists.event)
        place = folder / _name(asked)
        rows = place.with_suffix(".parquet")

        def judge():
            judged = judge_side(config, checked, side, times, slices=slices, metrics=metrics, lists=lists)
            if judged.lists is not None:
                shutil.copy(judged.lists, rows)
            return judged

        judged = _once(place, judge)
        if judged.lists is None:
            return judged
        return replace(judged, lists=Path(shutil.copy(rows, lists.path)))

    def split(config, checked, experiment, times):
        asked = (_of(checked), experiment.model_dump_json(), times)
        return _once(folder / _name(asked), lambda: judge_split(config, checked, experiment, times))

    module.judge_side = side
    if judge_split is not None:
        module.judge_split = split


def _of(checked) -> tuple[str, ...]:
    return checked.settings.model_dump_json(), *(rule.definition for rule in checked.rules)


def _name(asked: object) -> str:
    return hashlib.sha256(repr(asked).encode()).hexdigest()


def _once(place: Path, make: Callable[[], Any]) -> Any:
    if not place.exists():
        place.write_bytes(pickle.dumps(make()))
    return pickle.loads(place.read_bytes())
