"""The user's own scoring function, named in the config as module:function."""

from __future__ import annotations

import importlib
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from monitor.core.redaction import redact
from monitor.models.diagnosis.diagnose import Scorer

_PYTHONS_OWN: Final = ("stdlib", "platstdlib", "scripts")
_PACKAGES: Final = ("site-packages", "dist-packages")


class ScorerError(Exception):
    """The scoring function cannot be loaded, or does not score."""


def load_scorer(name: str) -> Scorer:
    """Load the scoring function for the diagnosis.

    The module is searched as by Python's `import`: in PYTHONPATH, in the working directory if the command is
    `python -m monitor`, and in the installed packages.

    >>> load_scorer("sys:no_such_function")
    Traceback (most recent call last):
    ...
    monitor.models.scorer.ScorerError: sys has no function 'no_such_function'

    Raises ScorerError if it cannot be loaded. Calling it raises one if it does not return a number for each
    row.
    """
    module, _, function = name.partition(":")
    try:
        imported = importlib.import_module(module)
    except (Exception, SystemExit) as exc:  # whatever the user's module does while it is imported
        absent = exc.name if isinstance(exc, ModuleNotFoundError) else None
        if absent is not None and f"{module}.".startswith(f"{absent}."):
            raise ScorerError(f"there is no module {absent}; {_looked_up()}") from exc
        raise ScorerError(redact(f"{module} cannot be imported: {type(exc).__name__}: {exc}")) from exc
    if not hasattr(imported, function):
        raise ScorerError(f"{module} has no function {function!r}{_file_of(imported)}")
    found = getattr(imported, function)
    if not callable(found):
        raise ScorerError(f"{function!r} in {module} is a {type(found).__name__}, not a function")

    def score(features: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        frame = pd.DataFrame(dict(features))
        try:
            scores = np.asarray(found(frame), np.float64)
        except Exception as exc:  # the user's own code
            raise ScorerError(redact(f"{name} failed: {type(exc).__name__}: {exc}")) from exc
        if scores.shape != (len(frame),):
            raise ScorerError(f"{name} gave {scores.shape} scores for {len(frame)} rows")
        if unknown := int(np.isnan(scores).sum()):
            raise ScorerError(f"{name} gave no number for {unknown:,} of {len(frame):,} rows")
        return scores

    return score


def _looked_up() -> str:
    """Where a module is searched, without Python's own folders, and what to do."""
    own = {Path(path).resolve() for name, path in sysconfig.get_paths().items() if name in _PYTHONS_OWN}
    folders = [one for one in dict.fromkeys(Path(one).resolve() for one in sys.path) if one.is_dir()]
    shown = [str(one) for one in folders if one.name not in _PACKAGES and not own & {one, *one.parents}]
    where = ", ".join([*shown, f"the packages of {sys.prefix}"])
    return f"it was looked up in {where}; put the folder that holds it into PYTHONPATH"


def _file_of(module: object) -> str:
    file = getattr(module, "__file__", None)
    return f" ({os.path.realpath(file)})" if isinstance(file, str) else ""
