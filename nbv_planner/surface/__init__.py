"""What planners know of a surface: the seam between its models and all that plans."""
