"""Choosing the next best view from what is believed about the surface."""
