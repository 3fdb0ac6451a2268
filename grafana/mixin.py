"""Write deploy/mixin/alerts.json, the alerts without YAML anchors: python -m grafana.mixin

Jsonnet can read YAML, but it takes an anchor for a text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[1]
ALERTS: Final = ROOT / "deploy" / "mixin" / "alerts.json"


def alerts() -> dict[str, Any]:
    """The groups of every file of alerts, in the order of the files' names."""
    files = sorted((ROOT / "rules" / "alerts").glob("*.yaml"))
    return {
        "groups": [
            group for path in files for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
        ]
    }


def text() -> str:
    return json.dumps(alerts(), indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    ALERTS.write_text(text(), encoding="utf-8")
    sys.stdout.write(f"{ALERTS.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
