"""The monitors that share the history, and the recommenders that each of them judges."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "monitors",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("salt", sa.Text, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("recommender", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text),
        sa.Column("ends_at", sa.BigInteger, nullable=False),
        sa.Column("wanted_by", sa.Text),
        sa.Column("last_holder", sa.Text),
    )
    identity = op.create_table("identity", sa.Column("id", sa.Text, primary_key=True))
    op.bulk_insert(identity, [{"id": secrets.token_hex(6)}])
