"""The first schema: windows, results, evidence, watermarks, log files, counters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    _measurements()
    _state()


def _measurements() -> None:
    op.create_table(
        "series",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("recommender", sa.Text, nullable=False),
        sa.Column("check_name", sa.Text, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.UniqueConstraint("recommender", "check_name", "digest", name="series_key"),
    )
    op.create_table(
        "windows",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("recommender", sa.Text, nullable=False),
        sa.Column("check_name", sa.Text, nullable=False),
        sa.Column("window_start", sa.BigInteger, nullable=False),
        sa.Column("window_end", sa.BigInteger, nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("evaluated_at", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("current", sa.Boolean(create_constraint=False), nullable=False),
        sa.UniqueConstraint(
            "recommender", "check_name", "window_start", "window_end", "definition", name="windows_key"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("windows_newest", "windows", ["recommender", "check_name", "window_end"])
    op.create_index("windows_age", "windows", ["window_end"])
    op.create_table(
        "results",
        sa.Column("window_id", _ID, sa.ForeignKey("windows.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("series_id", _ID, sa.ForeignKey("series.id"), primary_key=True),
        sa.Column("window_end", sa.BigInteger, nullable=False),
        sa.Column("signal", sa.SmallInteger),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("value", sa.Float(53)),
        sa.Column("samples", sa.BigInteger),
        sa.Column("lower", sa.Float(53)),
        sa.Column("upper", sa.Float(53)),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("violations", sa.BigInteger),
        sa.Column("threshold", sa.Float(53)),
        sa.Column("bound", sa.Text),
        sa.Column("severity", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_index("results_by_signal", "results", ["series_id", "signal", "window_end"])
    op.create_table(
        "evidence",
        sa.Column("window_id", _ID, primary_key=True),
        sa.Column("series_id", _ID, primary_key=True),
        sa.Column("place", sa.SmallInteger, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["window_id", "series_id"], ["results.window_id", "results.series_id"], ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )


def _state() -> None:
    op.create_table(
        "watermarks",
        sa.Column("recommender", sa.Text, primary_key=True),
        sa.Column("log", sa.Text, primary_key=True),
        sa.Column("reached", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "log_files",
        sa.Column("recommender", sa.Text, primary_key=True),
        sa.Column("log", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("modified", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("rows", sa.BigInteger, nullable=False),
        sa.Column("min_ts", sa.BigInteger),
        sa.Column("max_ts", sa.BigInteger),
        sa.Column("buckets", sa.Text, nullable=False),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("labels", sa.Text, primary_key=True),
        sa.Column("value", sa.Float(53), nullable=False),
    )
