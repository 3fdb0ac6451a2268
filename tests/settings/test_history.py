"""Where the history is, by default: in the state folder, whatever that is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.settings.history import HistorySettings, parse_url


@pytest.mark.parametrize("folder", ["state", "a state", "what?", "my%20shop", "100%", "a#b&c=d", "käse"])
def test_the_default_history_is_in_the_state_folder(folder: str) -> None:
    state = Path("/var/lib") / folder
    assert parse_url(HistorySettings().location(state)).database == f"/var/lib/{folder}/history.sqlite"
