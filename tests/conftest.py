"""Fixtures that every part of the test suite shares."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: at the end one worker would be busy with them and the other idle."""
    items.sort(key=lambda item: "spark" not in item.path.parts)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs and published cases beside the checkout; absent elsewhere."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder ../shared with real logs and published cases is not present")
    return folder


def need(program: str, package: str) -> str:
    """The path of a real server that a test needs; in CI a missing one is a failure, elsewhere a skip."""
    found = shutil.which(program)
    if found is None:
        reason = f"{program} is not installed (package {package}); see deploy/install-test-services"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found
