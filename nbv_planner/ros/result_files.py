"""When a node writes the files of its surface."""

from __future__ import annotations

from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from nbv_planner.episode.log import Surface
from nbv_planner.episode.messages import STATUS, status_from_msg
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.worker import Worker
from nbv_planner.session.questions import State
from nbv_planner.system import at_home


class ResultFiles:
    """Writes files of the surface when the planner says that the episode is done, on request, and
    when the node ends with a surface that is not in them.

    A member gives :meth:`_work`: what is to be done, as it is now.
    """

    def __init__(self, node: BaseNode, folder: str) -> None:
        """Files are written to `folder`, unless it is empty."""
        self._node = node
        #: where files are written; None if they are not.
        self.folder = at_home(folder) if folder else None
        self._done = False
        self._files = Worker(node)
        if self.folder is not None:
            node.listen(DiagnosticStatus, STATUS, self._on_status, qos.latched())
        self.reset()

    def reset(self) -> None:
        """Discard the surface."""
        self._belief: Surface | None = None
        self._written: Surface | None = None
        self._stamp = 0

    def _work(self) -> Any:
        raise NotImplementedError

    def _on_status(self, msg: DiagnosticStatus) -> None:
        """Write the files once each time that an episode ends."""
        before = self._done
        self._done = status_from_msg(msg).state == State.DONE.value
        if self._done and not before and self._unwritten:
            self._files.submit(partial(self._work().done, folder=self.folder), self._log)

    @property
    def _unwritten(self) -> bool:
        """Whether there is a measured surface that has not been written."""
        belief = self._belief
        return (
            self.folder is not None
            and belief is not None
            and belief is not self._written
            and belief.count > 0
        )

    def _log(self, done: Any) -> None:
        if done.error:
            self._node.get_logger().error(done.error)
        else:
            self._node.get_logger().info(self._note(done))

    def _note(self, done: Any) -> str:
        """Remember what the files hold; returns their paths, and how good the outline is.

        Raises:
            ValueError: they could not be written.
        """
        if done.error:
            raise ValueError(done.error)
        self._written = done.work.belief
        return done.paths

    def end(self) -> None:
        """Write the files if they do not hold the surface, and log which; the thread ends."""
        self._files.stop()
        if self._unwritten:
            self._log(self._work().done(folder=self.folder))

    async def write(self) -> str:
        """Write the files in another thread; returns their paths, and how good the outline is.

        Raises:
            ValueError: no folder is named, there is no surface yet, or the folder cannot be
                written.
        """
        if self.folder is None:
            raise ValueError("no folder given: start the node with the parameter outline_folder")
        if self._belief is None:
            raise ValueError("no surface yet: no scan has been mapped")
        return self._note(await self._files.run(partial(self._work().done, folder=self.folder)))
