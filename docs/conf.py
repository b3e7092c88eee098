"""Sphinx configuration: make docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import nbv_planner

project = "nbv_planner"
author = "nbv_planner maintainers"
version = release = nbv_planner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Pages are read on GitHub too, where links to files beside docs/ work; the site has no such files.
suppress_warnings = ["myst.xref_missing"]
html_theme = "furo"
html_title = "nbv_planner"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
nitpicky = False
