"""Belief to goal: candidate views, objectives, planners, posterior shapes, termination, session."""
