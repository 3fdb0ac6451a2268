"""Upgrades the tables of a database to the schema of this version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from monitor.history.errors import Fault, StoreError
from monitor.history.schema import HEAD

_SCRIPTS = Path(__file__).parent / "migrations"


def migrate(connection: Connection) -> bool:
    """Upgrade inside the caller's transaction, which must already hold the write lock.

    A second process that opens the same database waits for that lock and then finds nothing to do. A
    process that dies in the middle leaves the old schema. Returns whether there was anything to do.

    Raises:
        StoreError: a newer version wrote the schema.
    """
    scripts = ScriptDirectory(str(_SCRIPTS))

    def steps(heads: Any, _: MigrationContext) -> Any:
        return scripts._upgrade_revs("head", heads)

    context = MigrationContext.configure(connection, opts={"fn": steps, "transactional_ddl": True})
    heads = context.get_current_heads()
    if heads == (HEAD,):
        return False
    known = {script.revision for script in scripts.walk_revisions()}
    if unknown := sorted(set(heads) - known):
        raise StoreError(
            f"the history store has schema {', '.join(unknown)}, written by a newer version of "
            f"recsys-monitor; this one knows up to {HEAD}: upgrade it, or give it a store of its own",
            Fault.NEWER_SCHEMA,
        )
    with Operations.context(context):
        context.run_migrations()
    return True
