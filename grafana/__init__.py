"""The dashboards, as code: see generate.py."""
