"""Gaussian-process regression of a 2π-periodic radius."""
