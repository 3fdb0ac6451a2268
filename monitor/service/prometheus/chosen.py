"""Which families of metrics a scrape holds: those that are used, and those that `server.export` names.

Families of states, rules, the monitor and the process are always exported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from monitor.catalogue import ALL_SPECS, optional_families
from monitor.core.results import ResultKind
from monitor.core.shipped import shipped
from monitor.metrics.exported import metric_family_name

# Roll-ups are exported in any case. A panel of them asks for no slices.
_NAME: Final = re.compile(r'\brecsys_[a-z0-9_]+\b(?!\{dimension=\\?"rollup)')


def chosen_families(patterns: Iterable[str] = ()) -> frozenset[str]:
    """The families of metrics that are exported, given the patterns of `server.export`.

    >>> families = chosen_families(["recsys_slice_coverage_*"])
    >>> [name in families for name in ("recsys_gini", "recsys_slice_gini", "recsys_slice_coverage_samples")]
    [True, False, True]
    """
    names = optional_families().keys()
    named = {name for name in names for pattern in patterns if fnmatchcase(name, pattern)}
    return frozenset(used_families() & names | named)


@cache
def used_families() -> frozenset[str]:
    """The families that alerts read, and those that dashboards draw, without the `spare_families`."""
    return _named_in("alerts") | (_named_in("dashboards") - _bounds())


@cache
def spare_families() -> frozenset[str]:
    """The families that dashboards draw, but that are exported only while there is room: bounds of intervals.

    They stand beside nearly every metric of a window, and would be a third of all series of a large fleet.
    Those of bands, models, experiments and the platform are not among them: they are few, and the verdict
    is about them.
    """
    return _named_in("dashboards") & _bounds() - _named_in("alerts")


def _named_in(kind: str) -> frozenset[str]:
    """The families that the shipped files of this kind name."""
    files = (path for path in shipped(kind).iterdir() if path.is_file())
    return frozenset(name for path in files for name in _NAME.findall(path.read_text(encoding="utf-8")))


def _bounds() -> frozenset[str]:
    return frozenset(
        metric_family_name(spec, part, sliced=sliced)
        for spec in ALL_SPECS.values()
        if spec.kind is ResultKind.METRIC
        for part in ("lower", "upper")
        for sliced in (False, True)
    )
