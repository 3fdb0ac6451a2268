"""Leases: one live monitor judges each recommender, the work is shared, nobody writes without a lease."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.core.results import Window
from monitor.history import database, leases
from monitor.history.errors import Fault, StoreError
from monitor.history.leases import GRACE, TTL, Lease, Monitor, OtherSaltError, decide
from monitor.history.record import CheckRun
from monitor.history.store import Store

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEP = TTL / 4
LEFT, RIGHT = (Monitor(name, f"http://{name}:9108", "salt") for name in ("left", "right"))


class World:
    """Monitors that renew every `STEP`, each with its own config, on one set of leases."""

    def __init__(self) -> None:
        self.now = NOON
        self.leases: dict[str, Lease] = {}
        self.seen: dict[str, datetime] = {}

    def renew(self, me: str, names: list[str], busy: frozenset[str] = frozenset()) -> None:
        self.seen = {one: at for one, at in self.seen.items() if at > self.now - TTL} | {me: self.now}
        self.leases |= decide(me, names, self.leases, set(self.seen), busy, self.now)

    def holder(self, name: str) -> str | None:
        lease = self.leases.get(name)
        return lease.holder if lease and lease.ends_at > self.now else None

    def held(self) -> Counter[str | None]:
        return Counter(self.holder(name) for name in self.leases)


def test_one_monitor_takes_everything_at_once() -> None:
    world = World()
    world.renew("left", ["a", "b", "c"])
    assert world.held() == {"left": 3}


def test_a_second_one_asks_and_the_first_hands_over_what_it_does_not_judge_right_now() -> None:
    world, names = World(), ["a", "b", "c", "d"]
    world.renew("left", names)
    world.renew("right", names)
    assert {name for name, one in world.leases.items() if one.wanted_by == "right"} == {"a", "b"}
    world.renew("left", names, busy=frozenset("a"))
    assert (world.holder("a"), world.holder("b")) == ("left", "right")
    world.renew("right", names)
    world.renew("left", names)
    assert world.held() == {"left": 2, "right": 2}
    assert not any(one.wanted_by for one in world.leases.values())


def test_a_dead_monitor_loses_its_leases_after_their_time_and_not_before() -> None:
    world, names = World(), ["a", "b", "c", "d"]
    for me in ("left", "right", "left", "right"):
        world.renew(me, names)
    world.now += TTL - STEP
    world.renew("right", names)
    assert world.held() == {"left": 2, "right": 2}
    world.now += STEP
    world.renew("right", names)
    assert world.held() == {"right": 4}


def test_a_recommender_that_one_config_lacks_is_left_to_the_other_monitor() -> None:
    world = World()
    for _ in range(8):
        world.renew("left", ["a", "b", "c"])
        world.renew("right", ["c", "d", "e"])
        world.now += STEP
    assert [world.holder(name) for name in "abde"] == ["left", "left", "right", "right"]
    assert world.holder("c") in ("left", "right")


def test_more_than_a_share_is_taken_only_after_the_grace() -> None:
    world, names = World(), ["a", "b", "c", "d"]
    world.seen = {"other": NOON}  # lives, with another config
    world.renew("left", names)
    assert world.held()["left"] == 2
    world.now += GRACE
    world.renew("left", names)
    assert world.held() == {"left": 4}


def test_the_wish_of_a_monitor_that_died_is_forgotten() -> None:
    world = World()
    world.renew("left", ["a", "b"])
    world.renew("right", ["a", "b"])
    world.now += TTL
    world.renew("left", ["a", "b"])
    assert {one.wanted_by for one in world.leases.values()} == {None}
    assert world.held() == {"left": 2}


@settings(max_examples=150)
@given(
    count=st.integers(1, 12),
    events=st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from(["starts", "dies", "leaves"])), max_size=25
    ),
    paused=st.lists(st.integers(0, 8), max_size=25),
)
def test_whatever_happens_to_the_monitors_all_is_judged_by_one_and_fairly(
    count: int, events: list[tuple[str, str]], paused: list[int]
) -> None:
    world, running = World(), {"z"}
    names = [f"r{number:02}" for number in range(count)]

    def round_of_renewals() -> None:
        for me in sorted(running):
            before = {name: world.holder(name) for name in names}
            world.renew(me, names)
            for name in names:  # nobody takes the lease of a live monitor: it must hand it over
                if before[name] not in (None, me):
                    assert world.holder(name) == before[name] or before[name] not in world.seen
        world.now += STEP

    for number, (who, what) in enumerate(events):
        if what == "starts":
            running.add(who)
        else:
            running.discard(who)
        if what == "leaves":
            world.seen.pop(who, None)
            world.leases = {
                name: Lease(None, one.ends_at) if one.holder == who else one
                for name, one in world.leases.items()
            }
        for _ in range(paused[number] if number < len(paused) else 1):
            round_of_renewals()
    for _ in range(16):
        round_of_renewals()
    held = Counter(world.leases[name].holder for name in names)
    assert set(held) <= running
    assert sum(held.values()) == count
    assert max(held[me] for me in running) - min(held[me] for me in running) <= 1


def window(hour: int) -> Window:
    start = NOON + timedelta(hours=hour)
    return Window(start, start + timedelta(hours=1))


def test_a_store_writes_only_what_its_monitor_holds(url: str) -> None:
    with Store.open(url, holder=LEFT.id) as left, Store.open(url, holder=RIGHT.id) as right:
        assert left.renew_leases(LEFT, ["shop"], ()).mine == {"shop"}
        left.set_watermark("shop", "exposures", NOON)
        writes = [
            lambda: right.set_watermark("shop", "exposures", NOON),
            lambda: right.replace_files("shop", "exposures", []),
            lambda: right.record_window(
                "shop",
                window(0),
                [CheckRun(check="rules", results=[])],
                fingerprint="x",
                rows=1,
                evaluated_at=NOON,
            ),
        ]
        for write in writes:
            with pytest.raises(StoreError, match="another monitor") as caught:
                write()
            assert caught.value.fault is Fault.NOT_HELD
        left.release_leases(LEFT)
        assert right.renew_leases(RIGHT, ["shop"], ()).mine == {"shop"}
        for write in writes:
            write()
        with pytest.raises(StoreError, match="another monitor"):
            left.set_watermark("shop", "exposures", NOON)
    with Store.open(url) as alone:  # as `backfill`: an operator's command needs no lease
        alone.set_watermark("shop", "exposures", NOON)


def test_the_holdings_say_who_judges_the_rest_and_what_another_one_had(url: str) -> None:
    with Store.open(url) as store, store._database.writing() as connection:
        assert leases.renew(connection, LEFT, ["a", "b"], (), NOON).mine == {"a", "b"}
        second = leases.renew(connection, RIGHT, ["b", "c"], (), NOON + STEP)
        assert second.mine == {"c"}
        assert second.others == {"a": LEFT.address, "b": LEFT.address}
        later = leases.renew(connection, RIGHT, ["a", "b", "c"], (), NOON + TTL)
        assert later.mine == {"a", "b", "c"}
        assert later.taken_over == {"a", "b"}
        assert later.others == {}
        again = leases.renew(connection, RIGHT, ["a", "b", "c"], (), NOON + TTL + STEP)
        assert again.taken_over == frozenset()
        assert len(again.history) == 12


def test_what_was_handed_over_or_given_back_was_another_ones_too(url: str) -> None:
    with Store.open(url) as store, store._database.writing() as connection:
        assert leases.renew(connection, LEFT, ["a", "b"], (), NOON).taken_over == frozenset()
        assert leases.renew(connection, LEFT, ["a", "b"], (), NOON).taken_over == frozenset()
        leases.renew(connection, RIGHT, ["a", "b"], (), NOON)  # asks for one
        leases.renew(connection, LEFT, ["a", "b"], (), NOON)
        found = leases.renew(connection, RIGHT, ["a", "b"], (), NOON)
        assert found.mine == found.taken_over == {"a"}
        assert leases.renew(connection, RIGHT, ["a", "b"], (), NOON).taken_over == frozenset()
        leases.release(connection, LEFT.id)
        assert leases.renew(connection, RIGHT, ["a", "b"], (), NOON).taken_over == {"b"}
        leases.release(connection, RIGHT.id)
        again = leases.renew(connection, RIGHT, ["a", "b"], (), NOON)
        assert (again.mine, again.taken_over) == ({"a", "b"}, frozenset()), "nobody else had them"


def test_a_monitor_with_another_salt_is_refused_as_long_as_the_first_one_lives(url: str) -> None:
    other = Monitor("right", "http://right:9108", "pepper")
    with Store.open(url) as store, store._database.writing() as connection:
        leases.renew(connection, LEFT, ["a"], (), NOON)
        with pytest.raises(OtherSaltError, match=r"http://left:9108.*\n.*file `salt`"):
            leases.renew(connection, other, ["a"], (), NOON + STEP)
        assert leases.renew(connection, other, ["a"], (), NOON + TTL).mine == {"a"}


def test_who_had_a_lease_last_is_known_however_long_nobody_lived(url: str) -> None:
    with Store.open(url) as store, store._database.writing() as connection:
        leases.renew(connection, LEFT, ["a"], (), NOON)
        found = leases.renew(connection, RIGHT, ["a"], (), NOON + timedelta(days=30))
        assert found.mine == found.taken_over == {"a"}


def test_a_writer_that_is_frozen_in_the_middle_does_not_keep_the_others_out(
    postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(seconds=database.IDLE_SECONDS) < TTL
    monkeypatch.setattr(database, "IDLE_SECONDS", 1.0)  # the same way, without half a minute of waiting
    url = f"{postgres_server}/postgres"

    def stand_still(frozen: Store, other: Store) -> None:
        with frozen._database.writing() as connection:
            leases.check(connection, "frozen", LEFT.id)
            other.set_watermark("other", "exposures", NOON)
            leases.check(connection, "frozen", LEFT.id)

    with Store.open(url, holder=LEFT.id) as frozen, Store.open(url) as other:
        frozen.renew_leases(LEFT, ["frozen"], ())
        with pytest.raises(StoreError, match="idle-in-transaction") as caught:
            stand_still(frozen, other)
        assert caught.value.fault is Fault.UNREACHABLE
        assert set(other.watermarks("other")) == {"exposures"}
        frozen.set_watermark("frozen", "exposures", NOON)  # with a new connection
