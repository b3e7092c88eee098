"""Objects, cameras, poses, scans and visibility."""
