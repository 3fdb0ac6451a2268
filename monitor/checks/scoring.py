"""The user's own scoring function, named in the config as module:function."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from monitor.diagnosis.diagnose import Scorer


class ScorerError(Exception):
    """The scoring function cannot be loaded, or does not score."""


def load_scorer(name: str) -> Scorer:
    """The function of this name, as the diagnosis calls it.

    >>> load_scorer("math:no_such_function")
    Traceback (most recent call last):
    ...
    monitor.checks.scoring.ScorerError: math has no function 'no_such_function'

    Raises ScorerError where it cannot be loaded; what it gives raises one where it is not a number a row.
    """
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function, None)
    except Exception as exc:  # whatever the user's module does while it is imported
        raise ScorerError(f"{module} cannot be imported: {type(exc).__name__}: {exc}") from exc
    if not callable(found):
        raise ScorerError(f"{module} has no function {function!r}")

    def score(features: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        frame = pd.DataFrame(dict(features))
        try:
            scores = np.asarray(found(frame), np.float64)
        except Exception as exc:  # the user's own code
            raise ScorerError(f"{name} failed: {type(exc).__name__}: {exc}") from exc
        if scores.shape != (len(frame),):
            raise ScorerError(f"{name} gave {scores.shape} scores for {len(frame)} rows")
        if unknown := int(np.isnan(scores).sum()):
            raise ScorerError(f"{name} gave no number for {unknown} of {len(frame)} rows")
        return scores

    return score
