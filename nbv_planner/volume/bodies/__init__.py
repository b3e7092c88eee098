"""Solids in space: meshes, the depth camera that looks at them, and what there is to be seen."""
