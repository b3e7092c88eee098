"""Write the cuts of piles of several shapes, a folder each: `python examples/piles/make.py OUT`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from campaigns.cut_shapes import FAMILIES, cuts_of, write_cuts


def main(out: Path, count: int = 20) -> None:
    """Write the first member of each family."""
    for family in FAMILIES:
        write_cuts(out / family, cuts_of(family, 0, count))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "piles"))
