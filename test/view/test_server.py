"""The server of the live page, asked by a plain HTTP client."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from pathlib import Path

import pytest
from live_story import decision, judged_episode, status, told

import nbv_planner.view.server as module
from nbv_planner.episode.messages import CAMERA_POSE, ITERATION, STATUS
from nbv_planner.errors import SettingError
from nbv_planner.planning.endings import Termination, TerminationReason
from nbv_planner.report import colors
from nbv_planner.view.live import SECTIONS
from nbv_planner.view.server import Feed, serving
from nbv_planner.world.pose import CameraPose

FOLDER = Path(module.__file__).parent / "page"


def ask(server, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


class Client:
    """Reads events."""

    def __init__(self, server):
        self.answer = ask(server, "/events")
        assert self.answer.status == 200

    def event(self, wanted: str = "change") -> dict:
        """The next event of a kind."""
        while True:
            fields = {}
            while (line := self.answer.readline().decode()) not in ("\n", ""):
                name, _, value = line.rstrip("\n").partition(": ")
                fields[name] = value
            assert fields, "the stream has ended"
            if fields.get("event") == wanted:
                return json.loads(fields["data"])

    def close(self):
        self.answer.close()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/page.css", "text/css"),
        ("/live.js", "text/javascript"),
        ("/panels.js", "text/javascript"),
        ("/plot.js", "text/javascript"),
        ("/space.js", "text/javascript"),
        ("/?x=1", "text/html"),
    ],
)
def test_page_and_what_it_needs_are_there(server, path, kind):
    answer = ask(server, path)
    assert answer.status == 200
    assert answer.getheader("Content-Type") == f"{kind}; charset=utf-8"
    assert "default-src 'none'" in answer.getheader("Content-Security-Policy")
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert len(answer.read()) > 500


@pytest.mark.parametrize(
    "path", ["/nothing", "/../server.py", "/%2e%2e/server.py", "/feed.py", "//etc/passwd"]
)
def test_nothing_else_is_served(server, path):
    answer = ask(server, path)
    assert (answer.status, answer.read()) == (404, b"nothing here\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed(server, method):
    assert ask(server, "/", method).status == 501


@pytest.mark.parametrize(
    "host", ["evil.example:80", "127.0.0.1.evil.example:1", "", "evil.example"]
)
def test_page_of_another_site_cannot_reach_it_by_a_name_of_its_own(server, host):
    assert ask(server, "/events", Host=host).status == 403


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_it_is_reached_by_its_own_names(server, host):
    # browsers leave out port 80
    for name in (f"{host}:{server.server_port}", host, f"{host.upper()}:"):
        assert ask(server, "/", Host=name).status == 200


def test_no_host_is_not_every_host(live):
    with pytest.raises(SettingError, match="host: must be an address"), serving(live, "", 0):
        pass


@pytest.mark.parametrize("head", ["Content-Length: 38", "Transfer-Encoding: chunked"])
def test_the_body_of_a_request_is_not_the_next_request(server, head):
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as asked:
        body = b"GET /page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
        asked.sendall(f"GET / HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode() + body)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := asked.recv(65536):
                answer += part
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert b"Connection: close" in answer


def test_a_head_that_drips_in_ends(server, monkeypatch):
    """Each byte comes in time, the whole never does."""
    monkeypatch.setattr(module, "_STUCK", 1.0)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as asked:
        asked.settimeout(0.1)
        for _ in range(300):
            try:
                asked.sendall(b"G")
                if asked.recv(1000) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
    pytest.fail("the connection is still open")


def test_first_event_holds_everything_later_ones_what_has_changed(server, live):
    told(live, judged_episode())
    client = Client(server)
    assert set(client.event()) == set(SECTIONS)
    live.add(CAMERA_POSE, CameraPose(1.0, 2.0, 3.0), 99)
    assert set(client.event()) == {"camera"}
    live.add(
        STATUS,
        status(3, state="DONE", termination=Termination(TerminationReason.BAND_NARROW, {}, "")),
    )
    assert client.event()["status"]["reason"] == "BAND_NARROW"


def test_clients_that_come_late_and_several_at_once_see_the_same(server, live):
    told(live, judged_episode())
    first, second = Client(server), Client(server)
    assert first.event() == second.event()
    first.close()
    live.add(STATUS, status(3, message="after the first has left"))
    assert second.event()["status"]["message"] == "after the first has left"


def test_silence_is_told(server):
    assert Client(server).event("alive") >= 0.0


def test_clients_that_leave_free_their_place(server, live, monkeypatch):
    monkeypatch.setattr(server, "clients", threading.BoundedSemaphore(1))
    client = Client(server)
    client.event()
    refused = ask(server, "/events")
    assert (refused.status, refused.read()) == (503, b"too many pages are open\n")
    client.close()
    freed = threading.Event()

    def wait():
        server.clients.acquire()
        freed.set()

    threading.Thread(target=wait, daemon=True).start()
    for number in range(600):
        live.add(CAMERA_POSE, CameraPose(float(number), 0.0, 0.0), number)
        if freed.wait(0.05):
            return
    pytest.fail("the place was not freed")


def test_slow_client_skips_what_is_overtaken(live):
    """Only the newest text of a section is kept, and made once for all clients."""
    feed = Feed(live)
    _, known = feed.event({})
    for number in range(1, 200):
        live.add(ITERATION, decision(number))
        live.add(STATUS, status(number))
    content, newest = feed.event(known)
    assert content.count(b"event: change") == 1
    assert json.loads(content.decode().split("data: ", 1)[1])["status"]["views"] == 199
    assert len(feed._texts) == len(SECTIONS)
    texts = dict(feed._texts)
    assert feed.event(known)[0] == content
    assert all(feed._texts[name] is texts[name] for name in SECTIONS)
    assert feed.event(newest)[0] == b"event: change\ndata: {}\n\n"


def test_an_event_is_one_line_whatever_is_said(live):
    live.add(STATUS, status(0, message="two\nlines\r\n\ndata: forged\u2028 </script>"))
    content, _ = Feed(live).event({})
    assert content.count(b"\n") == 3
    assert json.loads(content.decode().split("data: ", 1)[1])["status"]["message"].startswith(
        "two\nlines"
    )


def test_port_that_is_taken_is_refused_in_words(live):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingError, match=f"127.0.0.1 port {port}"),
            serving(live, "127.0.0.1", port),
        ):
            pass


def test_colours_of_the_page_are_those_of_the_package():
    css = dict(re.findall(r"--(\w+): (#\w{6})", (FOLDER / "page.css").read_text(encoding="utf-8")))
    names = ("TRUTH", "MEAN", "BAND", "HIT", "LAST", "TARGET", "CAMERA", "FAINT")
    assert {name: css[name.lower()] for name in names} == {
        name: getattr(colors, name) for name in names
    }


@pytest.mark.parametrize(
    "name", ["page.html", "page.css", "live.js", "panels.js", "plot.js", "space.js"]
)
def test_page_loads_nothing_from_elsewhere_and_writes_no_markup(name):
    text = (FOLDER / name).read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert "://" not in text
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text
    )
