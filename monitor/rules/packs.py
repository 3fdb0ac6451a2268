"""The files of the rule packs that come with the monitor."""

from __future__ import annotations

from pathlib import Path

from monitor.core.shipped import shipped


def pack_names() -> tuple[str, ...]:
    """The names of all packs, sorted.

    >>> "blacklist" in pack_names()
    True
    """
    return tuple(sorted(path.stem for path in shipped("packs").glob("*.yaml")))


def pack_path(name: str) -> Path | None:
    """The suite file of a pack, or None if there is no such pack.

    >>> pack_path("blacklist").name
    'blacklist.yaml'
    >>> pack_path("../secrets") is None
    True
    """
    return shipped("packs") / f"{name}.yaml" if name in pack_names() else None
