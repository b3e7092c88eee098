"""Where the robot may drive: the map, no-go polygons, the object itself, and the paths around all
of them.
"""
