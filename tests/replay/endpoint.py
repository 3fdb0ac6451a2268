"""A real HTTP server on loopback that answers well or badly, as the path of a request asks, and counts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web

LONGEST_WAIT = 30.0


@dataclass
class Endpoint:
    """The server, and what it has received.

    The path is /recommend/MODE. `u3` is answered with items of its own, so that a list shows whose it is.
    """

    port: int = 0
    received: list[dict] = field(default_factory=list)  # the bodies, in order of arrival
    headers: list[dict] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    lists: dict = field(default_factory=dict)  # of the mode `table`: the items of each request
    active: int = 0
    most_active: int = 0

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def count(self, key: str = "request") -> Counter:
        return Counter(body.get(key) for body in self.received)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = json.loads(body) if body else dict(request.query)
        self.received.append(asked)
        self.headers.append(dict(request.headers))
        self.at.append(time.monotonic())
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        try:
            return await getattr(self, request.match_info["mode"])(request, asked)
        finally:
            self.active -= 1

    @staticmethod
    def answer(asked: dict, items: list[str] | None = None) -> dict:
        user = asked.get("user_id")
        dice = random.Random(str(user))
        items = dice.sample([f"i{n}" for n in range(20)], asked.get("n", 5)) if items is None else items
        return {
            "user_id": user,
            "model": "m7",
            "items": [{"id": one, "score": 1 / place} for place, one in enumerate(items, 1)],
        }

    async def good(self, request, asked):
        return web.json_response(self.answer(asked))

    async def empty(self, request, asked):
        return web.json_response(self.answer(asked, []))

    async def table(self, request, asked):
        return web.json_response(self.answer(asked, self.lists[asked["request"]]))

    async def late(self, request, asked):
        await asyncio.sleep(0.05)
        return web.json_response(self.answer(asked))

    async def hanging(self, request, asked):
        await asyncio.sleep(LONGEST_WAIT)
        return web.json_response(self.answer(asked))

    async def trickling(self, request, asked):
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for _ in range(int(LONGEST_WAIT * 10)):
                await response.write(b" ")
                await asyncio.sleep(0.1)
        return response

    async def broken(self, request, asked):
        return web.Response(status=500, text="<script>alert(1)</script>\x1b[31m secret-token-of-the-server")

    async def flaky(self, request, asked):
        if self.count()[asked.get("request")] == 1:
            return web.Response(status=503)
        return web.json_response(self.answer(asked))

    async def half(self, request, asked):
        return web.Response(body=b'{"user_id": "u1", "items": [{"id": "i1", ')

    async def text(self, request, asked):
        return web.Response(text="<html>login</html>")

    async def huge(self, request, asked):
        return web.json_response({"items": [{"id": "x" * 200_000}]})

    async def endless(self, request, asked):
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            for _ in range(2_000):
                await response.write(b"x" * 100_000)
        return response

    async def many(self, request, asked):
        return web.json_response(self.answer(asked, [f"i{n}" for n in range(3_000)]))

    async def others(self, request, asked):
        return web.json_response(self.answer(asked | {"user_id": "somebody else"}))

    async def moved(self, request, asked):
        raise web.HTTPFound(f"http://localhost:{self.port}/recommend/good")

    async def cut(self, request, asked):
        request.transport.close()
        return web.Response()

    async def packed(self, request, asked):
        return web.Response(
            body=b"\x1f\x8b" + b"\0" * 50,
            headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
        )

    async def mixed(self, request, asked):
        """By the number of the user: every kind of answer."""
        modes = ("good", "broken", "half", "empty", "others", "good", "good", "cut", "moved", "good")
        return await getattr(self, modes[int(str(asked["user_id"])[1:]) % len(modes)])(request, asked)


@contextlib.contextmanager
def running():
    """The server, in a thread of its own."""
    endpoint = Endpoint()
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve():
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/recommend/{mode}", endpoint.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        endpoint.port = site._server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield endpoint
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
