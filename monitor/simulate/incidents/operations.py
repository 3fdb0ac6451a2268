"""Faults of the monitor itself; the program that runs the simulation applies them to its monitor."""

from __future__ import annotations

from typing import Final

from monitor.simulate.incidents.incident import Caught, Incident, sizes

INCIDENTS: Final = (
    Incident(
        name="history_full",
        title="The history's database is full",
        says="The disk of the history is full: nothing can be written until somebody frees space.",
        knob="hours until there is space again",
        sizes=sizes(0.1, 1, 3),
        caught_by=(Caught("RecsysHistoryErrors", fault="full"),),
        operation="history_full",
    ),
    Incident(
        name="rule_file_broken",
        title="A rule file is broken by an edit",
        says="Somebody edits a file of rules, makes a mistake in its YAML, and reloads the monitor.",
        knob="files of rules with a mistake",
        sizes=sizes(1, 2, 4),
        caught_by=(Caught("RecsysConfigReloadFailed"),),
        operation="rule_file_broken",
    ),
)
