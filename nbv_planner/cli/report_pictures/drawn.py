"""A figure as a picture of the report."""

from __future__ import annotations

import re

from nbv_planner.plotting.sweep.layout import Figure, png_bytes, svg_bytes
from nbv_planner.reports.page import Picture


def picture(name: str, title: str, caption: str, figure: Figure, *, folded: bool = False) -> Picture:
    """Write the figure in both formats."""
    return Picture(name, title, caption, png_bytes(figure), svg_bytes(figure), folded)


def file_name(text: str) -> str:
    """Make a part of a file name of any text."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.")
