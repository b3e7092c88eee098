"""Surfaces in the plane that are a radius over the polar angle about a centre."""
