"""The least views, the least time and the best sets of views that any planner could reach, with
proof.
"""
