"""Checks of what the mapping takes for granted: the camera's pose, the object's place, and its kind."""
