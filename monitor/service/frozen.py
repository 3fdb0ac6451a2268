"""Imported last by the server that makes the processes: what is loaded by now is never garbage.

The collector of a process would otherwise write into every object that it shares with the server. The system
would then copy that memory for each process.
"""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
