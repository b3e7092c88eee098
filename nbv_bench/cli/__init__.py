"""The program `nbv-bench`."""
