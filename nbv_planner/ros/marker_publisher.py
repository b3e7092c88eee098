"""The `markers` topic, published by the node that has the surface and the measurements: the mapper."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from sensor_msgs.msg import PointCloud2
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from nbv_planner.errors import InputRejectedError
from nbv_planner.ros import conversions, qos
from nbv_planner.ros.base_node import BaseNode
from nbv_planner.ros.markers import SceneContent, scene_markers
from nbv_planner.ros.shown_hits import ShownHits
from nbv_planner.scene import Scene
from nbv_planner.surface import Measurements

# Seconds between two arrays at least: fast enough to watch, and a camera at any rate costs no more.
_PERIOD = 0.2
# Measurements that are shown at most.
_MOST_HITS = 5000


class MarkerPublisher:
    """Remembers what there is to show, and publishes it while somebody listens.

    Without a subscriber nothing is built, and the candidates are not listened to. They come from the planner's own
    topic, which is latched: whoever asks for markers later sees them too.
    """

    def __init__(self, node: BaseNode, scene: Scene, frame: str) -> None:
        """Open the topics of `node`; markers are given in `frame`."""
        self._node, self._frame = node, frame
        self._empty = SceneContent(scene)
        self._content = self._empty
        self._hits = ShownHits(_MOST_HITS)
        self._new = False
        self._listeners = 0
        override = {"qos_overriding_options": qos.overridable()}
        self._publisher = node.create_publisher(MarkerArray, "markers", qos.latched(), **override)
        self._take_candidates = node.guarded("candidates", self._on_candidates)
        self._candidates: Any = None
        node.create_timer(_PERIOD, self.publish)

    def show(self, **parts: Any) -> None:
        """Replace parts of the scene: `belief`, `pose`, `goal` (fields of :class:`SceneContent`)."""
        self._content = dataclasses.replace(self._content, **parts)
        self._new = True

    def add_hits(self, hits: Measurements) -> None:
        """Show more measurements."""
        self._hits.add(hits)
        self._new = True

    def reset(self) -> None:
        """Forget everything: what has been shown is deleted, until it is known again."""
        self._hits.clear()
        self._content, self._new = self._empty, True

    def _on_candidates(self, msg: PointCloud2) -> None:
        conversions.check_frame(msg.header, self._frame)
        candidates = conversions.candidates_from_msg(msg)
        if not np.isfinite(candidates.angle).all():
            raise InputRejectedError("not_finite", "the candidates hold angles that are not finite")
        self.show(candidates=candidates)

    def publish(self) -> None:
        """Publish what is new, or what there is to a new subscriber; nothing while the node is inactive."""
        if not self._node.active:
            return
        listeners = self._publisher.get_subscription_count()
        self._listen_to_candidates(listeners > 0)
        if listeners and (self._new or listeners > self._listeners):
            self._new = False
            content = dataclasses.replace(self._content, hits=self._hits.measurements)
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(scene_markers(content, Header(stamp=stamp, frame_id=self._frame)))
        self._listeners = listeners

    def _listen_to_candidates(self, wanted: bool) -> None:
        """Listen while somebody asks for markers: the candidates of every view would cost the mapper for nothing."""
        if wanted and self._candidates is None:
            self._candidates = self._node.create_subscription(
                PointCloud2, "nbv_planner/candidates", self._take_candidates, qos.latched(),
                qos_overriding_options=qos.overridable(),
            )
        elif not wanted and self._candidates is not None:
            self._node.destroy_subscription(self._candidates)
            self._candidates = None
