"""Evaluation of planners: sweeps and their report, frozen objects, the optimum, rivals."""
