"""What pytest must not collect: modules of an extra that is not installed."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["monitor/*/spark*.py"]
