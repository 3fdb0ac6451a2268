"""Which monitor judges which recommender, where several monitors share one history.

A lease gives one recommender to one monitor, which renews it. A monitor that stops renewing loses its leases,
and the others take them over. Once another monitor has the lease, writes about the recommender are refused: a
process that was frozen and goes on must not judge a window a second time. Leases change only inside the write
lock of the history, and only by the clock of the database.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Table, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from monitor.core.errors import ExpectedError
from monitor.history import schema
from monitor.history.errors import Fault, StoreError

TTL: Final = timedelta(seconds=60)
"""How long a lease lasts without being renewed. Then its monitor counts as dead."""
GRACE: Final = timedelta(seconds=30)
"""How long a free lease waits for a monitor that has fewer than its share. Then any monitor takes it."""


class OtherSaltError(ExpectedError):
    """Two monitors of one history would hash the same user id in two ways."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """One of the monitors that share a history.

    Attributes:
        id: stays the same after a restart.
        address: of its status page.
        salt: a digest of the salt with which it hashes user ids.
    """

    id: str
    address: str
    salt: str


@dataclass(frozen=True, slots=True)
class Lease:
    """`holder` may judge until `ends_at`; `wanted_by` has fewer than its share and asks for it.

    `last_holder` was the last one to know that it held the lease.
    """

    holder: str | None
    ends_at: datetime
    wanted_by: str | None = None
    last_holder: str | None = None


@dataclass(frozen=True, slots=True)
class Holdings:
    """Who judges what, after a renewal.

    Attributes:
        mine: the recommenders that this monitor judges.
        taken_over: those of them that another monitor held since this one did.
        others: recommender -> the address of the monitor that judges it, also of those that are not in this
            monitor's config.
        history: the id of the shared history; empty if it is not shared.
    """

    mine: frozenset[str]
    taken_over: frozenset[str] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict)
    history: str = ""


def decide(
    me: str,
    names: Collection[str],
    leases: Mapping[str, Lease],
    live: Collection[str],
    busy: Collection[str],
    now: datetime,
) -> dict[str, Lease]:
    """The leases as this monitor leaves them; it changes its own, free ones, and whom it asks.

    1. It renews what it holds. It hands over what a live monitor asks for, unless it judges it right now.
    2. It takes free leases up to its share: the recommenders divided by the live monitors, rounded up. It
       takes more only if nobody has wanted them for `GRACE`: another monitor's config may lack them.
    3. It asks the monitors that have at least two more, until it has as many, or one fewer.

    Args:
        me: the id of this monitor.
        names: the recommenders of its config.
        leases: of every recommender that ever had one.
        live: the ids of the live monitors, this one included.
        busy: the recommenders that it judges right now.
        now: the time.

    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> alone = decide("a", ["shop", "news"], {}, {"a"}, (), noon)
    >>> {name: lease.holder for name, lease in alone.items()}
    {'news': 'a', 'shop': 'a'}
    >>> asked = decide("b", ["shop", "news"], alone, {"a", "b"}, (), noon)
    >>> {name: lease.wanted_by for name, lease in asked.items()}
    {'news': 'b', 'shop': None}
    """
    ends_at = now + TTL
    found = {name: leases.get(name, Lease(None, now)) for name in sorted(names)}
    for name, lease in found.items():
        if lease.holder != me:
            continue
        asks = lease.wanted_by if lease.wanted_by in live and lease.wanted_by != me else None
        if asks is None or name in busy:
            found[name] = Lease(me, ends_at, asks, me)
        else:
            found[name] = Lease(asks, ends_at, None, me)
    share = math.ceil(len(found) / len(live))
    held = Counter(lease.holder for lease in found.values() if lease.holder is not None)
    for name, lease in found.items():
        is_free = lease.holder is None or lease.ends_at <= now or lease.holder not in live
        if is_free and lease.holder != me and (held[me] < share or lease.ends_at <= now - GRACE):
            found[name] = Lease(me, ends_at, None, me)
            held[me] += 1
    for lease in found.values():  # as it will be once the wishes are granted
        if lease.wanted_by is not None and lease.wanted_by in live and lease.holder is not None:
            held[lease.holder] -= 1
            held[lease.wanted_by] += 1
    for name, lease in found.items():
        holder = lease.holder
        if holder is not None and lease.wanted_by not in live and held[holder] >= held[me] + 2:
            found[name] = replace(lease, wanted_by=me)
            held[holder] -= 1
            held[me] += 1
    return found


def renew(
    connection: Connection,
    me: Monitor,
    names: Collection[str],
    busy: Collection[str],
    now: datetime | None = None,
) -> Holdings:
    """Show that this monitor lives, and renew, take, hand over and ask for leases.

    `now` is for tests; by default the time of the database counts, as the clocks of two machines may differ.

    Raises:
        OtherSaltError: a live monitor hashes user ids with another salt.
    """
    now = now or _now(connection)
    table = schema.monitors
    live = {
        one.id: one
        for one in (
            Monitor(*row)
            for row in connection.execute(
                select(table.c.id, table.c.address, table.c.salt).where(table.c.seen_at > now - TTL)
            )
        )
    }
    for one in live.values():
        if one.id != me.id and one.salt != me.salt:
            raise OtherSaltError(
                f"the monitor at {one.address} shares this history and hashes user ids with another salt: in "
                "the evidence one user would look like two.\n"
                "Set `history.salt` to the same secret in both configs, or copy the file `salt` of its state "
                "folder into the state folder of this one. Then start again."
            )
    live[me.id] = me
    connection.execute(delete(table).where(table.c.seen_at <= now - TTL))
    _put(connection, schema.monitors, ["id"], [
        {"id": me.id, "address": me.address, "salt": me.salt, "seen_at": now}
    ])  # fmt: skip
    before = _read(connection)
    after = decide(me.id, names, before, live.keys(), busy, now)
    changed: list[dict[str, object]] = [
        {
            "recommender": name,
            "holder": lease.holder,
            "ends_at": lease.ends_at,
            "wanted_by": lease.wanted_by,
            "last_holder": lease.last_holder,
        }
        for name, lease in after.items()
        if before.get(name) != lease
    ]
    if changed:
        _put(connection, schema.leases, ["recommender"], changed)
    mine = frozenset(name for name, lease in after.items() if lease.holder == me.id)
    return Holdings(
        mine=mine,
        taken_over=frozenset(
            name for name in mine if name in before and before[name].last_holder not in (None, me.id)
        ),
        others={
            name: live[lease.holder].address
            for name, lease in (before | after).items()
            if lease.holder is not None and lease.holder != me.id and lease.holder in live
        },
        history=connection.execute(select(schema.identity.c.id)).scalar_one(),
    )


def release(connection: Connection, me: str) -> None:
    """Give everything back, at the end of a monitor. The others need not wait for the end of its leases."""
    table = schema.leases
    connection.execute(update(table).where(table.c.holder == me).values(holder=None, wanted_by=None))
    connection.execute(delete(schema.monitors).where(schema.monitors.c.id == me))


def check(connection: Connection, recommender: str, me: str) -> None:
    """Raise StoreError if another monitor has taken over the recommender."""
    table = schema.leases
    holder = connection.execute(select(table.c.holder).where(table.c.recommender == recommender)).scalar()
    if holder != me:
        raise StoreError(
            f"{recommender}: another monitor has taken over; nothing was written", Fault.NOT_HELD
        )


def _now(connection: Connection) -> datetime:
    if connection.dialect.name == "sqlite":  # one machine, one clock
        return datetime.now(UTC)
    found: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return found.astimezone(UTC)


def _read(connection: Connection) -> dict[str, Lease]:
    columns = schema.leases.c
    rows = connection.execute(
        select(columns.recommender, columns.holder, columns.ends_at, columns.wanted_by, columns.last_holder)
    )
    return {name: Lease(*lease) for name, *lease in rows}


def _put(connection: Connection, table: Table, key: list[str], rows: list[dict[str, object]]) -> None:
    insert = (sqlite if connection.dialect.name == "sqlite" else postgresql).insert(table)
    rest = {name: insert.excluded[name] for name in rows[0] if name not in key}
    connection.execute(insert.on_conflict_do_update(index_elements=key, set_=rest), rows)
