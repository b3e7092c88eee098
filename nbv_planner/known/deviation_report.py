"""Nominal against actual as a report: a table of deviations, and what is to be said of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nbv_planner.files.results_folder import write_whole
from nbv_planner.known.best_fit import Met
from nbv_planner.known.deviation import Deviation, deviation_of
from nbv_planner.known.known_outline import KnownOutline
from nbv_planner.known.known_solid import KnownSolid
from nbv_planner.known.nominal import Nominal
from nbv_planner.known.prior_outline import nominal_in_file
from nbv_planner.world.scene import Scene

DEVIATION_FILE = "deviation.csv"
Known = KnownOutline | KnownSolid
"""Outlines that were known before the first scan."""
# Stretches that are said; all are in the table.
_SAID = 3


@dataclass(frozen=True)
class Wanted:
    """What an object is to be compared with."""

    nominal: Nominal
    place_std: tuple[float, float]  #: of its place, metres and radians.
    place: str  #: see :data:`nbv_planner.known.deviation.PLACES`.
    tolerance: float | None  #: metres; None: no verdict.
    remark: str = ""  #: what is to be said of the hits.

    def compared(self, hits: Met) -> DeviationReport:
        """Compare it with hits in the object frame."""
        deviation = deviation_of(self.nominal, hits, self.place_std, self.place)
        return DeviationReport(deviation, self.tolerance, self.remark)


def wanted(
    file: str | None, known: Known | None, scene: Scene, place: str, tolerance: float | None
) -> Wanted | None:
    """What to compare with: the outlines of a file, else those that were `known` before the first
    scan, else nothing.

    Raises:
        SettingError: the file cannot be used, see :func:`.nominal_in_file`.
    """
    if file:
        return Wanted(*nominal_in_file(file, scene), place, tolerance)
    if known is not None:
        return Wanted(Nominal(known.loops), known.place_std, place, tolerance)
    return None


@dataclass(frozen=True, eq=False)
class DeviationReport:
    """The deviations of an object from its nominal outline."""

    deviation: Deviation
    tolerance: float | None
    remark: str = ""

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        deviation = self.deviation
        if not deviation.seen.any():
            return "not known: no part of the outline was seen"
        x, y, turn = deviation.place
        said = [f"{deviation.part_seen:.1%} of the outline seen"]
        if deviation.place.any():
            said.append(f"displaced by {x:.3g} m, {y:.3g} m and {math.degrees(turn):.3g}°")
        most = int(np.nanargmax(np.where(deviation.seen, np.abs(deviation.mean), np.nan)))
        x, y = deviation.points[most]
        said.append(
            f"greatest {deviation.mean[most]:+.3g} m ({deviation.lower[most]:+.3g} to"
            f" {deviation.upper[most]:+.3g}) at x {x:.4g}, y {y:.4g}"
        )
        number = len(deviation.stretches)
        what = "stretches differ" if number > 1 else "stretch differs"
        said.append(f"{number or 'no'} {what} significantly")
        said += [one.summary for one in deviation.stretches[:_SAID]]
        if self.tolerance is not None:
            verdict = deviation.verdict(self.tolerance).value
            said.append(f"{verdict} at {self.tolerance:g} m, as far as it was seen")
        return "; ".join(filter(None, [*said, self.remark]))

    @property
    def csv(self) -> str:
        """Text with the columns x, y, deviation, lower, upper, seen, significant; of what was not
        seen no number.
        """
        deviation = self.deviation
        rows = zip(
            deviation.points.tolist(),
            np.stack([deviation.mean, deviation.lower, deviation.upper], axis=1).tolist(),
            deviation.seen,
            deviation.significant,
            strict=True,
        )
        return (
            f"# deviation in metres, positive: material outside of the outline; {self.summary}\n"
            "x,y,deviation,lower,upper,seen,significant\n"
            + "".join(
                f"{x:.9g},{y:.9g},"
                + ",".join(f"{value:.6g}" if seen else "" for value in values)
                + f",{seen:d},{differs:d}\n"
                for (x, y), values, seen, differs in rows
            )
        )

    def write(self, folder: Path) -> None:
        """Write `deviation.csv`, atomically."""
        write_whole(folder / DEVIATION_FILE, self.csv)
