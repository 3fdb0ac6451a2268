"""A file of JSON lines that grows for hours; an incomplete line is ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> list[Any]:
    """The values of the lines; empty if there is no file."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # its run is repeated
    return found


def append(path: Path, value: Any) -> None:
    """Add a line; ends an incomplete line first."""
    line = json.dumps(value).encode() + b"\n"
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
