"""A surface of any topology in the plane or in space, behind :mod:`nbv_planner.surface.seam`: an
implicit function.
"""
