"""Pictures of analysed bags."""

from nbv_planner.cli.bag_pictures.episode import draw_animation, draw_pictures

__all__ = ["draw_animation", "draw_pictures"]
