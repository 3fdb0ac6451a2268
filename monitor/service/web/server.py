"""Runs the web application in a thread: plain HTTP or TLS, with or without basic auth."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

import uvicorn

from monitor.core.errors import ExpectedError
from monitor.history.snapshot import Snapshot
from monitor.history.store import Store
from monitor.report.distributions.desk import Desk
from monitor.service.web.app import ReloadOutcome, make_app
from monitor.service.web.auth import Passwords
from monitor.service.web.connections import IDLE_SECONDS, LimitedListener, LimitedProtocol
from monitor.service.web.distributions import known_files
from monitor.service.web.web_config import WebConfig, WebConfigError, load_web_config
from monitor.settings.config import Config
from monitor.settings.server import ServerSettings, is_loopback, split_listen

logger = logging.getLogger(__name__)

_START_SECONDS: Final = 10.0
_DRAIN_SECONDS: Final = 2  # for running requests when stopping


class ServeError(ExpectedError):
    """The server cannot start: the address is taken, or it belongs to another machine."""

    hint = "Is another monitor running? server.listen in the config says where this one listens."


class WebServer:
    """A web server. `address` is where it listens, `url` where people reach it."""

    def __init__(self, settings: ServerSettings, config: WebConfig, listener: socket.socket) -> None:
        self._settings = settings
        self._config = config
        self._listener = listener
        self._tls = None if config.tls is None else config.tls.context()
        self._lasting = None if config.tls is None else config.tls.lasting()
        host, port = listener.getsockname()[:2]
        self.address = f"{'http' if self._tls is None else 'https'}://{_in_url(host)}:{port}"
        self.url = settings.public_url(tls=self._tls is not None, port=port)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.at_stop: Callable[[], None] = lambda: None  # ends what a request would wait for

    def users(self) -> Mapping[str, str]:
        return self._config.users

    def start(self, app: object) -> None:
        """Serve in a daemon thread. Returns once it accepts connections."""
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            loop="asyncio",
            http=LimitedProtocol,
            timeout_keep_alive=IDLE_SECONDS,
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            ssl_context_factory=None if self._tls is None else lambda *_: self._tls_context(),
        )
        server = uvicorn.Server(config)
        # Outside the main thread uvicorn installs no signal handlers. The daemon has its own.
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [self._listener]}, name="web", daemon=True
        )
        thread.start()
        self._server, self._thread = server, thread
        deadline = time.monotonic() + _START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise ServeError(f"the web server at {self.address} did not start")
            time.sleep(0.01)

    def _tls_context(self) -> ssl.SSLContext:
        assert self._tls is not None
        return self._tls

    def reload_web_config(self) -> None:
        """Read the users and the certificate again. New connections use them.

        After a WebConfigError the old ones stay in use. Only a restart switches TLS on or off, and changes
        what clients must show.
        """
        path = self._settings.web_config
        if path is None:
            return
        new = load_web_config(path)
        if (new.tls is None) != (self._tls is None):
            raise WebConfigError(path, [("tls_server_config", "can be added or removed only with a restart")])
        if self._tls is not None and new.tls is not None:
            if new.tls.lasting() != self._lasting:
                why = "client_ca_file, client_auth_type and min_version change only with a restart"
                raise WebConfigError(path, [("tls_server_config", why)])
            self._tls.load_cert_chain(new.tls.cert_file, new.tls.key_file)
        self._config = new

    def stop(self, timeout: float = 5.0) -> bool:
        """Finish the running requests and end the thread. True if it ended in time."""
        if self._server is None or self._thread is None:
            self._listener.close()
            return True
        self._server.should_exit = True
        self.at_stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            self._server.force_exit = True
            self._thread.join(1.0)
        return not self._thread.is_alive()


def serve(
    settings: ServerSettings,
    current: Callable[[], Snapshot],
    *,
    reload: Callable[[], ReloadOutcome],
    not_ready: Callable[[], str],
    healthy: Callable[[], bool],
    store: Store | None = None,
    config: Callable[[], Config | None] = lambda: None,
) -> WebServer:
    """Start serving. Call `stop()` on the returned server to end it. For the arguments see `make_app`.

    Raises WebConfigError for a wrong web config file and ServeError if it cannot listen.
    """
    web_config = WebConfig() if settings.web_config is None else load_web_config(settings.web_config)
    host, _ = split_listen(settings.listen)
    if not is_loopback(host) and not web_config.guards:
        logger.warning(
            "the status page and /metrics listen on %s without authentication: anybody who reaches this "
            "address can read item ids and evidence; set server.web_config",
            settings.listen,
        )
    server = WebServer(settings, web_config, _listen(settings.listen))
    desk = Desk(known_files(store))
    server.at_stop = desk.stop
    app = make_app(
        current,
        reload=reload,
        not_ready=not_ready,
        healthy=healthy,
        settings=settings,
        url=server.url,
        passwords=Passwords(server.users),
        store=store,
        config=config,
        desk=desk,
    )
    try:
        server.start(app)
    except BaseException:
        server.stop()
        raise
    logger.info("status page at %s/, metrics at %s/metrics", server.address, server.address)
    return server


def serve_app(address: str, app: object) -> WebServer:
    """Serve another application, without users and without TLS. Raises ServeError if it cannot listen."""
    server = WebServer(ServerSettings(listen=address), WebConfig(), _listen(address))
    try:
        server.start(app)
    except BaseException:
        server.stop()
        raise
    return server


def _listen(address: str) -> socket.socket:
    host, port = split_listen(address)
    try:
        listener = _every_interface(port) if not host else _one_interface(host, port)
    except OSError as error:
        raise ServeError(f"cannot listen on {address}: {error.strerror or error}") from None
    listener.setblocking(False)
    return LimitedListener(listener)


def _one_interface(host: str, port: int) -> socket.socket:
    family, *_, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(where[:2], family=family)


def _every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise
    return socket.create_server(("", port))  # IPv6 is switched off on this machine


def _in_url(host: str) -> str:
    shown = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host  # noqa: S104 (compared, not bound)
    return f"[{shown}]" if ":" in shown else shown
