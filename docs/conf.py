"""Sphinx configuration: make docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sphinx.ext.napoleon import GoogleDocstring

import nbv_planner

project = "nbv_planner"
author = "nbv_planner maintainers"
version = release = nbv_planner.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# Pages are read on GitHub too, where links to files beside docs/ work; the site has no such files.
suppress_warnings = ["myst.xref_missing"]
html_theme = "furo"
html_title = "nbv_planner"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
nitpicky = False


def read_sections(app, what, name, obj, options, lines):
    """Turn the sections of a docstring (Args, Returns, Raises) into fields, and leave comments of
    attributes alone.

    As an extension, napoleon would take the words before a colon in such a comment for a type.
    """
    if what not in ("attribute", "data"):
        lines[:] = GoogleDocstring(
            lines, what="method" if what == "property" else what, name=name, obj=obj
        ).lines()


def setup(app):
    """Register what Sphinx calls."""
    app.connect("autodoc-process-docstring", read_sections)
