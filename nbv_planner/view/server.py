"""Serves the live page: one page, its script and style, and the events. Nothing can be changed
through it.

The state of an episode is sent as plain data in server-sent events: each client receives the
changes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import re
import socket
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nbv_planner.episode.messages import Candidates, PlannerStatus
from nbv_planner.episode.records import FULL_ENOUGH
from nbv_planner.errors import SettingError, reason
from nbv_planner.geometry import cartesian_to_polar, wrap_angle
from nbv_planner.report import outlines
from nbv_planner.surface.seam import Hits
from nbv_planner.view.live import (
    SECTIONS,
    LiveEpisode,
    LiveView,
    estimated_coverage,
    target_words,
    true_coverage,
)
from nbv_planner.world.ground.grid_ground import GridGround
from nbv_planner.world.objects import SurfacePoints
from nbv_planner.world.pose import CameraPose, Poses

# Enough for a smooth curve on any screen; bounds the size of an event.
_CURVE_POINTS = 361
_DOTS = 3000
Data = dict[str, Any]


def section(view: LiveView, name: str) -> Data | list[Data]:
    """Content of one of :data:`nbv_planner.view.live.SECTIONS`; numbers that are not finite become
    None.
    """
    return _SECTIONS[name](view)


def _status(view: LiveView) -> Data:
    status = view.status or PlannerStatus("", "", 0)
    ended, estimate = status.termination, status.estimate
    return {
        "title": view.title,
        "state": status.state,
        "message": status.message,
        "reason": ended.reason.value if ended else "",
        "doubt": status.in_doubt,
        "views": status.views,
        "elapsed": _number(status.elapsed),
        "estimate": _number(status.coverage_estimate),
        "interval": [estimate.lower, estimate.upper, estimate.level] if estimate else None,
        "target": target_words(view),
        "waits_for": list(view.waits_for),
    }


def _belief(view: LiveView) -> Data:
    if view.belief is None:
        return {"angle": [], "mean": [], "lower": [], "upper": []}
    curve = outlines.close_belief(view.belief, most=_CURVE_POINTS).about_origin()
    return {name: _list(getattr(curve, name), 4) for name in ("angle", "mean", "lower", "upper")}


def _camera(view: LiveView) -> Data:
    def outline(pose: CameraPose | None, shape: Callable[..., Any]) -> list[list[float | None]]:
        return [] if pose is None else [_list(corner, 3) for corner in shape(pose, view.scene)]

    return {
        "cone": outline(view.pose, outlines.cone_outline),
        "camera": outline(view.pose, outlines.camera_outline),
        "goal": outline(view.goal, outlines.camera_outline),
    }


def _decision(view: LiveView) -> Data:
    """Candidates of the last decision with the chosen one, and all views so far."""
    taken = view.status.views if view.status else 0
    decisions, places = [logged.decision for logged in view.views], _chosen(view)
    views = [
        [decision.round, _number(float(wrap_angle(place.polar[0]))), place.distance]
        for decision, place in zip(decisions, places, strict=True)
    ]
    data: Data = {
        "views": views,
        "taken": taken,
        "angle": [],
        "utility": [],
        "feasible": [],
        "places": [],
        "cameras": [],
        "free": False,
    }
    if view.views:
        names = ("round", "utility", "runner_up", "margin", "milliseconds")
        data["chosen"] = {name: _number(getattr(decisions[-1], name)) for name in names}
        data["chosen"] |= {
            "angle": places[-1].polar[0],
            "place": places[-1].words(view.scene.view_distance),
        }
        data["choice"] = view.views[-1].choice
        values = view.views[-1].candidates
        if values is not None:
            known = values.views(view.scene.view_distance, decisions[-1].centre)
            angle, utility, feasible = outlines.by_angle(known, values.utility, values.feasible)
            data.update(
                angle=_list(angle, 5), utility=_list(utility, None), feasible=feasible.tolist()
            )
            if outlines.are_free(known):
                data.update(_free(view, known, values), free=True)
    return data


def _chosen(view: LiveView) -> list[CameraPose]:
    return [logged.decision.view(view.scene.view_distance) for logged in view.views]


def _ways(view: LiveView, barred: GridGround | None) -> list[list[list[float | None]]]:
    """Corners of the ways between the views; on the circle only where the ground is known."""
    taken = _chosen(view)
    if barred is None and not outlines.are_free(Poses.of(taken)):
        return []
    return [[_list(xy, 3) for xy in way] for way in outlines.ways(taken, view.scene, barred)]


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of red, green, blue and opacity, shape (H, W, 4), for which Pillow need not be
    installed.
    """

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    height, width, _ = pixels.shape
    # each begins with its filter, 0: none
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0))).tobytes()
    # eight bits of red, green, blue and opacity
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


# Cells of a side of the picture of the ground; of more every second, third, ... one is shown.
_CELLS = 400


def _ground(view: LiveView) -> Data:
    """The ways between the views, and where the robot must not be as a picture: corner, direction,
    side of a pixel.
    """
    barred = outlines.barred_ground(view.ground, view.belief, view.scene)
    if barred is None:
        return {"ways": _ways(view, None)}
    step = math.ceil(max(barred.cells.shape) / _CELLS)
    shades = np.rint(255.0 * outlines.ground_shades(barred)[::step, ::step]).astype(np.uint8)
    map = barred.map
    return {
        "ways": _ways(view, barred),
        "png": base64.b64encode(_png(shades)).decode("ascii"),
        "x": map.x,
        "y": map.y,
        "yaw": map.yaw,
        "width": shades.shape[1],
        "height": shades.shape[0],
        "side": step * map.resolution,
    }


def _free(view: LiveView, known: Poses, values: Candidates) -> Data:
    """Where cameras may stand, and the cameras that took the views."""
    places, _, _ = outlines.field_of(known, values.utility, values.feasible)
    cameras = [outlines.camera_outline(one, view.scene) for one in _chosen(view)]
    return {
        "places": [_list(place, 3) for place in places],
        "cameras": [[_list(xy, 3) for xy in camera] for camera in cameras],
    }


def _coverage(view: LiveView) -> Data:
    return {
        "estimate": [list(point) for point in estimated_coverage(view)],
        "true": [list(point) for point in true_coverage(view)],
        "target": FULL_ENOUGH,
        "label": f"{target_words(view)} (%)",
    }


def _checks(view: LiveView) -> list[Data]:
    checks = view.belief.checks if view.belief else ()
    return [{"level": check.level.name.lower(), "words": check.words} for check in checks]


def _dots(points: SurfacePoints | None, most: int) -> Data:
    """At most `most` points, equally spaced in their order."""
    if points is None:
        return {"angle": [], "radius": []}
    kept = outlines.spread(len(points), most)
    return {"angle": _list(points.angle[kept], 4), "radius": _list(points.radius[kept], 3)}


def _hits(hits: Hits) -> Data:
    return _dots(SurfacePoints(*cartesian_to_polar(*hits.points.T)), _DOTS)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _list(values: ArrayLike, digits: int | None) -> list[float | None]:
    found: Iterable[float] = np.asarray(values, dtype=float).tolist()
    rounded = (
        found
        if digits is None
        else (round(value, digits) if math.isfinite(value) else value for value in found)
    )
    return [_number(value) for value in rounded]


_SECTIONS: dict[str, Callable[[LiveView], Data | list[Data]]] = {
    "status": _status,
    "scene": lambda view: {name: _number(value) for name, value in asdict(view.scene).items()},
    "belief": _belief,
    "truth": lambda view: _dots(view.truth, 2 * _CURVE_POINTS),
    "hits": lambda view: {"earlier": _hits(view.earlier_hits), "last": _hits(view.last_hits)},
    "camera": _camera,
    "decision": _decision,
    "coverage": _coverage,
    "checks": _checks,
    "ground": _ground,
}


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
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript") for name in ("live", "panels", "plot")},
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
        with contextlib.suppress(OSError):
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
        with contextlib.suppress(OSError):
            while not ending.wait(_PERIOD if known else 0.0):
                if not known or feed.live.wait(known, _ALIVE):
                    content, known = feed.event(known)
                    self.wfile.write(content)
                self.wfile.write(feed.alive())

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests."""


@contextlib.contextmanager
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
