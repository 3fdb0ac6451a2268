"""The real Prometheus and Alertmanager, started on loopback and stopped again."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

_UP_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 600.0


class NotInstalledError(RuntimeError):
    """A program that the scoreboard needs is not there."""


def program(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise NotInstalledError(f"{names[0]} is not installed; `sh deploy/install-test-services` installs it")


def version(*names: str) -> str:
    """What a program says of its version."""
    done = subprocess.run([program(*names), "--version"], capture_output=True, text=True, check=True)
    return (done.stdout or done.stderr).splitlines()[0].split(" (")[0].replace(", version", "")


@contextmanager
def serving(command: Callable[[str], Sequence[str]], folder: Path, name: str) -> Iterator[str]:
    """The URL of a server while the block lasts; `command` makes its command from its address.

    Raises RuntimeError where it does not come up; its output is in `folder`.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(command(address), stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        _wait(f"http://{address}/-/ready", process, log)
        yield f"http://{address}"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _UP_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"{url} does not answer:\n{log.read_text('utf-8', 'replace')[-2000:]}")


def ask(url: str, form: dict[str, Any] | None = None, body: Any = None) -> Any:
    """The JSON that a server answers: to a GET, a form or a JSON body. Raises RuntimeError with its words."""
    data, kind = None, "application/x-www-form-urlencoded"
    if form is not None:
        data = urllib.parse.urlencode(form).encode()
    elif body is not None:
        data, kind = json.dumps(body).encode(), "application/json"
    request = urllib.request.Request(url, data, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=_ASK_SECONDS) as answer:
            text = answer.read()
    except urllib.error.HTTPError as exc:
        raise RuntimeError(f"{url}: {exc.code} {exc.read().decode('utf-8', 'replace')[:500]}") from exc
    return json.loads(text) if text else None
