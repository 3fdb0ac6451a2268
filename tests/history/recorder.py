"""Records windows until it is killed, going on where the last one stopped: `recorder.py URL WINDOWS`.

It says so before each of them, so that a test can kill it in the middle of one.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from monitor.core.results import Result, ResultKind, Status, Window
from monitor.history.logstate import IndexedFile
from monitor.history.record import CheckRun
from monitor.history.store import Store

EVALUATED = datetime(2026, 3, 1, tzinfo=UTC)


def run(window: int, revision: int) -> list[CheckRun]:
    """Two checks with results that carry the window's number and revision in every value."""
    results = [
        Result(
            kind=ResultKind.RULE,
            metric="rule",
            status=Status.VIOLATED if n % 5 == 0 else Status.OK,
            definition="1",
            labels={"rule": f"rule{n}", "kind": "hard"},
            value=window + revision / 10,
            violations=window % 3 + revision,
            evidence=tuple({"window": window, "revision": revision, "place": place} for place in range(4)),
        )
        for n in range(30)
    ]
    return [CheckRun(check="rules", results=results), CheckRun(check="exposure", results=results[:3])]


def main(url: str, windows: int) -> None:
    with Store.open(url) as store:
        for revision in (0, 1):  # the second round corrects every window
            done = {(one.window.start, one.revision) for one in store.evaluated("shop", "rules")}
            for number in range(windows):
                window = Window.of(
                    datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number), timedelta(hours=1)
                )
                if (window.start, revision) in done or (window.start, 1) in done:
                    continue
                print("recording", flush=True)
                store.record_window(
                    "shop",
                    window,
                    run(number, revision),
                    fingerprint=f"{revision}",
                    rows=9,
                    evaluated_at=EVALUATED,
                )
            store.replace_files(
                "shop",
                "exposures",
                [IndexedFile(path=f"{n}", size=revision, modified="") for n in range(100)],
                watermark=EVALUATED + timedelta(seconds=revision),
            )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
