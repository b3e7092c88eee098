"""Recorded episodes: bags to records, analysis, replay. Reads rosbag2 files without ROS."""
