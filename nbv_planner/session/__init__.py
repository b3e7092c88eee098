"""An episode as a state machine without ROS."""
