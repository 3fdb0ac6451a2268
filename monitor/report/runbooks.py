"""The link to a runbook, if it is safe."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit


def web_address(runbook: str, docs_url: str) -> str:
    """The runbook as a link: an http(s) address as it is, a path of the repository below `docs_url`.

    Empty for anything else, such as a path that leaves the repository, or if `docs_url` is empty.

    >>> web_address("docs/runbooks/a b.md#now", "https://git.test/main")
    'https://git.test/main/docs/runbooks/a%20b.md#now'
    >>> web_address("javascript:alert(1)", "https://git.test/main")
    ''
    """
    try:
        parts = urlsplit(runbook)
    except ValueError:
        return ""
    if parts.scheme in ("http", "https"):
        return runbook
    path = PurePosixPath(parts.path)
    leads_out = bool(parts.scheme or parts.netloc) or path.is_absolute() or ".." in path.parts
    if not docs_url or not parts.path or leads_out:
        return ""
    fragment = f"#{quote(parts.fragment)}" if parts.fragment else ""
    return f"{docs_url}/{quote(parts.path)}{fragment}"
