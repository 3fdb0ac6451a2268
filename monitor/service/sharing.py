"""How this monitor shares the recommenders with others that use the same PostgreSQL history."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Final

from monitor.core.digest import digest
from monitor.history.kept import KeptPairs
from monitor.history.leases import TTL, Holdings, Monitor
from monitor.history.store import Store
from monitor.rollups.kept import FOLDER as ROLLUPS
from monitor.service.salt import install_id

RENEW_EVERY: Final = TTL / 4
_DIGEST: Final = 12


class Sharing:
    """The leases of this monitor. See `monitor.history.leases`.

    Args:
        store: the shared history.
        state: the state folder; the id of this monitor is in it.
        salt: of the hashed user ids.
        address: of the status page; the other monitors link to it.
    """

    def __init__(self, store: Store, state: Path, salt: str, address: str) -> None:
        self._store = store
        self._state = state
        self._monitor = Monitor(install_id(state), address, digest(salt, _DIGEST))

    def renew(self, names: Collection[str], busy: Collection[str]) -> Holdings:
        """Renew the leases. The pairs and roll-ups of recommenders that another monitor had are dropped.

        The other monitor may have judged late rows, and these files lack them. What a window needs is read
        from the logs again. The arms of users stay: those of rotated files cannot be read again.

        Raises:
            StoreError: the history cannot be written. The leases stay as they are.
            OtherSaltError: another monitor hashes user ids with another salt.
        """
        found = self._store.renew_leases(self._monitor, names, busy)
        for name in found.taken_over:
            pairs = KeptPairs(self._state, name)
            pairs.forget_all()
            shutil.rmtree(pairs.folder / ROLLUPS, ignore_errors=True)
        return found

    def release(self) -> None:
        """Give all leases back, so that the others need not wait."""
        self._store.release_leases(self._monitor)

    def serve_at(self, address: str) -> None:
        """From the next renewal on, name this address."""
        self._monitor = replace(self._monitor, address=address)
