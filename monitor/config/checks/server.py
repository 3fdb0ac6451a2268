"""Does the server export families that exist?"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from monitor.catalogue import optional_families
from monitor.config.problems import Problem, nearest
from monitor.core.text import VALUE_LENGTH, cut
from monitor.settings.server import ServerSettings


def check_server(settings: ServerSettings) -> Iterator[Problem]:
    """The patterns of `export` that match no family of metrics."""
    names = list(optional_families())
    for number, pattern in enumerate(settings.export):
        if any(fnmatchcase(name, pattern) for name in names):
            continue
        close = nearest(pattern, names, cutoff=0.8)
        meant = f"did you mean {close}?" if close else "docs/gauges.md lists them"
        yield Problem(
            f"server.export[{number}]",
            f"{cut(pattern, VALUE_LENGTH)!r} matches no family of metrics; {meant}",
        )
