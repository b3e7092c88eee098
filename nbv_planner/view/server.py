"""Serves the live page: one page, its script and style, and the events. Nothing can be changed
through it.

The state of an episode is sent as plain data in server-sent events: each client receives the
changes.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nbv_planner.errors import SettingError, reason
from nbv_planner.view.live import (
    SECTIONS,
    LiveEpisode,
    LiveView,
)
from nbv_planner.view.sections import section


class Feed:
    """Makes events of a live episode for any number of clients.

    The text of a section is made once per change and shared by all; only the newest text of each is
    kept, so memory grows neither with time nor with slow clients: these skip outdated versions.
    """

    def __init__(self, live: LiveEpisode) -> None:
        """Serve `live`."""
        self.live = live
        self._lock = threading.Lock()
        self._texts: dict[str, tuple[int, str]] = {}

    def event(self, known: Mapping[str, int]) -> tuple[bytes, Mapping[str, int]]:
        """The sections that differ from the versions `known` as one event, and the versions it
        holds.
        """
        view = self.live.view()
        changed = [name for name in SECTIONS if view.versions[name] != known.get(name)]
        parts = ",".join(f'"{name}":{self._text(view, name)}' for name in changed)
        return f"event: change\ndata: {{{parts}}}\n\n".encode(), view.versions

    def alive(self) -> bytes:
        """An event with the seconds since the last message; also detects a disconnected client."""
        return f"event: alive\ndata: {self.live.silence:.1f}\n\n".encode()

    def _text(self, view: LiveView, name: str) -> str:
        with self._lock:
            version, text = self._texts.get(name, (-1, ""))
            if version < view.versions[name]:
                version = view.versions[name]
                text = json.dumps(section(view, name), allow_nan=False, separators=(",", ":"))
                self._texts[name] = (version, text)
            return text


# Seconds: least time between events, greatest between keep-alives, and timeout of a client that
# does not read.
_PERIOD, _ALIVE, _STUCK = 0.2, 2.0, 20.0
# Simultaneous browsers; each needs a thread.
_CLIENTS = 32
_FOLDER = Path(__file__).parent / "page"
_SCRIPTS = ("live", "panels", "plot", "space")
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript") for name in _SCRIPTS},
}
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
}


class LiveServer(ThreadingHTTPServer):
    """The page of a live episode.

    Raises:
        SettingError: the address cannot be used.
    """

    daemon_threads = True

    def __init__(self, live: LiveEpisode, host: str, port: int) -> None:
        """Bind to `host` and `port`; port 0 chooses a free one."""
        if not host:  # all interfaces, for sockets
            raise SettingError(
                "host: must be an address of this machine; 0.0.0.0 stands for all of them"
            )
        self.feed = Feed(live)
        self.ending = threading.Event()
        self.watched = threading.Event()  #: whether a page has been opened.
        self.clients = threading.BoundedSemaphore(_CLIENTS)
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise SettingError(f"cannot serve on {host} port {port}: {reason(error)}") from error

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{self.server_address[0]!s}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A disconnected browser is not reported; any other error is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET."""

    server: LiveServer
    protocol_version = "HTTP/1.1"
    timeout = _STUCK

    def handle_one_request(self) -> None:
        """Answer a request; one whose head takes too long ends, even if a byte comes now and
        then.
        """
        self._patience = threading.Timer(_STUCK, self._give_up)
        self._patience.daemon = True
        self._patience.start()
        try:
            super().handle_one_request()
        finally:
            self._patience.cancel()

    def _give_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def parse_request(self) -> bool:
        """Read the head of a request."""
        complete = super().parse_request()
        self._patience.cancel()
        return complete

    def do_GET(self) -> None:
        """Send a file or the events."""
        path = self.path.partition("?")[0]
        if "Transfer-Encoding" in self.headers or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # else its body would be read as the next request
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", b"a request has no body here\n")
        elif not self._is_asked_for_by_name():
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"ask for this server by its own name\n")
        elif path == "/events":
            self._events()
        elif path in _FILES:
            name, kind = _FILES[path]
            self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", (_FOLDER / name).read_bytes())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"nothing here\n")

    def _is_asked_for_by_name(self) -> bool:
        """Whether the request is for an address of this machine, not for a host name chosen by
        another site.

        A server bound to the loopback interface is reached by other pages only through a name of
        theirs that resolves to it; a browser gives that name here.
        """
        if not str(self.server.server_address[0]).startswith("127."):
            return True
        host = re.sub(r":\d*$", "", self.headers.get("Host") or "").lower()  # port 80 is left out
        return host in ("localhost", str(self.server.server_address[0]))

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self._begin(status, {"Content-Type": kind, "Content-Length": str(len(content))})
        self.wfile.write(content)

    def _begin(self, status: HTTPStatus, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        last = {"Connection": "close"} if self.close_connection else {}
        for name, value in {**headers, **_HEADERS, **last}.items():
            self.send_header(name, value)
        self.end_headers()

    def _events(self) -> None:
        """Send events until the client disconnects or the server ends."""
        if not self.server.clients.acquire(blocking=False):
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"too many pages are open\n")
            return
        try:
            self.close_connection = True
            self._begin(HTTPStatus.OK, {"Content-Type": "text/event-stream"})
            self.wfile.write(b"retry: 1000\n\n")
            self.server.watched.set()
            self._send_events()
        finally:
            self.server.clients.release()

    def _send_events(self) -> None:
        feed, ending = self.server.feed, self.server.ending
        known: Mapping[str, int] = {}
        with suppress(OSError):
            while not ending.wait(_PERIOD if known else 0.0):
                if not known or feed.live.wait(known, _ALIVE):
                    content, known = feed.event(known)
                    self.wfile.write(content)
                self.wfile.write(feed.alive())

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


@contextmanager
def serving(live: LiveEpisode, host: str, port: int) -> Iterator[LiveServer]:
    """Serve in separate threads, as :class:`LiveServer`."""
    with LiveServer(live, host, port) as server:
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            server.shutdown()
            thread.join()
