"""Bags: reading, recording, analysis, replay, writing, repair; without ROS."""
