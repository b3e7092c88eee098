"""Which topic is which: by name, namespace, type or as told."""

from __future__ import annotations

import pytest

from nbv_planner.bags.recording import TYPES, find_topics, parse_mapping
from nbv_planner.bags.storage import Topic
from nbv_planner.episode.messages import RECORDED_TOPICS
from nbv_planner.errors import BagError


def recorded(namespace: str = "") -> list[Topic]:
    return [Topic(topic.full_name(namespace), topic.type) for topic in RECORDED_TOPICS]


def names(found) -> dict[str, str]:
    return {name: topic.name for name, topic in found.topics.items()}


@pytest.mark.parametrize("namespace", ["", "/arm", "/lab/arm", "/surface"])
def test_every_topic_is_found_in_its_namespace(namespace):
    found = find_topics(recorded(namespace))
    assert found.namespace == namespace
    assert names(found) == {topic.name: topic.full_name(namespace) for topic in RECORDED_TOPICS}
    assert found.remarks == ()
    assert found.missing == []


def test_ground_truth_is_not_taken_for_the_surface():
    found = find_topics([topic for topic in recorded() if topic.name != "/surface"])
    assert "surface" in found.missing
    assert names(found)["ground_truth/surface"] == "/ground_truth/surface"


def test_of_several_planners_one_has_to_be_chosen():
    both = recorded("a") + recorded("b")
    with pytest.raises(
        BagError, match=r"several planners, in the namespaces /a, /b; choose one with --namespace"
    ):
        find_topics(both)
    assert set(names(find_topics(both, namespace="b")).values()) == {
        topic.name for topic in recorded("b")
    }


def test_a_remapped_scan_is_found_by_its_type_and_remarked_on():
    topics = [topic for topic in recorded() if topic.name != "/scan"] + [
        Topic("/front/laser", TYPES["scan"])
    ]
    found = find_topics(topics)
    assert names(found)["scan"] == "/front/laser"
    assert found.remarks == (
        "/front/laser is taken for scan: the only sensor_msgs/msg/LaserScan left (else use --map)",
    )


def test_topics_that_run_info_names_are_taken_whatever_else_is_there():
    here = {
        "scan": "/lidar/scan",
        "camera_pose": "/arm/pose",
        "goal_pose": "/arm/goal",
        "surface": "/arm/surface",
    }
    topics = [
        Topic(here.get(topic.name, topic.full_name("arm")), topic.type) for topic in RECORDED_TOPICS
    ]
    others = [Topic("/arm/scan", TYPES["scan"]), Topic("/pose", TYPES["camera_pose"])]
    found = find_topics(
        [*topics, *others], described={"/arm/run_info": here, "/run_info": {"scan": "/arm/scan"}}
    )
    assert names(found) == {
        topic.name: here.get(topic.name, topic.full_name("arm")) for topic in RECORDED_TOPICS
    }
    assert found.remarks == ()


def test_of_two_remapped_scans_none_is_guessed():
    topics = [topic for topic in recorded() if topic.name != "/scan"]
    lasers = [Topic("/front/laser", TYPES["scan"]), Topic("/rear/laser", TYPES["scan"])]
    assert "scan" in find_topics([*topics, *lasers]).missing
    told = find_topics([*topics, *lasers], mapping=parse_mapping(["/rear/laser:=scan"]))
    assert names(told)["scan"] == "/rear/laser"


def test_a_camera_in_another_namespace_is_taken_if_it_is_the_only_one():
    own = [topic for topic in recorded("arm") if not topic.name.endswith("/scan")]
    found = find_topics([*own, Topic("/camera/scan", TYPES["scan"])])
    assert names(found)["scan"] == "/camera/scan"
    assert found.remarks == ("/camera/scan is taken for scan: the only one, though not in /arm",)


def test_wrong_types_and_encodings_are_not_used_and_named():
    topics = [topic for topic in recorded() if topic.name not in ("/scan", "/surface")]
    found = find_topics(
        [*topics, Topic("/scan", "foo_msgs/msg/Scan"), Topic("/surface", TYPES["surface"], "json")]
    )
    assert found.missing == ["scan", "surface"]
    assert set(found.remarks) == {
        "/scan has the type foo_msgs/msg/Scan, must be sensor_msgs/msg/LaserScan: not used",
        "/surface is serialised as 'json', not as 'cdr': not used",
    }


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        (["/nowhere:=scan"], ["/nowhere", "the bag has no topic", "/camera_pose"]),
        (
            ["/surface:=scan"],
            [
                "/surface has the type sensor_msgs/msg/PointCloud2, must be"
                " sensor_msgs/msg/LaserScan"
            ],
        ),
        (["/scan:=lidar"], ["unknown topic 'lidar'", "camera_pose"]),
        (["scan"], ["old:=new"]),
    ],
)
def test_mappings_that_do_not_fit_are_refused(mapping, words):
    with pytest.raises(BagError) as caught:
        find_topics(recorded(), mapping=parse_mapping(mapping))
    assert [word for word in words if word not in str(caught.value)] == []
