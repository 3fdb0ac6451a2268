"""Where the files are that come with the monitor, in a checkout and in an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.core.shipped import SHIPPED, MissingFiles, shipped

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_checkout_has_the_files_where_people_edit_them(name: str) -> None:
    assert shipped(name) == ROOT / SHIPPED[name]
    assert any(path.is_file() for path in shipped(name).iterdir())


@pytest.mark.parametrize("name", SHIPPED)
def test_an_installed_package_has_its_own_files_and_ignores_a_folder_beside_it(
    name: str, tmp_path: Path
) -> None:
    package = tmp_path / "monitor"
    (package / "shipped" / name).mkdir(parents=True)
    (tmp_path / SHIPPED[name]).mkdir(parents=True)
    assert shipped(name, package) == package / "shipped" / name


def test_a_package_without_its_files_says_which_are_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingFiles, match="the runbooks are missing"):
        shipped("runbooks", tmp_path / "monitor")
