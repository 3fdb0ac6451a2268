"""The files of the rule packs that come with the monitor."""

from __future__ import annotations

from pathlib import Path


def packs_folder() -> Path:
    """The folder of packs: in an installed wheel the package's own data, in a checkout rules/business.

    Raises:
        FileNotFoundError: neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "shipped" / "rules" / "business", package.parent / "rules" / "business"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("the rule packs are missing: the package was installed without its data files")


def pack_names() -> tuple[str, ...]:
    """The names of all packs, sorted.

    >>> "blacklist" in pack_names()
    True
    """
    return tuple(sorted(path.stem for path in packs_folder().glob("*.yaml")))


def pack_path(name: str) -> Path | None:
    """The suite file of a pack, or None if there is no such pack.

    >>> pack_path("blacklist").name
    'blacklist.yaml'
    >>> pack_path("../secrets") is None
    True
    """
    return packs_folder() / f"{name}.yaml" if name in pack_names() else None
