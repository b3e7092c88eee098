"""Near-optimal next-best-view planning: reconstruct an object with as few views as possible."""

from nbv_planner.versions import VERSION

__version__ = VERSION
