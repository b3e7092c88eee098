"""Measurements of speed: rows of figures, each against a plain implementation in the same run."""
