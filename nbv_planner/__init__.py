"""Near-optimal next-best-view planning: reconstruct an object with as few views as possible."""

__version__ = "0.1.0"
