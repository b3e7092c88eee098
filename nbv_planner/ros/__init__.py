"""Everything that needs ROS 2: nodes, launch, processes."""
