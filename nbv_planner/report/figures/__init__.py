"""Figures; with the live window the only imports of matplotlib."""
