"""Judging episodes against the true object."""
