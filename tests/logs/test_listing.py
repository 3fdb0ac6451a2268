"""Local globs match the same files as in fsspec, and report each error with the path that it hides."""

from __future__ import annotations

import ast
import errno
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from monitor.logs.listing import Listing, LogListingError, Unlisted, belongs, list_files, list_log
from monitor.settings.logs import LogSettings

NAMES = (
    "a",
    "b",
    "ab",
    "a.csv",
    "b.csv",
    "c[1].csv",
    "d-1",
    ".hid",
    "_x",
    "x y",
    "ü.csv",
    "a.tmp",
    "new\nline",
)
GLOBS = (
    "*", "*/*", "**", "**/*", "**/*.csv", "*.csv", "a/**", "a/**/b.csv", "[ab]", "[!a]*", "?", "?/?",
    "a*/*.csv", "**/a/*", "*/**/*.csv", "a/b", "a.csv", "[", "c[[]1].csv", "[]", "**/**", "**/b/**",
    ".*", "*/", "a?*",
)  # fmt: skip
OF_THE_TREE = {"Too many levels of symbolic links", "No such file or directory", "Not a directory"}


def listed(*patterns: Path | str) -> Listing:
    return list_log(LogSettings(path=tuple(map(str, patterns))))


def by_fsspec(pattern: str) -> list[str]:
    """The files that fsspec finds, without unfinished ones."""
    found = fsspec.filesystem("file").glob(str(Path(pattern).absolute()))
    names = [(path, path.rsplit("/", 1)[-1]) for path in found if os.path.isfile(path)]
    return sorted(p for p, name in names if name[:1] not in "._" and not name.endswith((".tmp", ".part")))


def plant(folder: Path, draw: random.Random, depth: int) -> None:
    for name in draw.sample(NAMES, draw.randint(0, 6)):
        kind = draw.random()
        if kind < 0.45 and depth:
            (folder / name).mkdir()
            plant(folder / name, draw, depth - 1)
        elif kind < 0.55:
            (folder / name).symlink_to(draw.choice(("a", "..", "b.csv", "nowhere")))
        else:
            (folder / name).write_text("x")


@pytest.mark.parametrize("seed", range(12))
def test_a_glob_matches_the_same_files_as_in_fsspec(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    plant(tmp_path, draw, 3)
    (tmp_path / "a.csv").is_dir() or (tmp_path / "a.csv").write_text("x")
    matches = 0
    for glob in GLOBS:
        pattern = f"{tmp_path}/{glob}"
        found = listed(pattern)
        assert list(found.files) == by_fsspec(pattern), glob
        assert {one.reason for one in found.errors} <= OF_THE_TREE
        assert all(belongs(LogSettings(path=pattern), path) for path in found.files)
        matches += len(found.files)
    assert matches > 0


def test_two_stars_inside_a_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="entire path component"):
        listed(tmp_path / "a**b/*.csv")


def test_a_loop_of_links_is_reported_and_hides_only_itself(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("x")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "dangling.csv").symlink_to("nowhere")
    found = listed(tmp_path / "*.csv")
    assert list(found.files) == [str(tmp_path / "good.csv")]
    assert found.errors == [Unlisted(str(tmp_path / "loop.csv"), "Too many levels of symbolic links")]
    (tmp_path / "folder").symlink_to("folder")
    assert [one.path for one in listed(tmp_path / "folder/*.csv").errors] == [str(tmp_path / "folder")]


def test_a_folder_that_does_not_exist_is_marked_as_missing_and_its_siblings_are_listed(
    tmp_path: Path,
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/a.csv").write_text("x")
    found = listed(tmp_path / "gone/*.csv", tmp_path / "there/*.csv", tmp_path / "gone2/one.csv")
    assert list(found.files) == [str(tmp_path / "there/a.csv")]
    assert [(one.path, one.is_missing) for one in found.errors] == [
        (str(tmp_path / "gone"), True),
        (str(tmp_path / "gone2"), True),
    ]
    assert listed(tmp_path / "there/deleted.csv").errors == []  # its folder says that it is not there


AS_NOBODY = """
import os, resource, sys
from monitor.logs.listing import list_log
from monitor.settings.logs import LogSettings
kept, settings = [], LogSettings(path=sys.argv[1])
if sys.argv[2] == "no_right":
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
else:
    limit = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit + 2, limit + 2))
    try:
        while True:
            kept.append(open("/dev/null"))
    except OSError:
        pass
found = list_log(settings)
for one in kept:
    one.close()
print([os.path.basename(path) for path in found.files])
print([(os.path.basename(one.path), one.reason) for one in found.errors])
"""


def in_a_process(pattern: Path, how: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(pattern), how], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest closes its own to others whenever a run starts."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_without_permission_is_reported_and_hides_only_what_is_below_it(open_folder: Path) -> None:
    for name in ("a", "b", "c", "elsewhere"):
        (open_folder / name).mkdir()
        (open_folder / name / f"{name}.csv").write_text("x")
        (open_folder / name).chmod(0o755)  # whatever the umask is
        (open_folder / name / f"{name}.csv").chmod(0o644)
    (open_folder / "b").chmod(0o000)  # cannot be listed
    (open_folder / "c").chmod(0o444)  # its names can be listed, its files cannot be looked at
    (open_folder / "elsewhere").chmod(0o000)  # cannot hold a match
    files, errors = in_a_process(open_folder / "[abc]/*.csv", "no_right")
    assert files == "['a.csv']"
    assert sorted(ast.literal_eval(errors)) == [("b", "Permission denied"), ("c.csv", "Permission denied")]


def test_a_process_without_free_file_descriptors_reports_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x")
    files, errors = in_a_process(tmp_path / "*.csv", "no_descriptor")
    assert files == "[]"
    assert errors == f"[({tmp_path.name!r}, 'Too many open files')]"


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_failing_disk_or_a_stale_mount_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The only mock of this file: a test cannot have a failing disk or a stale NFS mount."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text("x")
    real = os.scandir

    def failing(path: str) -> object:
        if path == str(tmp_path / "b"):
            raise OSError(number, os.strerror(number), path)
        return real(path)

    monkeypatch.setattr("monitor.logs.listing.os.scandir", failing)
    found = listed(tmp_path / "*/x.csv")
    assert list(found.files) == [str(tmp_path / "a/x.csv")]
    assert found.errors == [Unlisted(str(tmp_path / "b"), os.strerror(number))]
    with pytest.raises(LogListingError, match="cannot be listed"):
        list_files(LogSettings(path=str(tmp_path / "b/*.csv")))
