"""When a node writes the files of its surface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus

from nbv_planner.episode.log import Surface
from nbv_planner.episode.messages import STATUS, status_from_msg
from nbv_planner.errors import reason
from nbv_planner.ros.core import qos
from nbv_planner.ros.core.node import BaseNode
from nbv_planner.ros.core.worker import Worker
from nbv_planner.session.questions import State
from nbv_planner.system import at_home


class ResultFiles:
    """Writes files of the surface when the planner says that the episode is done, on request, and
    when the node ends with a surface that is not in them.

    A member gives :meth:`_writer`: what writes them, as they are now.
    """

    def __init__(self, node: BaseNode) -> None:
        """Files are written to the node's `outline_folder`, unless it is empty."""
        self._node, folder = node, node.parameters.outline_folder
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

    def _writer(self) -> Callable[[Path], str]:
        """What writes the files to a folder, in any thread, and returns a line about them."""
        raise NotImplementedError

    def _job(self) -> Callable[[], tuple[Surface | None, str]]:
        return partial(_attempt, self._writer(), self.folder, self._belief)

    def _on_status(self, msg: DiagnosticStatus) -> None:
        """Write the files once each time that an episode ends."""
        before = self._done
        self._done = status_from_msg(msg).state == State.DONE.value
        if self._done and not before and self._unwritten:
            self._files.submit(self._job(), self._log)

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

    def _log(self, done: tuple[Surface | None, str]) -> None:
        written, words = done
        self._written = written or self._written
        logger = self._node.get_logger()
        (logger.info if written else logger.error)(words)

    def end(self) -> None:
        """Write the files if they do not hold the surface, and log which; the thread ends."""
        self._files.stop()
        if self._unwritten:
            self._log(self._job()())

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
        written, words = await self._files.run(self._job())
        if written is None:
            raise ValueError(words)
        self._written = written
        return words


def _attempt(
    write: Callable[[Path], str], folder: Path, belief: Surface
) -> tuple[Surface | None, str]:
    """Write files of a belief; returns it and what there is to be said, or None and why they are
    not written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return belief, write(folder)
    except OSError as error:
        return None, f"outline_folder: cannot write the outline to {folder}: {reason(error)}"
