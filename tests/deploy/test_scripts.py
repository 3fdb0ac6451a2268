from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKE_VENV = ROOT / "deploy" / "make-venv"
INSTALL = ROOT / "deploy" / "install-test-services"
NEEDED = ("sh", "env", "rm", "ls", "cat", "id")


def run(
    script: Path, *arguments: str, cwd: Path, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(path)} if path else dict(os.environ)
    shell = shutil.which("dash") or "/bin/sh"
    return subprocess.run(
        [shell, str(script), *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH with the commands of a minimal system, whose user may not become root."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED[:-1]:
        (folder / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    command(folder / "id", "echo 1000")
    return folder


def command(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    "script", [MAKE_VENV, INSTALL, ROOT / "deploy" / "test-pythons"], ids=lambda path: path.name
)
def test_a_script_is_plain_posix_shell(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.startswith("#!/bin/sh\n")
    subprocess.run([shutil.which("dash") or "sh", "-n", str(script)], check=True)
    for bashism in ("[[", "function ", "<<<", "source ", "local ", "echo -e"):
        assert bashism not in text


def test_make_venv_makes_an_environment_with_pip_and_leaves_a_good_one_alone(tmp_path: Path) -> None:
    first = run(MAKE_VENV, sys.executable, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    pip = tmp_path / ".venv" / "bin" / "python"
    assert subprocess.run([pip, "-m", "pip", "--version"], check=False).returncode == 0
    (tmp_path / ".venv" / "mine").touch()
    assert run(MAKE_VENV, sys.executable, cwd=tmp_path).returncode == 0
    assert (tmp_path / ".venv" / "mine").exists()


def test_make_venv_replaces_what_an_interrupted_attempt_left(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    assert run(MAKE_VENV, sys.executable, cwd=tmp_path).returncode == 0
    assert (tmp_path / ".venv" / "bin" / "python").exists()


def test_make_venv_says_what_to_install_without_permission(tmp_path: Path, bare: Path) -> None:
    command(bare / "python3", 'case "$2" in *ensurepip*) exit 1 ;; *) echo 3.11 ;; esac')
    answer = run(MAKE_VENV, cwd=tmp_path, path=bare)
    assert answer.returncode == 1
    assert "apt-get install python3.11-venv" in answer.stderr
    assert not (tmp_path / ".venv").exists()


def test_make_venv_installs_venv_as_root_and_updates_the_lists_where_they_are_old(
    tmp_path: Path, bare: Path
) -> None:
    command(bare / "id", "echo 0")
    command(
        bare / "python3",
        f'case "$2" in *ensurepip*) [ -e {tmp_path}/installed ] ;; '
        f"venv) echo made >{tmp_path}/made ;; *) echo 3.11 ;; esac",
    )
    command(
        bare / "apt-get",
        f'echo "$1 $*" >>{tmp_path}/calls; case "$1" in update) echo >{tmp_path}/updated ;; '
        f"install) [ -e {tmp_path}/updated ] && echo >{tmp_path}/installed ;; esac",
    )
    answer = run(MAKE_VENV, cwd=tmp_path, path=bare)
    assert answer.returncode == 0, answer.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls] == ["install", "update", "install"]
    assert calls[2].endswith("python3.11-venv")
    assert (tmp_path / "made").exists()


def test_make_venv_refuses_a_python_that_is_too_old_or_not_there(tmp_path: Path, bare: Path) -> None:
    command(bare / "python3", "echo 3.9")
    old = run(MAKE_VENV, cwd=tmp_path, path=bare)
    assert old.returncode == 1
    assert "python3 is 3.9, but 3.11, 3.12 or 3.13 is needed" in old.stderr
    absent = run(MAKE_VENV, "python3.99", cwd=tmp_path, path=bare)
    assert absent.returncode == 1
    assert "there is no python3.99" in absent.stderr


def test_install_reports_missing_programs_and_succeeds_without_permission_to_install(
    tmp_path: Path, bare: Path
) -> None:
    command(bare / "prometheus", "true")
    command(bare / "promtool", "true")
    command(bare / "chromedriver", "true")
    answer = run(INSTALL, cwd=tmp_path, path=bare)
    assert answer.returncode == 0
    assert "missing: prometheus-alertmanager chromium " in answer.stderr
    assert "without root or sudo" in answer.stderr
    assert "chromium-driver" not in answer.stderr


def test_install_prints_nothing_if_everything_is_installed(tmp_path: Path, bare: Path) -> None:
    for name in (
        "prometheus",
        "promtool",
        "alertmanager",
        "amtool",
        "chromium",
        "chromedriver",
        "postgres",
        "java",
        "systemd-analyze",
        "curl",
    ):
        command(bare / name, "true")
    answer = run(INSTALL, cwd=tmp_path, path=bare)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")


def test_one_package_that_cannot_be_had_does_not_stop_the_others(tmp_path: Path, bare: Path) -> None:
    if not Path("/usr/sbin/policy-rc.d").exists():
        pytest.skip("the script would write its guard against starting services on this machine")
    command(bare / "id", "echo 0")
    for name in (
        "prometheus",
        "promtool",
        "alertmanager",
        "amtool",
        "postgres",
        "java",
        "systemd-analyze",
        "curl",
    ):
        command(bare / name, "true")
    body = (
        f'echo "$*" >>{tmp_path}/calls; case "$*" in update*) ;; *"chromium chromium-driver"*) exit 100 ;; '
        f"*chromium-driver) echo '#!/bin/sh' >{bare}/chromedriver; "
        f"{shutil.which('chmod')} +x {bare}/chromedriver ;; "
        "*) exit 100 ;; esac"
    )
    command(bare / "apt-get", body)
    answer = run(INSTALL, cwd=tmp_path, path=bare)
    assert answer.returncode == 0
    assert "could not be installed: chromium ;" in answer.stderr
    assert len((tmp_path / "calls").read_text().splitlines()) == 4
