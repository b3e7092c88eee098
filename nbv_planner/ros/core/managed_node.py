"""A managed node: its states, transitions, and what the life cycle creates and destroys."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Callable
from typing import Any

from lifecycle_msgs.srv import ChangeState
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    InvalidTopicNameException,
)
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from nbv_planner.errors import NbvPlannerError

REFUSALS = (
    NbvPlannerError,
    InvalidParameterTypeException,
    InvalidParameterValueException,
    InvalidTopicNameException,
)
"""Errors of parameters or names; anything else is an error of the program."""

_ENTITIES = ("timer", "subscription", "service", "client", "publisher")


class Stage(str, enum.Enum):
    """Primary states of the ROS 2 life cycle."""

    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"
    ACTIVE = "active"
    FINALIZED = "finalized"


class ManagedNode(LifecycleNode):
    """A node with the life cycle of ROS 2.

    Subclasses override :meth:`configure`, :meth:`activate` and :meth:`forget`. Publishers,
    subscriptions, services, clients and timers created in `configure` are destroyed by the
    clean-up; those of the constructor last as long as the node.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        """Create the node, unconfigured."""
        super().__init__(name, **kwargs)
        self.stage = Stage.UNCONFIGURED  #: the node's life cycle state.
        self.failure: Exception | None = None  #: why the last transition failed, or None.
        self._lasting: set[object] = set()
        self._by_itself = False
        for service in self.services:
            if service.srv_type is ChangeState:
                service.callback = self._refusing(service.callback)

    def _refusing(self, change_state: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Wrap the service: in rclpy 7 a transition that does not fit the state ends the node."""

        def answer(request: Any, response: Any) -> Any:
            try:
                return change_state(request, response)
            # rclpy's RCLError; an error of a transition itself is caught before
            except RuntimeError:
                self.get_logger().warning(
                    f"transition {request.transition.id} is not possible when {self.stage.value}"
                )
                response.success = False
                return response

        return answer

    @property
    def active(self) -> bool:
        """Whether the node is active."""
        return self.stage is Stage.ACTIVE

    @property
    def configured(self) -> bool:
        """Whether the node is configured."""
        return self.stage in (Stage.INACTIVE, Stage.ACTIVE)

    def configure(self) -> None:
        """Read the parameters and create the parts; an exception refuses the transition."""

    def activate(self) -> None:
        """Start work; :attr:`active` is already true."""

    def forget(self) -> None:
        """Discard what `configure` created, except topics, services and timers."""

    def transitioned(self) -> None:
        """Publish the state; called after a transition, also a failed one, unless the next follows
        immediately.
        """

    def autostart(self) -> None:
        """Configure and activate without an operator, if the parameter `autostart` is set.

        Raises:
            Exception: an error of the parameters or the program.
        """
        if not self.get_parameter("autostart").value:
            return
        self._by_itself = True
        for trigger in (self.trigger_configure, self.trigger_activate):
            trigger()
            if self.failure is not None:
                raise self.failure
        self._by_itself = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Create the parts; after a failure none are left, and it can be retried."""
        self._lasting = {entity for kind in _ENTITIES for entity in getattr(self, f"{kind}s")}
        return self._transition(Stage.INACTIVE, self.configure, on_failure=self._release)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start work."""
        self.stage = Stage.ACTIVE
        return self._transition(Stage.ACTIVE, self.activate, failed=Stage.INACTIVE)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop work, and keep all state."""
        self.stage = Stage.INACTIVE
        return self._transition(Stage.INACTIVE, lambda: None)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget everything."""
        return self._transition(Stage.UNCONFIGURED, self._release)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Discard all state; the process runs until it is ended."""
        return self._transition(Stage.FINALIZED, self._release if self.configured else lambda: None)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After an internal error: return to unconfigured; :attr:`failure` stays."""
        self._release()
        self.stage = Stage.UNCONFIGURED
        self.transitioned()
        return TransitionCallbackReturn.SUCCESS

    def _transition(
        self,
        reached: Stage,
        action: Callable[[], None],
        *,
        failed: Stage = Stage.UNCONFIGURED,
        on_failure: Callable[[], None] = lambda: None,
    ) -> TransitionCallbackReturn:
        """Run `action`; its exception, which rclpy would swallow, is stored, and logged or raised
        by the caller.
        """
        result = TransitionCallbackReturn.SUCCESS
        self.failure = None
        try:
            action()
            self.stage = reached
        except Exception as error:
            refused = isinstance(error, REFUSALS)
            result = TransitionCallbackReturn.FAILURE if refused else TransitionCallbackReturn.ERROR
            self.failure, self.stage = error, failed
            on_failure()
            if not self._by_itself:
                refusal = f"not {reached.value}: {' '.join(str(error).split())}"
                self.get_logger().error(refusal if refused else traceback.format_exc())
        if self.active or not self._by_itself:
            self.transitioned()
        return result

    def _release(self) -> None:
        """Destroy what has been created since the configuration began."""
        for kind in _ENTITIES:
            for entity in list(getattr(self, f"{kind}s")):
                if entity not in self._lasting:
                    getattr(self, f"destroy_{kind}")(entity)
        self.forget()

    def resting(self) -> str:
        """Why the node is inactive; empty if it is active."""
        if self.active:
            return ""
        next_one = {Stage.UNCONFIGURED: "configure", Stage.INACTIVE: "activate"}.get(self.stage)
        waits = (
            f"waiting for the transition {next_one} of the life cycle"
            if next_one
            else "it can only be ended"
        )
        reason = (
            f"; the last transition failed: {' '.join(str(self.failure).split())}"
            if self.failure
            else ""
        )
        return f"{self.stage.value}: {waits}{reason}"
