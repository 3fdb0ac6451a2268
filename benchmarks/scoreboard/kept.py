"""A file of JSON lines that is added to for hours; a line that was cut off is as if it were not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> list[Any]:
    """What the lines say; nothing where there is no file."""
    found = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # whatever it was said of is done again
    return found


def append(path: Path, value: Any) -> None:
    """Add a line, and first end one that was cut off."""
    line = json.dumps(value).encode() + b"\n"
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
