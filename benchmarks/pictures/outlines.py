"""Make the slices and silhouettes of nbv_planner/world/objects/contours/ again, from two packages
of Debian 12.

pip install numpy shapely pillow fonttools contourpy pyshp
apt-get download sweethome3d-furniture=1.8-1 fonts-noto-color-emoji=2.042-0+deb12u1
for package in *.deb; do dpkg -x "$package" unpacked; done
python benchmarks/pictures/outlines.py unpacked

A slice is what a horizontal plane cuts out of a mesh: the outer boundary of the greatest piece,
since nothing behind it is seen. A silhouette is the edge of the opaque part of an emoji. Both are
thinned to a fifth of a world pixel, and kept if some point sees all of the outline (the kernel of
the polygon, an intersection of half-planes) and the radius about it fits the bounds of the scene. A
silhouette that misses this by little is made star-shaped, as the real contours are. Some of the
others go to `later/` with the reason. Halves and caps follow the hash of the source's name, plants
first, so nothing is picked by hand.
"""

import csv
import hashlib
import io
import itertools
import re
import shutil
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import contourpy
import numpy as np
import shapely
from fontTools.ttLib import TTFont
from PIL import Image
from real_contours import star_shaped
from shapely import LineString, Polygon

from nbv_planner.world.objects import OBJECT_SETS, parse_object
from nbv_planner.world.scene import Scene

OUT = Path(__file__).resolve().parents[2] / "nbv_planner" / "world" / "objects" / "contours"
FURNITURE = "usr/share/sweethome3d/furniture"
FONT = "usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
LICENCES = {
    "BlendSwap-CC-0": "CC0-1.0",
    "BlendSwap-CC-BY": "CC-BY-3.0",
    "KatorLegaz": "CC-BY-3.0-US",
    "Reallusion": "CC-BY-3.0-US",
    "Scopia": "CC-BY-3.0",
}
BRANDS = (  # shapes that are somebody's mark
    r"apple\b|\bford|ikea|peugeot|renault|seat[-_"
    r" ]leon|vw|yamaha|ipad|iphone|chevrolet|euro|rubik|\bdaf|peterbilt"
)
HEIGHTS = (0.2, 0.5, 0.8)  # of the height of the mesh
TOLERANCE = 0.0025  # of the greatest radius: a fifth of a pixel of 0.1 m
LEAST_RADIUS = 0.27  # of the greatest one: with that at 97 % of 8 m just above 2 m
APART = 0.03  # least root mean square distance of two outlines, of the greatest radius
MOST_CHANGED = 0.03  # of the area, to make a silhouette star-shaped
PER_HALF, LATER = 50, 20
PLANTS = (
    r"LEAF|LEAVES|HERB|SHAMROCK|TREE|CACTUS|PLANT|FLOWER|BLOSSOM|TULIP|LOTUS|HIBISCUS|ROSETTE|BOUQUET|EAR"
    r" OF|SEEDLING"
)
PICTURES = ((0x1F300, 0x1F5FF), (0x1F680, 0x1F6FF), (0x1F900, 0x1FAFF), (0x2600, 0x27BF))
UNPICTURED = (  # signs, faces and figures: circles and squares, or people
    r"FACE|CLOCK|SQUARE|CIRCLE|SIGN|SYMBOL|BUTTON|MOON|HAND|PERSON|PEOPLE|MAN|WOMAN|FAMILY|ZODIAC|ARIES|TAURUS|GEMINI|"
    r"CANCER|LEO|VIRGO|LIBRA|SCORPIUS|SAGITTARIUS|CAPRICORN|AQUARIUS|PISCES|OPHIUCHUS|HEAVY|FITZPATRICK|BALL|INPUT|"
    r"CROSS OF|PRAYER|MOSQUE|KAABA|SYNAGOGUE|CHURCH|MENORAH|WHEEL OF"
    r" DHARMA|COUPLE|BOY|GIRL|BABY$|PRINCE|FATHER"
)


ADDRESSES = {
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-3.0": "https://creativecommons.org/licenses/by/3.0/",
    "CC-BY-3.0-US": "https://creativecommons.org/licenses/by/3.0/us/",
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
}
NOTICE = """nbv_planner is under the Apache License 2.0 (LICENSE).

The outlines in nbv_planner/world/objects/contours/ are made of the works of others: horizontal slices of 3D models that
come with Sweet Home 3D, and edges of Noto Emoji. They were CHANGED: cut or traced, thinned, moved to a centre, scaled,
some made star-shaped. sources.csv beside them says which file each is from. The authors do not endorse this use. The
outlines of the set real are in the public domain (Natural Earth) or CC0 (horse, by Andreas Preuss (marauder)).
"""  # noqa: E501 - the lines of the file NOTICE
FIELDS = (
    "set",
    "name",
    "title",
    "author",
    "licence",
    "source",
    "sha256",
    "vertices",
    "least",
    "turning",
    "changed",
    "why",
)


@dataclass
class Outline:
    """A ring in the plane, any unit, and where it comes from."""

    name: str
    ring: np.ndarray
    title: str
    author: str
    licence: str
    source: str
    sha256: str
    key: str  # what all outlines of one source share
    most_changed: float = 0.0
    first: bool = False


class NotAnOutlineError(Exception):
    """The cut or the picture gives no single closed ring."""


def slices(folder: Path) -> Iterator[Outline | str]:
    """Slices of every model of the catalogues, or the reason why there is none."""
    named: Counter = Counter()
    for catalogue, licence in LICENCES.items():
        source = zipfile.ZipFile(folder / FURNITURE / f"{catalogue}.sh3f")
        for model in models(source):
            name = re.sub(r"\W+", "_", model["name"].lower()).strip("_")
            named[name] += 1
            refused = refusal(source, model)
            if refused:
                yield refused
                continue
            content = source.read(model["model"].lstrip("/"))
            mesh = turned(read_obj(content), model.get("modelRotation"))
            for height in HEIGHTS:
                try:
                    ring = cut(mesh, height)
                except NotAnOutlineError as reason:
                    yield str(reason)
                    continue
                yield Outline(
                    f"{name}_{named[name]}_{100 * height:.0f}",
                    ring,
                    f"{model['name']}, slice at {height:.0%} of its height",
                    model.get("creator", catalogue),
                    licence,
                    f"sweethome3d-furniture 1.8-1, {catalogue}.sh3f{model['model']}",
                    hashlib.sha256(content).hexdigest(),
                    model["model"],
                )


def refusal(source: zipfile.ZipFile, model: dict[str, str]) -> str:
    """Why nothing is taken from a model, or nothing."""
    if model.get("doorOrWindow") == "true":
        return "door or window"
    if re.search(BRANDS, model["name"] + model["model"], re.IGNORECASE):
        return "a mark of somebody's"
    own = f"{Path(model['model'].lstrip('/')).parent}/BLENDSWAP_LICENSE.txt"
    text = (
        source.read(own).decode("latin-1").partition("ABOUT THE BLEND")[0]
        if own in source.namelist()
        else ""
    )
    return (
        "licence of the model"
        if re.search(r"share.?alike|non.?commercial|gpl|general public", text, re.I)
        else ""
    )


def models(source: zipfile.ZipFile) -> list[dict[str, str]]:
    """Properties of each model of a catalogue."""
    text = source.read("PluginFurnitureCatalog.properties").decode("latin-1")
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
    found: dict[str, dict[str, str]] = {}
    for name, number, value in re.findall(r"^(\w+)#(\d+)\s*=\s*(.*?)\s*$", text, re.MULTILINE):
        found.setdefault(number, {})[name] = value
    return [model for model in found.values() if model.get("model", "").endswith(".obj")]


def read_obj(content: bytes) -> np.ndarray:
    """Triangles of a Wavefront OBJ file, shape (n, 3, 3), y upwards; polygons are cut into fans."""
    vertices: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in content.decode("latin-1").splitlines():
        kind, _, rest = line.strip().partition(" ")
        if kind == "v":
            vertices.append([float(number) for number in rest.split()[:3]])
        elif kind == "f":
            number = [int(corner.split("/")[0]) for corner in rest.split()]
            index = [i - 1 if i > 0 else len(vertices) + i for i in number]
            triangles += [(index[0], a, b) for a, b in itertools.pairwise(index[1:])]
    return np.array(vertices)[np.array(triangles)]


def turned(mesh: np.ndarray, rotation: str | None) -> np.ndarray:
    """The mesh as the catalogue stands it up."""
    return mesh @ np.array(rotation.split(), dtype=float).reshape(3, 3).T if rotation else mesh


def cut(mesh: np.ndarray, height: float) -> np.ndarray:
    """Outer boundary of the greatest piece that a plane cuts out of a mesh, shape (n, 2)."""
    low, high = mesh[..., 1].min(), mesh[..., 1].max()
    # beside the round heights at which modellers put vertices
    level = low + (high - low) * (height + 1e-4 * np.pi)
    above = mesh[..., 1] > level
    crossed = mesh[above.any(axis=1) & ~above.all(axis=1)]
    start, end = crossed, np.roll(crossed, -1, axis=1)
    crosses = (start[..., 1] > level) != (end[..., 1] > level)
    start, end = start[crosses], end[crosses]
    part = ((level - start[:, 1]) / (end[:, 1] - start[:, 1]))[:, None]
    points = (start + part * (end - start))[:, [0, 2]] * [1.0, -1.0]  # seen from above
    size = np.ptp(mesh.reshape(-1, 3)[:, [0, 2]], axis=0).max()
    grid = 1e-4 * size  # closes the gaps of rounding in the files
    pairs = (np.round(points / grid) * grid).reshape(-1, 2, 2)
    segments = [LineString(pair) for pair in pairs if np.any(pair[0] != pair[1])]
    if not segments:
        raise NotAnOutlineError("nothing at that height")
    lines = shapely.node(shapely.set_precision(shapely.unary_union(segments), grid))
    faces, cuts, dangles, _ = shapely.polygonize_full([lines])
    if cuts.length + dangles.length > 0.02 * lines.length:
        raise NotAnOutlineError("the surface is open at that height")
    return greatest(shapely.unary_union(faces))


def greatest(figure: shapely.Geometry) -> np.ndarray:
    """Outer ring of the greatest piece, which must be nearly all of it."""
    pieces = sorted(getattr(figure, "geoms", [figure]), key=lambda piece: piece.area)
    if not pieces or pieces[-1].area == 0.0:
        raise NotAnOutlineError("the surface is open at that height")
    if pieces[-1].area < 0.9 * sum(piece.area for piece in pieces):
        raise NotAnOutlineError("falls into pieces (legs, petals)")
    return np.array(pieces[-1].exterior.coords)[:-1]


def silhouettes(folder: Path) -> Iterator[Outline | str]:
    """Edges of the emoji that show a thing, an animal or a plant."""
    path = folder / FONT
    font = TTFont(path)
    pictures = font["CBDT"].strikeData[0]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    for code, glyph in sorted(font.getBestCmap().items()):
        title = unicodedata.name(chr(code), "")
        if glyph not in pictures or not any(low <= code <= high for low, high in PICTURES):
            continue
        if not title or re.search(UNPICTURED, title):
            yield "sign, face or figure"
            continue
        image = Image.open(io.BytesIO(pictures[glyph].imageData)).convert("RGBA")
        alpha = np.pad(np.asarray(image)[::-1, :, 3].astype(float), 1)
        rings = [
            Polygon(line).buffer(0)
            for line in contourpy.contour_generator(z=alpha).lines(128.0)
            if len(line) > 8
        ]
        try:
            ring = greatest(shapely.unary_union(rings))
        except NotAnOutlineError as reason:
            yield str(reason)
            continue
        name = re.sub(r"\W+", "_", title.lower())
        yield Outline(
            name,
            ring,
            title.capitalize(),
            "Google",
            "Apache-2.0",
            f"fonts-noto-color-emoji 2.042-0+deb12u1, U+{code:04X}",
            digest,
            name,
            MOST_CHANGED,
            bool(re.search(PLANTS, title)),
        )


def kernel(ring: np.ndarray) -> Polygon:
    """Points that see all of a polygon, whose ring turns left: where the half-planes left of all
    edges overlap.
    """
    side = np.roll(ring, -1, axis=0) - ring
    low, high = ring.min(axis=0), ring.max(axis=0)
    inside = np.array([low, [high[0], low[1]], high, [low[0], high[1]]])
    for start, along in zip(ring, side, strict=True):
        height = along[0] * (inside[:, 1] - start[1]) - along[1] * (inside[:, 0] - start[0])
        after, next_height = np.roll(inside, -1, axis=0), np.roll(height, -1)
        kept = []
        for point, h, follower, k in zip(inside, height, after, next_height, strict=True):
            if h >= 0.0:
                kept.append(point)
            if (h >= 0.0) != (k >= 0.0):
                kept.append(point + (follower - point) * h / (h - k))
        if len(kept) < 3:
            return Polygon()
        inside = np.array(kept)
    return Polygon(inside)


def best_centre(ring: np.ndarray, seeing: Polygon) -> np.ndarray:
    """Point well inside the kernel about which the least radius is the greatest part of the
    greatest.
    """
    deep = seeing.buffer(-0.5 * shapely.maximum_inscribed_circle(seeing).length)
    grid = np.linspace(0.0, 1.0, 25)[1:-1]
    x0, y0, x1, y1 = deep.bounds
    places = [(x0 + (x1 - x0) * i, y0 + (y1 - y0) * j) for i in grid for j in grid]
    places = [place for place in places if shapely.contains_xy(deep, *place)] or [
        tuple(seeing.centroid.coords[0])
    ]
    return np.array(max(places, key=lambda place: span(ring - place)))


def span(ring: np.ndarray) -> float:
    """Least radius over greatest, about the origin."""
    return LineString([*ring, ring[0]]).distance(shapely.Point(0, 0)) / np.hypot(*ring.T).max()


def hidden(ring: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Part of the outline that the best point does not see, that point, and the middle of what it
    does not see.
    """
    figure = Polygon(ring)
    fine = np.array(shapely.segmentize(figure, figure.length / 200).exterior.coords)[:-1]
    low, high = ring.min(axis=0), ring.max(axis=0)
    places = [low + (high - low) * [i, j] / 12 for i in range(1, 12) for j in range(1, 12)]
    inside = [place for place in places if shapely.contains_xy(figure, *place)]
    inside.append(np.array(figure.representative_point().coords[0]))
    inner = figure.buffer(1e-3 * figure.length)
    best = (2.0, low, low)
    for place in inside:
        seen = shapely.contains(inner, shapely.linestrings([[place, point] for point in fine]))
        if 1.0 - seen.mean() < best[0]:
            best = (
                1.0 - seen.mean(),
                place,
                fine[~seen].mean(axis=0) if not seen.all() else fine[0],
            )
    return best


def explained(ring: np.ndarray) -> dict:
    """Why a ring is not star-shaped, and its points about the point that sees most of it, greatest
    radius 1.
    """
    missed, centre, where = hidden(ring)
    side = np.degrees(np.arctan2(*(where - centre)[::-1])) % 360
    part = f"{100 * missed:.0f} % hidden from the best point, about {side:.0f} degrees from it"
    why = (
        "no point sees all of it:"
        f" {part if missed >= 0.005 else 'under 1 % hidden from the best point'}"
    )
    return {"why": why, "points": (ring - centre) / np.hypot(*(ring - centre).T).max()}


def profile(angle: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """720 radii of an outline."""
    ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    phi = np.arange(720) * (2 * np.pi / 720)
    rays = shapely.linestrings(
        np.stack([np.zeros((720, 2)), 2 * np.column_stack([np.cos(phi), np.sin(phi)])], axis=1)
    )
    met = shapely.intersection(rays, LineString([*ring, ring[0]]))
    return np.array([np.hypot(*shapely.get_coordinates(points).T).max() for points in met])


def distance(one: np.ndarray, many: np.ndarray) -> float:
    """Least root mean square distance of an outline from many, over all rotations and
    reflections.
    """
    spectrum, others = np.fft.rfft(one), np.fft.rfft(many, axis=1)
    both = [
        np.fft.irfft(others * turn, 720, axis=1).max(axis=1) for turn in (spectrum.conj(), spectrum)
    ]
    square = (one**2).sum() + (many**2).sum(axis=1) - 2.0 * np.maximum(*both)
    return float(np.sqrt(max(square.min(), 0.0) / 720))


def known() -> list[np.ndarray]:
    """Profiles of the thesis's objects and the real ones, greatest radius 1."""
    phi = np.arange(720) * (2 * np.pi / 720)
    shapes = [
        parse_object(text, Scene()).radius(phi)
        for name in ("thesis", "real")
        for text in OBJECT_SETS[name]
    ]
    return [radius / radius.max() for radius in shapes]


def half_of(key: str) -> str:
    """Half of a source, by the hash of its name."""
    return ("tuning", "test")[int(hashlib.sha256(key.encode()).hexdigest(), 16) % 2]


def make(
    family: str, found: Iterator[Outline | str], taken: list[np.ndarray]
) -> tuple[list[dict], Counter]:
    """Write the files of a family; give a row for each and the counts of what was left out."""
    counts: Counter = Counter()
    outlines = []
    for item in found:
        if isinstance(item, str):
            counts[item] += 1
        else:
            outlines.append(item)
    rows: list[dict] = []
    kept: Counter = Counter()
    for outline in sorted(
        outlines, key=lambda item: (not item.first, hashlib.sha256(item.name.encode()).hexdigest())
    ):
        half = half_of(outline.key)
        row, reason, profiled = judge(outline, taken)
        if reason == "not star-shaped" and kept["later"] < LATER:
            kept["later"] += 1
            rows.append({"set": "later", **row, **explained(row["points"])})
        elif not reason and kept[half] < PER_HALF and kept[outline.key] < 2:
            kept[half] += 1
            kept[outline.key] += 1
            taken.append(profiled)
            rows.append({"set": f"{family}_{half}", **row})
        counts[reason or "star-shaped and new"] += 1
    for row in rows:
        write(row)
    return rows, counts


def judge(outline: Outline, taken: list[np.ndarray]) -> tuple[dict, str, np.ndarray]:
    """A row with the points, the reason why it is left out or nothing, and its profile."""
    row = {
        name: getattr(outline, name)
        for name in ("name", "title", "author", "licence", "source", "sha256")
    }
    ring, changed = thinned(outline.ring), 0.0
    seeing = kernel(ring)
    if seeing.area > 1e-4 * Polygon(ring).area:
        ring = ring - best_centre(ring, seeing)
    else:
        angle, radius, changed = star_shaped(ring) if outline.most_changed else (ring, ring, 1.0)
        if changed > outline.most_changed:
            return {**row, "points": ring}, "not star-shaped", np.empty(0)
        ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    ring /= np.hypot(*ring.T).max()
    if span(ring) < LEAST_RADIUS - TOLERANCE:
        return row, "too long for the bounds", np.empty(0)
    angle, radius = np.arctan2(ring[:, 1], ring[:, 0]) % (2 * np.pi), np.hypot(*ring.T)
    order = np.argsort(angle)
    profiled = profile(angle[order], radius[order])
    if distance(profiled, np.array(taken)) < APART:
        return row, "like another outline", profiled
    sides = np.diff(ring @ [1, 1j], append=ring[0] @ [1, 1j])
    turning = np.abs(np.angle(np.roll(sides, -1) / sides)).sum() / (2 * np.pi)
    described = {"vertices": len(ring), "least": f"{span(ring):.3f}", "turning": f"{turning:.2f}"}
    described["changed"] = f"{changed:.4f}"
    return {**row, **described, "points": np.column_stack([angle, radius])[order]}, "", profiled


def thinned(ring: np.ndarray) -> np.ndarray:
    """The ring with the vertices that matter, turning left."""
    reach = 0.5 * np.ptp(ring, axis=0).max()
    figure = shapely.orient_polygons(Polygon(ring).simplify(TOLERANCE * reach))
    return np.array(figure.exterior.coords)[:-1]


def write(row: dict) -> None:
    """Write one outline."""
    header, digits = ("x,y", 4) if row["set"] == "later" else ("phi,r", 5)
    lines = [",".join(f"{value:.{digits}f}" for value in point) for point in row.pop("points")]
    path = OUT / row["set"] / f"{row['name']}.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


def notice(rows: list[dict]) -> str:
    """Whose work the outlines are made of, by licence: CC-BY asks for author, title and licence."""
    lines = [NOTICE]
    for licence, address in ADDRESSES.items():
        lines.append(f"{licence} ({address})")
        of_authors: dict[str, set[str]] = {}
        for row in rows:
            if row["licence"] == licence:
                of_authors.setdefault(row["author"], set()).add(
                    row["title"].partition(", slice")[0]
                )
        lines += [
            f"  {author}: {', '.join(sorted(titles))}"
            for author, titles in sorted(of_authors.items())
        ]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    folder = Path(sys.argv[1])
    taken = known()
    for name in ("slices_tuning", "slices_test", "silhouettes_tuning", "silhouettes_test", "later"):
        shutil.rmtree(OUT / name, ignore_errors=True)
    rows = []
    for family, found in (("slices", slices(folder)), ("silhouettes", silhouettes(folder))):
        made, counts = make(family, found, taken)
        rows += made
        print(f"{family}: {dict(counts)}")
    with (OUT / "sources.csv").open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        table.writeheader()
        table.writerows(sorted(rows, key=lambda row: (row["set"], row["name"])))
    (OUT.parents[3] / "NOTICE").write_text(notice(rows), encoding="utf-8")
    print(Counter(row["set"] for row in rows))


if __name__ == "__main__":
    main()
