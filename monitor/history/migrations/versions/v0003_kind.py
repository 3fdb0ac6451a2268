"""What sort of number each series is. Older versions told it by the metric's name; this is the last time."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SERIES = sa.table(
    "series", sa.column("metric", sa.Text), sa.column("labels", sa.Text), sa.column("kind", sa.Text)
)
_NAMES = {
    "rule": ("rule",),
    "log": ("log_rows", "log_bad_values", "log_skipped_files", "log_lacks_slices"),
    "model": ("sample_rows", "feature_skew", "feature_distance", "score_distance"),
    "gap": ("auc_gap",),
    "cause": ("auc_gap_cause",),
    "band": ("expected", "deviation", "daily", "anomaly_severity"),
    "drift": ("drift",),
    "anomaly": ("anomaly",),
    "health": ("health_score", "health_part"),
}


def upgrade() -> None:
    op.add_column("series", sa.Column("kind", sa.Text, nullable=False, server_default="metric"))
    metric, labels = _SERIES.c.metric, _SERIES.c.labels
    # Labels are JSON: a quote within a value has a backslash before it, so that this is the label alone.
    told: list[tuple[Any, str]] = [
        (labels.contains('"split":', autoescape=True) & labels.contains('"model":', autoescape=True), "model")
    ]
    told += [(metric.startswith("experiment_", autoescape=True), "experiment")]
    told += [(metric.in_(names), kind) for kind, names in _NAMES.items()]
    for where, kind in told:
        op.execute(_SERIES.update().where(where).values(kind=kind))
