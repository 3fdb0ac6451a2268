"""Which thread runs which turn: the longest waiting first, each recommender mostly on one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from monitor.service.pool import PATIENCE, TurnPool

SECONDS = 30


def job(*arguments: str) -> Any:
    return SimpleNamespace(args=arguments)


class Held:
    """Turns that run until they are let go."""

    def __init__(self, size: int) -> None:
        self.now = 0.0
        self.pool = TurnPool(size, clock=lambda: self.now)
        self.begun: dict[str, threading.Event] = {}
        self.let_go: dict[str, threading.Event] = {}
        self.places: dict[str, int | None] = {}

    def submit(self, turn: str, *of: str) -> Future[Any]:
        self.begun[turn], self.let_go[turn] = threading.Event(), threading.Event()

        def run(_: Any) -> str:
            self.places[turn] = self.pool.place
            self.begun[turn].set()
            assert self.let_go[turn].wait(SECONDS)
            return turn

        return self.pool.submit(run, job(*of))

    def wait_for(self, turn: str) -> int | None:
        assert self.begun[turn].wait(SECONDS)
        return self.places[turn]

    def end(self, turn: str, future: Future[Any]) -> None:
        self.let_go[turn].set()
        assert future.result(SECONDS) == turn


def test_turns_run_beside_each_other_and_only_the_pool_has_places() -> None:
    held = Held(2)
    futures = {turn: held.submit(turn, turn) for turn in ("a", "b")}
    assert {held.wait_for("a"), held.wait_for("b")} == {0, 1}
    assert held.pool.place is None
    for turn, future in futures.items():
        held.end(turn, future)


def test_two_turns_of_one_recommender_never_run_at_once() -> None:
    held = Held(2)
    first, second = held.submit("first", "a"), held.submit("second", "a")
    place = held.wait_for("first")
    other = held.submit("other", "b")  # it waits for less long than the second, and is free to run
    held.wait_for("other")
    held.now += 10 * PATIENCE
    assert not held.begun["second"].is_set()
    held.end("first", first)
    assert held.wait_for("second") == place
    for turn, future in (("second", second), ("other", other)):
        held.end(turn, future)


def test_a_recommender_stays_on_its_thread_until_that_is_busy_for_long() -> None:
    held = Held(2)
    futures = {turn: held.submit(turn, of) for turn, of in (("a", "a"), ("b", "b"))}
    place_of = {turn: held.wait_for(turn) for turn in futures}
    held.end("b", futures["b"])
    again = held.submit("b again", "b")
    assert held.wait_for("b again") == place_of["b"]
    held.end("b again", again)
    held.end("a", futures["a"])
    hung = held.submit("c hangs on the place of a", "a")
    assert held.wait_for("c hangs on the place of a") == place_of["a"]
    with held.pool._changed:  # the turn of another recommender that belongs to the same thread
        held.pool._place_of["d"] = held.pool._place_of["a"]
    waiting = held.submit("d", "d")
    assert not held.begun["d"].wait(0.2)
    held.now += PATIENCE
    with held.pool._changed:
        held.pool._changed.notify_all()
    assert held.wait_for("d") == place_of["b"]
    held.end("d", waiting)
    held.end("c hangs on the place of a", hung)
    later = held.submit("d later", "d")
    assert held.wait_for("d later") == place_of["b"], "it stays where it went"
    held.end("d later", later)


def test_an_exception_reaches_the_one_who_asked_and_the_thread_goes_on() -> None:
    pool = TurnPool(1)

    def fail(_: Any) -> None:
        raise LookupError("no")

    assert isinstance(pool.submit(fail, job("a")).exception(SECONDS), LookupError)
    assert pool.submit(lambda _, more: more, job(), 7).result(SECONDS) == 7


def test_no_turn_begins_after_the_shutdown_and_the_threads_end() -> None:
    held = Held(1)
    running = held.submit("a", "a")
    held.wait_for("a")
    waiting = held.submit("b", "b")
    held.pool.shutdown(wait=False)
    held.end("a", running)
    for thread in held.pool._threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    assert not held.begun["b"].is_set()
    assert not waiting.done()


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3)), max_size=40),
)
def test_every_turn_runs_once_and_those_of_a_recommender_in_order(
    size: int, turns: list[tuple[str, int]]
) -> None:
    pool = TurnPool(size)
    running: list[str] = []
    done: list[tuple[str, int]] = []
    lock = threading.Lock()

    def turn(name: str, number: int, pauses: int) -> Callable[[Any], None]:
        def run(_: Any) -> None:
            with lock:
                assert name not in running
                running.append(name)
            for _ in range(pauses):
                threading.Event().wait(0)
            with lock:
                running.remove(name)
                done.append((name, number))

        return run

    futures = [
        pool.submit(turn(name, number, pauses), job(name)) for number, (name, pauses) in enumerate(turns)
    ]
    for future in futures:
        future.result(SECONDS)
    pool.shutdown()
    assert sorted(number for _, number in done) == list(range(len(turns)))
    for name in {name for name, _ in turns}:
        mine = [number for one, number in done if one == name]
        assert mine == sorted(mine)
