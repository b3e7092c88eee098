"""Serves the live page: one page, its script and style, and the events. Nothing can be changed through it."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nbv_planner.errors import SettingError
from nbv_planner.live import LiveEpisode
from nbv_planner.web.feed import Feed

# Seconds: events at most this often, signs of life at least this often, and a client that does not read is given up.
_PERIOD, _ALIVE, _STUCK = 0.2, 2.0, 20.0
# Browsers at once; each takes a thread.
_CLIENTS = 32
_FOLDER = Path(__file__).parent
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript") for name in ("live", "panels", "plot")},
}
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


class LiveServer(ThreadingHTTPServer):
    """The page of a live episode.

    Raises:
        SettingError: the address cannot be used.
    """

    daemon_threads = True

    def __init__(self, live: LiveEpisode, host: str, port: int) -> None:
        """Bind to `host` and `port`; port 0 takes a free one."""
        self.feed = Feed(live)
        self.ending = threading.Event()
        self.clients = threading.BoundedSemaphore(_CLIENTS)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise SettingError(f"cannot serve on {host} port {port}: {error}") from error

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{self.server_address[0]!s}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of an answer is nothing to report; anything else is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET."""

    server: LiveServer
    protocol_version = "HTTP/1.1"
    timeout = _STUCK

    def do_GET(self) -> None:
        """Send a file or the events."""
        path = self.path.partition("?")[0]
        if not self._is_asked_for_by_name():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"ask for this server by its own name\n")
        elif path == "/events":
            self._events()
        elif path in _FILES:
            name, kind = _FILES[path]
            self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", (_FOLDER / name).read_bytes())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n")

    def _is_asked_for_by_name(self) -> bool:
        """Whether the request is for an address of this machine, not for a name that a page elsewhere made up.

        A server bound to the loopback interface is reached by other pages only through a name of theirs that resolves
        to it; a browser gives that name here.
        """
        if not str(self.server.server_address[0]).startswith("127."):
            return True
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        return host in ("localhost", str(self.server.server_address[0]))

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self._begin(status, {"Content-Type": kind, "Content-Length": str(len(content))})
        self.wfile.write(content)

    def _begin(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, **_HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()

    def _events(self) -> None:
        """Send events until the client goes away or the server ends."""
        if not self.server.clients.acquire(blocking=False):
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"too many pages are open\n")
            return
        try:
            self.close_connection = True
            self._begin(HTTPStatus.OK, {"Content-Type": "text/event-stream", "Connection": "close"})
            self.wfile.write(b"retry: 1000\n\n")
            self._tell()
        finally:
            self.server.clients.release()

    def _tell(self) -> None:
        feed, ending = self.server.feed, self.server.ending
        known: Mapping[str, int] = {}
        with contextlib.suppress(OSError):
            while not ending.wait(_PERIOD if known else 0.0):
                if not known or feed.live.wait(known, _ALIVE):
                    content, known = feed.event(known)
                    self.wfile.write(content)
                self.wfile.write(feed.alive())

    def log_message(self, format: str, *args: Any) -> None:
        """Keep requests out of the terminal."""


@contextlib.contextmanager
def serving(live: LiveEpisode, host: str, port: int) -> Iterator[LiveServer]:
    """Serve in threads of its own.

    Raises:
        SettingError: the address cannot be used.
    """
    with LiveServer(live, host, port) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            server.shutdown()
            thread.join()
