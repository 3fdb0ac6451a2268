"""The check of what users did with the lists: every metric that needs feedback, overall and by slice."""

from __future__ import annotations

from monitor.metrics.catalogue import FEEDBACK_FAMILIES

NAME = "feedback"
FAMILIES = FEEDBACK_FAMILIES
