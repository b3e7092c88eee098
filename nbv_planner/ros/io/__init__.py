"""Between messages and core values: conversions, robot, markers, listener, recorder."""
