"""Errors of the camera's pose, and how far they displace what it measures."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

import numpy as np

from nbv_planner.errors import InputRejectedError
from nbv_planner.geometry import FloatArray

# A covariance out of another program may be negative in some direction by rounding, in parts of its trace.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class PoseCovariance:
    """Covariance of the errors in x, y (metres, object frame) and yaw (radians).

    Attributes:
        xx: variance of x, m².
        xy: covariance of x and y, m².
        yy: variance of y, m².
        xyaw: covariance of x and yaw, m·rad.
        yyaw: covariance of y and yaw, m·rad.
        yawyaw: variance of yaw, rad².

    Raises:
        InputRejectedError: reason `covariance`: a value is not finite, or there is no such covariance.
    """

    xx: float
    xy: float
    yy: float
    xyaw: float
    yyaw: float
    yawyaw: float

    def __post_init__(self) -> None:
        """Check that it is finite and positive semi-definite up to rounding."""
        if not all(math.isfinite(value) for value in astuple(self)):
            raise InputRejectedError("covariance", f"the covariance holds {astuple(self)}")
        largest = max(abs(value) for value in astuple(self))
        if largest > 0.0 and np.linalg.eigvalsh(self.matrix / largest)[0] < -_ROUNDING:
            raise InputRejectedError("covariance", f"{astuple(self)} is no covariance: negative in some direction")

    @property
    def matrix(self) -> FloatArray:
        """Covariance of (x, y, yaw), shape (3, 3)."""
        return np.array(
            [[self.xx, self.xy, self.xyaw], [self.xy, self.yy, self.yyaw], [self.xyaw, self.yyaw, self.yawyaw]]
        )

    def at_lever(self, x: float, y: float) -> PoseCovariance:
        """Covariance of the pose of what is fixed to this body at (x, y), metres, in the axes of the object frame."""
        move = np.array([[1.0, 0.0, -y], [0.0, 1.0, x], [0.0, 0.0, 1.0]])
        return self._of(move @ self.matrix @ move.T)

    def between(self, other: PoseCovariance, part: float) -> PoseCovariance:
        """Covariance at the `part` of the way to `other`: the mean, as if both had the same errors."""
        return self._of((1.0 - part) * self.matrix + part * other.matrix)

    @classmethod
    def _of(cls, matrix: FloatArray) -> PoseCovariance:
        xx, xy, xyaw, yy, yyaw, yawyaw = (float(value) for value in matrix[np.triu_indices(3)])
        return cls(xx=xx, xy=xy, yy=yy, xyaw=xyaw, yyaw=yyaw, yawyaw=yawyaw)

    def hit_spread(self, angle: FloatArray, tilt: FloatArray, distance: FloatArray) -> FloatArray:
        r"""Covariance of the displacement of hits, to first order: :math:`J Σ J^\top`.

        A hit at polar angle φ, at the end of a beam of length d and tilt γ, moves with the camera's errors
        :math:`(δ_x, δ_y, δ_ψ)` radially by :math:`δ_x\cosφ + δ_y\sinφ - d\sinγ\,δ_ψ` and tangentially by
        :math:`-δ_x\sinφ + δ_y\cosφ + d\cosγ\,δ_ψ`. The errors are common to all beams of a scan; that they are taken as
        independent from then on is an approximation.

        Args:
            angle: polar angle of each hit, shape (n,), radians.
            tilt: angle from the outward radial direction to that of the beam, shape (n,), radians.
            distance: range, shape (n,), metres.

        Returns:
            Shape (n, 3), metres²: radial, radial with tangential, tangential.
        """
        cos, sin = np.cos(angle), np.sin(angle)
        radial = np.stack([cos, sin, -distance * np.sin(tilt)], axis=-1)
        tangential = np.stack([-sin, cos, distance * np.cos(tilt)], axis=-1)
        pairs = ((radial, radial), (radial, tangential), (tangential, tangential))
        return np.stack([np.einsum("ni,ij,nj->n", a, self.matrix, b) for a, b in pairs], axis=-1)
