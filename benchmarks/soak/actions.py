"""What the writers of the logs do: they land, cut, copy and delete files, and leave junk.

Each action is one change that a reader sees as a whole. Times of change follow from the data, so that both
runs see the same ones.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

from benchmarks.soak.traffic import start_of

Kind = Literal["put", "half", "junk", "loop", "remove"]


@dataclass(frozen=True, slots=True)
class Action:
    """One change of one file.

    Attributes:
        kind: put the file whole, or its first half, or junk, or a link to itself; or remove it.
        path: the file, below the folder of the logs.
        window: the newest window that has landed, which gives the time of change.
        source: the file whose content is put, below the folder of the sources.
    """

    kind: Kind
    path: str
    window: int
    source: str = ""

    def apply(self, source: Path, logs: Path) -> None:
        place = logs / self.path
        if self.kind == "remove":
            place.unlink()
        elif self.kind == "loop":
            place.symlink_to(place.name)
        else:
            part = place.with_name(f".{place.name}.part")
            if self.kind == "put":
                shutil.copyfile(source / self.source, part)
            elif self.kind == "half":
                whole = (source / self.source).read_bytes()
                part.write_bytes(whole[: len(whole) // 2])
            else:
                part.write_bytes(b"PAR1 neither rows nor a footer PAR1")
            moment = (start_of(self.window + 1) + timedelta(seconds=1 + (self.kind == "put"))).timestamp()
            os.utime(part, (moment, moment))
            part.replace(place)
