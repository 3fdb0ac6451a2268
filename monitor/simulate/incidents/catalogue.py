"""All incidents by name, in the order of the page."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from monitor.simulate.incidents import (
    clicks,
    delivery,
    experiments,
    forbidden,
    mix,
    models,
    operations,
    platform,
    repeated,
    scores,
    short,
)

_MODULES: Final = (
    forbidden,
    short,
    repeated,
    mix,
    scores,
    models,
    experiments,
    delivery,
    clicks,
    operations,
    platform,
)
INCIDENTS: Final = MappingProxyType({one.name: one for module in _MODULES for one in module.INCIDENTS})
