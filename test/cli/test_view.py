"""`nbv-planner view` as a process: the options, the page of running nodes, and its end."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import urllib.request

import command
import pytest

from nbv_planner.cli.main import main

HAS_ROS = importlib.util.find_spec("rclpy") is not None
needs_ros = pytest.mark.skipif(
    not HAS_ROS, reason="rclpy is not installed; make test brings the wheels"
)


@pytest.fixture
def start(tmp_path):
    """Return a function that starts the subcommand; it is ended after the test, whatever
    happens.
    """
    started = []

    def run(*options: str):
        started.append(command.start(["view", *options], tmp_path))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "70000"], ["--port", "70000", "65535"]),
        (["--port", "-1"], ["--port", "-1"]),
        (["--domain", "233"], ["--domain", "233", "232"]),
        (["--namespace", "a b"], ["--namespace", "'a b'"]),
        (["--namespace", "/a//b"], ["--namespace"]),
        (["--namespace", "a" * 50 + "!"], ["--namespace"]),
    ],
)
def test_value_that_is_not_allowed_is_refused_in_one_line(options, words, capsys):
    assert main(["view", "--web", *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert [word for word in words if word not in said] == []


@pytest.mark.skipif(HAS_ROS, reason="rclpy is installed, so the subcommand finds it")
def test_without_ros_it_says_what_to_install(capsys):
    assert main(["view"]) == 2
    assert "pip install '.[ros]'" in capsys.readouterr().err


@needs_ros
def test_a_demo_waits_for_its_page_and_the_page_shows_its_end(tmp_path):
    from nbv_planner.ros.node_processes import free_domain_id

    arguments = [
        "demo",
        "--view",
        "--speed",
        "20",
        "--no-figures",
        "--out",
        "out",
        "--domain",
        str(free_domain_id()),
    ]
    demo = command.start([*arguments, "--set", "max_views=2", "--set", "planner=greedy"], tmp_path)
    try:
        said = command.read_until(demo, "watch at ")
        assert "ROS domain" not in said, "the nodes wait for the page"
        with urllib.request.urlopen(
            said.rpartition("watch at ")[2].split()[0] + "events", timeout=120
        ) as page:
            events = page.read().decode()
        assert demo.wait(120) == 0, demo.stdout.read()
        assert "ended: MAX_VIEWS" in demo.stdout.read()
    finally:
        demo.kill()
        demo.communicate()
    assert '"title":"polygon:star \\u00b7 greedy \\u00b7 IOA"' in events
    assert '"reason":"MAX_VIEWS"' in events
    used = (tmp_path / "out" / "parameters.yaml").read_text(encoding="utf-8")
    assert "nbv_view" not in used, "the file can be used again"


@needs_ros
def test_port_that_is_taken_is_refused(capsys):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["view", "--web", "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot serve on 127.0.0.1" in capsys.readouterr().err


@needs_ros
def test_a_page_that_has_heard_nothing_is_ended_by_sigterm(start):
    from nbv_planner.ros.node_processes import free_domain_id

    process = start("--web", "--port", "0", "--domain", str(free_domain_id()))
    command.read_until(process, "watch at ")
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=180)
    assert process.returncode == 143, rest
    assert "Traceback" not in rest


@needs_ros
def test_page_of_running_nodes(start, tmp_path, fast_file):
    """Started late, on the domain of three real node processes; ended by Ctrl-C."""
    from nbv_planner.ros.node_processes import NodeProcesses, free_domain_id, isolated_environment

    domain = free_domain_id()
    with NodeProcesses(fast_file, tmp_path / "logs", isolated_environment(domain)):
        process = start("--web", "--port", "0", "--domain", str(domain))
        said = command.read_until(process, "watch at ")
        url = said.split("watch at ")[1].split()[0]
        command.read_until(process, "all topics received")
        with urllib.request.urlopen(url + "events", timeout=180) as events:
            while True:
                line = events.readline().decode()
                found = json.loads(line[6:]) if line.startswith("data: {") else {}
                if found.get("status", {}).get("reason") == "MAX_VIEWS":
                    break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=180)
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
    assert sorted(os.listdir(tmp_path)) == ["logs"]
