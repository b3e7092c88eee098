"""Random objects from ten families, each given by a seed: `random:<family>:<seed>`."""

from nbv_planner.objects.families.random_shape import FAMILIES, parse_random, random_shape

__all__ = ["FAMILIES", "parse_random", "random_shape"]
