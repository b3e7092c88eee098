"""Colours of an animated GIF: one palette of 255 colours for all frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import cKDTree

from nbv_planner.geometry import FloatArray

# The GIF format has 256; the last one says "as in the frame before".
_COLORS = 255
_EXACT = 128
# Image.Dither.NONE and Image.Quantize.MAXCOVERAGE, names that Pillow 9.0 (Ubuntu 22.04) does not have.
_NO_DITHER = 0
_MAX_COVERAGE = 1


def common_palette(samples: Iterable[Image.Image]) -> FloatArray:
    """Find colours for all frames from a few RGB `samples`, shape (K, 3), 0 to 255.

    Half of them are the most frequent ones as they are, so that faint areas keep their tints; the others cover the
    blends on the edges of lines and letters, which median cut would mix with the areas.
    """
    count: Counter[tuple[int, int, int]] = Counter()
    for sample in samples:
        count.update({color: number for number, color in sample.getcolors(sample.width * sample.height)})
    exact = np.array([color for color, _ in count.most_common(_EXACT)], dtype=float)
    blends = np.array(list(count), dtype=np.uint8)[np.newaxis]
    covering = Image.fromarray(blends).quantize(_COLORS - len(exact), method=_MAX_COVERAGE, dither=_NO_DITHER)
    return np.vstack([exact, np.reshape(covering.getpalette(), (-1, 3))])[:_COLORS]


def apply_palette(image: Image.Image, palette: FloatArray) -> Image.Image:
    """Replace each colour of an RGB image by the nearest one of the palette.

    Pillow's own mapping looks at the upper six bits only, which turns white into grey.
    """
    packed = np.asarray(image).astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    colors, index = np.unique(packed, return_inverse=True)
    rgb = np.column_stack([colors >> 16, (colors >> 8) & 255, colors & 255])
    nearest: NDArray[np.uint8] = cKDTree(palette).query(rgb)[1].astype(np.uint8)
    indexed = Image.fromarray(nearest[index].reshape(packed.shape))
    indexed.putpalette(palette.astype(np.uint8).tobytes())
    return indexed
