"""The best that any planner can do: least views, least time, and the best sets of views, with
proof.
"""
