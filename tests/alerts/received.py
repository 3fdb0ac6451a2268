"""Real servers on loopback that take messages: HTTP, as chats and pagers do, and SMTP."""

from __future__ import annotations

import base64
import email
import http.server
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import default
from typing import Any


@dataclass(frozen=True)
class Posted:
    """One request: its path with the query, its headers, its JSON."""

    path: str
    headers: dict[str, str]
    content: Any


class HttpSink:
    """Takes every POST. `answers` maps the beginning of a path to a status and a body; else 200 and {}."""

    def __init__(self) -> None:
        self.posted: list[Posted] = []
        self.answers: dict[str, tuple[int, str]] = {}
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.posted.append(Posted(self.path, dict(self.headers), json.loads(body)))
                found = [one for path, one in sink.answers.items() if self.path.startswith(path)]
                status, text = found[0] if found else (200, "{}")
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def to(self, path: str) -> list[Posted]:
        """What came to paths that begin like this, in order."""
        return [one for one in list(self.posted) if one.path.startswith(path)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class SmtpSink:
    """A mail server that asks for a password, and keeps the messages."""

    def __init__(self, user: str, password: str) -> None:
        self.mails: list[EmailMessage] = []
        self.refused = 0
        expected = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
        sink = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 here")
                signed_in = False
                while line := self.rfile.readline().decode().strip():
                    verb = line.split(" ")[0].upper()
                    if verb == "EHLO":
                        self._say("250-here\r\n250 AUTH PLAIN")
                    elif verb == "AUTH":
                        signed_in = line.split(" ")[2] == expected
                        sink.refused += not signed_in
                        self._say("235 welcome" if signed_in else "535 wrong password")
                    elif verb == "DATA":
                        self._say("354 go on")
                        lines: list[bytes] = []
                        while (text := self.rfile.readline()) != b".\r\n":
                            lines.append(text.removeprefix(b"."))
                        assert signed_in
                        message = email.message_from_bytes(b"".join(lines), policy=default)
                        sink.mails.append(message)  # type: ignore[arg-type]
                        self._say("250 taken")
                    elif verb == "QUIT":
                        self._say("221 bye")
                        return
                    else:
                        self._say("250 ok")

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@contextmanager
def closing(*made: Callable[[], HttpSink | SmtpSink]) -> Iterator[list[Any]]:
    """The servers, closed at the end."""
    running = [make() for make in made]
    try:
        yield running
    finally:
        for one in running:
            one.close()
