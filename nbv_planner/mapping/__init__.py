"""Scans to belief: matching scans with poses, the mapper and the robust mapper, checks of the
model, saved maps.
"""
