"""The gate before a launch: what must hold, and whether it does."""
