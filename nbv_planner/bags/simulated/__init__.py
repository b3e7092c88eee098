"""Simulated episodes as bags, without ROS."""
