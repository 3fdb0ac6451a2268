"""The oldest time of a file is no longer kept: nothing reads it."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("log_files", "min_ts")
