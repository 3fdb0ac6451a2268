"""How fast `replay` sends: requests a second, and processor time a request, on loopback.

`make bench-replay`. The endpoint is a process of its own, so that both share the cores of this machine: the
requests a second fall when something else runs, the processor time of the client hardly does.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
from aiohttp import web

from monitor.replay.exposure_log import Marks, write_log
from monitor.replay.journal import Journal
from monitor.replay.plan import plan_path, read_plan, write_plan
from monitor.replay.results import measured
from monitor.replay.send import send
from monitor.replay.templates import Templates
from monitor.settings.replay import TargetSettings

_ITEMS = 10


def _serve(port: Connection) -> None:
    """An endpoint that reads the JSON of a request and answers a list of ten items."""

    async def recommend(request: web.Request) -> web.Response:
        user = json.loads(await request.read())["user_id"]
        items = [{"id": f"item-{place}", "score": 1 / (1 + place)} for place in range(_ITEMS)]
        return web.Response(
            body=json.dumps({"user_id": user, "model": "m7", "items": items}).encode(),
            content_type="application/json",
        )

    async def tell(app: web.Application) -> None:
        port.send(app["socket"].getsockname()[1])

    import socket

    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    app = web.Application()
    app["socket"] = bound
    app.router.add_post("/recommend", recommend)
    app.on_startup.append(tell)
    web.run_app(app, sock=bound, print=None, access_log=None)


@contextmanager
def endpoint() -> Iterator[int]:
    """The port of an endpoint in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


def requests(count: int) -> pa.Table:
    rng = np.random.default_rng(1)
    start = np.datetime64("2026-01-05T10:00:00", "us")
    return pa.table(
        {
            "request_id": [f"r{number}" for number in range(count)],
            "user_id": [f"u{number}" for number in rng.integers(0, count // 10 + 1, count)],
            "ts": pa.array(start + np.arange(count) * 1000, pa.timestamp("us")),
            "scene": rng.choice(["home", "feed", "cart"], count),
        }
    )


def target(port: int, rate: float, concurrency: int) -> TargetSettings:
    settings = {
        "name": "bench",
        "url": f"http://127.0.0.1:{port}/recommend",
        "body": {"user_id": "{{ user_id }}", "scene": "{{ scene }}", "now": "{{ now }}", "n": 10},
        "response": {"scores": "$.items[*].score", "user": "$.user_id", "model": "$.model"},
        "rate": rate,
        "concurrency": concurrency,
        "ramp_up": "1s",
    }
    return TargetSettings.model_validate(settings)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=20_000)
    options.add_argument("--rate", type=float, default=100_000, help="of the target; the default is no limit")
    options.add_argument("--concurrency", type=int, default=64)
    given = options.parse_args()
    with endpoint() as port, tempfile.TemporaryDirectory() as scratch:
        run, wanted = Path(scratch), target(port, given.rate, given.concurrency)
        table = requests(given.requests)
        began = time.perf_counter()
        write_plan(plan_path(run), iter(table.to_batches(4096)), table.schema, ("scene",), Templates(wanted))
        planned = time.perf_counter() - began
        with Journal(run) as journal:
            used = _processor()
            sent = send(wanted, read_plan(plan_path(run)), journal)
            used = _processor() - used
        began = time.perf_counter()
        path = write_log(run, Marks("bench", "bench", None, True))
        assert path is not None
        found = measured(path)
        written = time.perf_counter() - began
    assert found.answered == given.requests, found.statuses
    print(f"{given.requests:,} requests of {_ITEMS} items, {given.concurrency} at the same time")
    print(f"plan            {1e6 * planned / given.requests:8.0f} us a request")
    print(f"send            {given.requests / sent.seconds:8.0f} requests a second")
    print(f"send            {1e6 * used / given.requests:8.0f} us of processor time a request, of the client")
    print(f"log and metrics {1e6 * written / given.requests:8.0f} us a request")
    for result in found.results:
        if result.metric == "latency" and result.value is not None:
            print(f"latency {result.labels['by']}     {1000 * result.value:8.1f} ms")


def _processor() -> float:
    """Seconds of processor time of this process, the thread of the journal included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
