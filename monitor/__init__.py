"""recsys-monitor: an always-on monitor and health check for recommender systems."""

__version__ = "0.1.0"
