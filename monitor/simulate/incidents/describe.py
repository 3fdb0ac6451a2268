"""Writes docs/incidents.md: `python -m monitor.simulate.incidents.describe > docs/incidents.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.incident import SIZES, Incident

_INTRODUCTION: Final = """\
# Incidents

This page is generated from the code by `make docs`.

Simulated faults of a recommender, its logs or its monitor. An incident changes the healthy hours from the
hour in which it begins; everything else stays the same, byte for byte. Each incident has three sizes; the
*knob* says what the number of a size means. An incident is caught if one of the named alerts fires within the
given number of windows of an hour. The middle and the large size must be caught; if a single row is enough,
the small one too.

An incident changes nothing where it has nothing to work with. `blacklist` and `expired` need such items in
the catalog, `sample_ratio_mismatch` needs a second arm, and `category_takeover` needs as many items of one
category as a list is long. `lists_stale` and `novelty_gone` need users who came in the day before.

A simulation with an incident in it:

```python
from datetime import timedelta

from monitor.simulate.incidents.catalogue import INCIDENTS
from monitor.simulate.incidents.struck import Struck
from monitor.simulate.simulation import Simulation
from monitor.simulate.world import World

healthy = Simulation(World(seed=1, users=500, items=240))
since = healthy.world.start + timedelta(hours=30)
incident = INCIDENTS["empty_scene"]
struck = Struck(healthy, incident, incident.sizes["large"], since)
lists = struck.lists(since)
```
"""


def page() -> str:
    return "\n".join(
        [_INTRODUCTION, *_index(), *(line for one in INCIDENTS.values() for line in _section(one))]
    )


def _index() -> Iterator[str]:
    yield "| incident | what happens | small | middle | large |"
    yield "|---|---|---|---|---|"
    for one in INCIDENTS.values():
        numbers = " | ".join(_number(one.sizes[size]) for size in SIZES)
        yield f"| [{one.name}](#{one.name}) | {one.title} | {numbers} |"


def _section(one: Incident) -> Iterator[str]:
    yield f"\n## {one.name}\n\n**{one.title}.** {one.says}\n\n| | |\n|---|---|"
    yield f"| knob | {one.knob} |"
    yield f"| sizes | {', '.join(f'{size} {_number(one.sizes[size])}' for size in SIZES)} |"
    yield f"| caught by | {'; '.join(map(str, one.caught_by))} |"
    yield f"| within | {one.windows} windows{', from one row on' if one.hard else ''} |"
    yield from (f"| {size} cannot be seen | {why} |" for size, why in one.unseen.items())


def _number(size: float) -> str:
    return f"{size:g}"


if __name__ == "__main__":
    sys.stdout.write(page() + "\n")
