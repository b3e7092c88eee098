"""Gaussian processes on a circle: kernels, solvers in linear time, the dense oracle."""
