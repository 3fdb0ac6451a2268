"""Sends the requests of real traffic to an endpoint again, and logs its answers as exposures."""
