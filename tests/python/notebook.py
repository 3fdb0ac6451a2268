"""Runs docs/notebook.ipynb in a kernel of its own. `python -m tests.python.notebook` stores its outputs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "docs" / "notebook.ipynb"
_VOLATILE = ("ExecuteTime", "execution")


def executed(notebook: Any) -> Any:
    """The notebook after a run of all cells. Raises CellExecutionError at the first cell that fails."""
    with tempfile.TemporaryDirectory() as scratch:
        places = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"), scratch)
        environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": scratch} | places
        manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{scratch}/kernel")
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=300,
            coalesce_streams=True,
            resources={"metadata": {"path": scratch}},
        )
        try:
            client.execute(env=environment)
        finally:
            manager.shutdown_kernel(now=True)
    for cell in notebook.cells:
        for name in _VOLATILE:
            cell.metadata.pop(name, None)
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def outputs(notebook: Any) -> list[list[dict[str, Any]]]:
    """What each cell of code shows: texts and HTML."""
    return [
        [dict(one.get("data") or {"text/plain": one.text}) for one in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def read() -> Any:
    return nbformat.read(PATH, as_version=4)


if __name__ == "__main__":
    nbformat.write(executed(read()), PATH)
