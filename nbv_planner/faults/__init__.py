"""What goes wrong on purpose: kinds of faults, runs of a campaign, and what became of them. Without ROS."""
