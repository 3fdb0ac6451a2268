"""The runbooks that come with the monitor, and the links to runbooks that are safe."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote, urlsplit

from monitor.core.shipped import shipped

FOLDER: Final = "docs/runbooks"  # in the repository, and in the paths that rules and alerts name
INDEX: Final = "README"
_ENDING: Final = ".md"


@cache
def runbook_names() -> frozenset[str]:
    """The names of all runbooks, which are also their addresses below `runbooks/`.

    >>> {"RecsysAnomaly", "causes/lists_empty", "rules/blacklist"} <= runbook_names()
    True
    """
    folder = shipped("runbooks")
    return frozenset(
        path.relative_to(folder).as_posix().removesuffix(_ENDING) for path in folder.rglob(f"*{_ENDING}")
    )


def runbook_text(name: str) -> str | None:
    """The Markdown of a runbook, or None if there is no such runbook.

    >>> runbook_text("../../README") is None
    True
    """
    if name not in runbook_names():
        return None
    return (shipped("runbooks") / f"{name}{_ENDING}").read_text(encoding="utf-8")


def own_address(name: str) -> str:
    """The address of a runbook of the monitor's own, relative to the root of the site."""
    return f"runbooks/{'' if name == INDEX else quote(name)}"


def runbook_address(runbook: str, docs_url: str = "") -> str:
    """The runbook as a link: absolute, or relative to the root of the site.

    An http(s) address stays as it is. A path of the repository is below `docs_url` if the team has set it.
    Otherwise the monitor serves the runbooks that come with it. Empty for anything else, such as a path that
    leaves the repository.

    >>> runbook_address("docs/runbooks/a b.md#now", "https://git.test/main")
    'https://git.test/main/docs/runbooks/a%20b.md#now'
    >>> runbook_address("docs/runbooks/rules/blacklist.md#what-to-do")
    'runbooks/rules/blacklist#what-to-do'
    >>> runbook_address("javascript:alert(1)", "https://git.test/main"), runbook_address("docs/bands.md")
    ('', '')
    """
    try:
        parts = urlsplit(runbook)
    except ValueError:
        return ""
    if parts.scheme in ("http", "https"):
        return runbook
    path = PurePosixPath(parts.path)
    leads_out = bool(parts.scheme or parts.netloc) or path.is_absolute() or ".." in path.parts
    if not parts.path or leads_out:
        return ""
    fragment = f"#{quote(parts.fragment)}" if parts.fragment else ""
    if docs_url:
        return f"{docs_url}/{quote(parts.path)}{fragment}"
    name = parts.path.removeprefix(f"{FOLDER}/").removesuffix(_ENDING)
    is_own = parts.path == f"{FOLDER}/{name}{_ENDING}" and name in runbook_names()
    return f"{own_address(name)}{fragment}" if is_own else ""
