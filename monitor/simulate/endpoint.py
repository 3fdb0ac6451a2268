"""The demo's recommender behind HTTP: today's model, a good candidate and a bad one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from monitor.simulate.traffic import Simulator

_MOST_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Variant:
    """How a model differs from the one that wrote the log.

    Attributes:
        model: its name.
        noise: the noise of its ranking; users click more often where there is less.
        personal: whether it knows the taste of a user.
        empty_share: the share of its lists that are empty.
        leak_share: the share of its lists that show a blacklisted item.
        delay: how many seconds its answers take on average, beside the ranking.
    """

    model: str
    noise: float = 1.0
    personal: bool = True
    empty_share: float = 0.0
    leak_share: float = 0.0
    delay: float = 0.0


VARIANTS: Final[Mapping[str, Variant]] = {
    "current": Variant("m1"),
    "good": Variant("m2", noise=0.5),
    "bad": Variant("m3", personal=False, empty_share=0.05, leak_share=0.01, delay=0.3),
}


class BadRequest(ValueError):
    """A request that is not understood; the sentence says why."""


def application(simulator: Simulator, *, seed: int) -> Starlette:
    """A web application that answers `POST /recommend/current`, `/recommend/good` and `/recommend/bad`.

    A request is JSON: `user_id`, and if wanted `now` (the time that the list is for, default: today's) and
    `n` (how many items). The answer is JSON: `user_id`, `model`, and `items` with `id` and `score`, best
    first. A user whom nobody knows gets what most people like.
    """
    recommender = Recommender(simulator, np.random.default_rng(seed))

    async def recommend(request: Request) -> JSONResponse:
        variant = VARIANTS.get(request.path_params["variant"])
        if variant is None:
            return JSONResponse({"error": f"there are {', '.join(VARIANTS)}"}, status_code=404)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                return JSONResponse({"error": f"more than {_MOST_BYTES} bytes"}, status_code=413)
        try:
            answer = recommender.answer(variant, body)
        except BadRequest as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        if variant.delay:
            await asyncio.sleep(recommender.rng.exponential(variant.delay))
        return JSONResponse(answer)

    return Starlette(routes=[Route("/recommend/{variant}", recommend, methods=["POST"])])


@dataclass(frozen=True, slots=True)
class Recommender:
    """Answers requests as its variants would."""

    simulator: Simulator
    rng: np.random.Generator

    def answer(self, variant: Variant, body: bytes) -> dict[str, Any]:
        """The answer to the JSON of a request. Raises BadRequest."""
        traffic = self.simulator.traffic
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            raise BadRequest("the body is not JSON, or too deeply nested") from None
        if not isinstance(asked, dict) or not _is_text(asked.get("user_id")):
            raise BadRequest("the body is an object with a text user_id")
        n = asked.get("n", traffic.length)
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= traffic.length:
            raise BadRequest(f"n is a whole number from 1 to {traffic.length}")
        now = _moment(asked.get("now"))
        user = int(np.searchsorted(self.simulator.user_ids, asked["user_id"]))
        known = user < traffic.users and self.simulator.user_ids[user] == asked["user_id"]
        items: list[dict[str, Any]] = []
        if self.rng.random() >= variant.empty_share:
            try:
                chosen, scores = self.simulator.rank(
                    np.array([user if known else 0]), now, now, self.rng,
                    noise=variant.noise, personal=variant.personal and known,
                )  # fmt: skip
            except ValueError as error:  # the catalog begins later
                raise BadRequest(f"now: {error}") from None
            place = chosen[0, :n]
            if self.rng.random() < variant.leak_share:
                place[self.rng.integers(n)] = self.rng.choice(self.simulator.blacklisted)
            items = [
                {"id": str(item), "score": float(score)}
                for item, score in zip(self.simulator.item_ids[place], scores[0, :n], strict=True)
            ]
        return {"user_id": asked["user_id"], "model": variant.model, "items": items}


def _is_text(value: object) -> bool:
    """Whether a value of JSON is a text that an answer can repeat: half of a surrogate pair is not."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _moment(text: object) -> datetime:
    if text is None:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(str(text))
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the second: a zone moves it out of the years 1 to 9999
        raise BadRequest("now is a time such as 2026-03-01T12:00:00Z") from None
