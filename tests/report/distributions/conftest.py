"""The figures of one hour, read once for the tests of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.report.distributions.desk import Drawn
from tests.report.distributions import drawn_shop


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drawn")


@pytest.fixture(scope="module")
def shown(folder: Path) -> Drawn:
    """The figures of a shop without models: scores are those of the exposures."""
    return drawn_shop.drawn(drawn_shop.write(folder / "shop"))


@pytest.fixture(scope="module")
def of_models(folder: Path) -> Drawn:
    """The figures of the same shop with a log of samples."""
    return drawn_shop.drawn(drawn_shop.write(folder / "models", with_samples=True))
