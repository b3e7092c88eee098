"""The life of a managed node: configure, activate, deactivate, clean up, shut down, by itself or by an operator."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    InvalidTopicNameException,
)
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from nbv_planner.errors import NbvPlannerError

REFUSALS = (
    NbvPlannerError, InvalidParameterTypeException, InvalidParameterValueException, InvalidTopicNameException,
)
"""What is wrong with parameters or names; anything else is an error of the program."""


class Stage(str, enum.Enum):
    """Primary states of the ROS 2 life cycle."""

    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"
    ACTIVE = "active"
    FINALIZED = "finalized"


class ManagedNode(LifecycleNode):
    """A node that makes its parts when it is configured and lets them go when it is cleaned up.

    Subclasses override :meth:`configure`, :meth:`activate`, :meth:`deactivate` and :meth:`forget`. Publishers,
    subscriptions, services, clients and timers made in `configure` are destroyed by the clean-up; those made in the
    constructor last as long as the node.

    Attributes:
        stage: where the node stands in its life.
        failure: why the last transition failed, or None.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        """Begin unconfigured."""
        super().__init__(name, **kwargs)
        self.stage = Stage.UNCONFIGURED
        self.failure: Exception | None = None
        self._lasting: set[object] = set()
        self._by_itself = False
        self._service_change_state.callback = self._refusing(self._service_change_state.callback)

    def _refusing(self, change_state: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Wrap the service: rclpy 7 lets a transition that does not fit the state end the whole node."""

        def answer(request: Any, response: Any) -> Any:
            try:
                return change_state(request, response)
            except RCLError:
                self.get_logger().warning(f"transition {request.transition.id} does not start at {self.stage.value}")
                response.success = False
                return response

        return answer

    @property
    def active(self) -> bool:
        """Whether the node does its work."""
        return self.stage is Stage.ACTIVE

    @property
    def configured(self) -> bool:
        """Whether the node has its parts."""
        return self.stage in (Stage.INACTIVE, Stage.ACTIVE)

    def configure(self) -> None:
        """Read the parameters and make the parts; what it raises refuses the transition."""

    def activate(self) -> None:
        """Take up the work; :attr:`active` is true already."""

    def deactivate(self) -> None:
        """Rest; :attr:`active` is false already."""

    def forget(self) -> None:
        """Let go of what `configure` made, beside topics, services and timers."""

    def transitioned(self) -> None:
        """Say where the node stands now; called after a transition, failed ones included, unless the next follows."""

    def go_active(self) -> None:
        """Configure and activate without an operator.

        Raises:
            Exception: what the parameters or the program have wrong.
        """
        self._by_itself = True
        for trigger in (self.trigger_configure, self.trigger_activate):
            trigger()
            if self.failure is not None:
                raise self.failure
        self._by_itself = False

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Make the parts; after a failure none are left, and it can be tried again."""
        self._lasting = set(self._entities())
        return self._transition(Stage.INACTIVE, self.configure, on_failure=self._release)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Take up the work."""
        self.stage = Stage.ACTIVE
        return self._transition(Stage.ACTIVE, self.activate, failed=Stage.INACTIVE)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Rest, and keep everything."""
        self.stage = Stage.INACTIVE
        return self._transition(Stage.INACTIVE, self.deactivate, failed=Stage.INACTIVE)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget everything."""
        return self._transition(Stage.UNCONFIGURED, self._release)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget everything for good; the process goes on until it is ended."""
        return self._transition(Stage.FINALIZED, self._release if self.configured else lambda: None)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """After an error of the program: begin anew, unconfigured; :attr:`failure` stays."""
        self._release()
        self.stage = Stage.UNCONFIGURED
        self.transitioned()
        return TransitionCallbackReturn.SUCCESS

    def _transition(
        self, reached: Stage, action: Callable[[], None], *, failed: Stage = Stage.UNCONFIGURED,
        on_failure: Callable[[], None] = lambda: None,
    ) -> TransitionCallbackReturn:
        """Try `action`; what it raises is kept, where rclpy would swallow it, and logged or raised by the caller."""
        result, self.failure = TransitionCallbackReturn.SUCCESS, None
        try:
            action()
            self.stage = reached
        except Exception as error:
            refused = isinstance(error, REFUSALS)
            result = TransitionCallbackReturn.FAILURE if refused else TransitionCallbackReturn.ERROR
            self.failure, self.stage = error, failed
            on_failure()
            if not self._by_itself:
                words = f"not {reached.value}: {' '.join(str(error).split())}"
                self.get_logger().error(words if refused else traceback.format_exc())
        if self.active or not self._by_itself:
            self.transitioned()
        return result

    def _release(self) -> None:
        """Destroy what has been made since the configuration began."""
        destroyers = (
            (self.timers, self.destroy_timer), (self.subscriptions, self.destroy_subscription),
            (self.services, self.destroy_service), (self.clients, self.destroy_client),
            (self.publishers, self.destroy_publisher),
        )
        for entities, destroy in destroyers:
            for entity in list(entities):
                if entity not in self._lasting:
                    destroy(entity)
        self.forget()

    def _entities(self) -> Iterable[object]:
        return (*self.timers, *self.subscriptions, *self.services, *self.clients, *self.publishers)
