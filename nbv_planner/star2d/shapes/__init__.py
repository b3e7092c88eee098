"""Posterior shapes: what the object may look like, what each view would see of it, and how many
views that takes.
"""
