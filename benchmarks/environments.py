"""Environments of their own for the tools that the benchmarks compare with."""

from __future__ import annotations

import shutil
import subprocess
import venv
from pathlib import Path


def install(requirements: Path, folder: Path) -> str:
    """The interpreter of an environment with these requirements; it is made anew if they have changed."""
    stamp, python = folder / "requirements.txt", str(folder / "bin" / "python")
    wanted = requirements.read_text("utf-8")
    if not stamp.is_file() or stamp.read_text("utf-8") != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", str(requirements)], check=True)
        stamp.write_text(wanted, "utf-8")
    return python
