"""Everything that needs ROS 2: conversions, parameters, the three nodes, and running them."""
