"""Slow, plain implementations written from the formulas; the package's fast code is held to them.

Nothing here imports the package. Loops are meant: what is written is the formula, one element at a
time.
"""

from __future__ import annotations

import math

import numpy as np

TWO_PI = 2.0 * math.pi


# -------------------------------------------------------------------------------------------------
# angles, camera


def signed(angle: float) -> float:
    """The angle between -π and π."""
    return math.atan2(math.sin(angle), math.cos(angle))


def camera_polar(phi: float, r: float, theta: float, d_cam: float) -> tuple[float, float]:
    """Bearing and range of a world point, by shifting and rotating Cartesian coordinates."""
    dx = r * math.cos(phi) - d_cam * math.cos(theta)
    dy = r * math.sin(phi) - d_cam * math.sin(theta)
    ahead = (-math.cos(theta), -math.sin(theta))
    left = (-ahead[1], ahead[0])
    x_c = dx * ahead[0] + dy * ahead[1]
    y_c = dx * left[0] + dy * left[1]
    return math.atan2(y_c, x_c), math.hypot(x_c, y_c)


def line_radius(phi: float, theta: float, bearing: float, d_cam: float) -> float:
    """Radius at which the line cast at `bearing` meets the line through the origin at `phi`
    (signed).
    """
    cx, cy = d_cam * math.cos(theta), d_cam * math.sin(theta)
    dx, dy = math.cos(theta + math.pi + bearing), math.sin(theta + math.pi + bearing)
    ux, uy = math.cos(phi), math.sin(phi)
    # c + s d = r u: take the cross product with d
    return (cx * dy - cy * dx) / (ux * dy - uy * dx)


def half_width(d_cam: float, fov: float, d_max: float) -> float:
    """Half-width of the simple interval: polar angle between the line of sight and the end of a
    boundary ray.
    """
    return math.atan2(d_max * math.sin(fov / 2), d_cam - d_max * math.cos(fov / 2))


# -------------------------------------------------------------------------------------- ray casting


def _beam_meets_edge(px: float, py: float, ux: float, uy: float, a: tuple, b: tuple) -> float:
    """Distance along the beam to a closed edge, inf if it is missed; touching counts."""
    ax, ay = a[0] - px, a[1] - py
    ex, ey = b[0] - a[0], b[1] - a[1]
    size = math.hypot(ex, ey)
    if size == 0.0:
        return math.inf
    turn = ux * ey - uy * ex
    if abs(turn) <= 1e-14 * size:  # parallel: hit only if on one line
        if abs(ux * ay - uy * ax) > 1e-12 * (1.0 + math.hypot(ax, ay)):
            return math.inf
        ends = [ux * ax + uy * ay, ux * (ax + ex) + uy * (ay + ey)]
        ahead = [s for s in ends if s >= 0.0]
        return min(ahead) if ahead else math.inf
    s = (ax * ey - ay * ex) / turn
    t = (ax * uy - ay * ux) / turn
    if s < 0.0 or t < -1e-12 or t > 1.0 + 1e-12:
        return math.inf
    return s


def first_crossing(
    vertices: list[tuple[float, float]], x: float, y: float, direction: float
) -> float:
    """Range of the first crossing of one beam with a closed polyline: every edge is tried."""
    ux, uy = math.cos(direction), math.sin(direction)
    best = math.inf
    for k in range(len(vertices)):
        best = min(
            best, _beam_meets_edge(x, y, ux, uy, vertices[k], vertices[(k + 1) % len(vertices)])
        )
    return best


def encloses(vertices: list[tuple[float, float]], x: float, y: float) -> bool:
    """Whether a point lies inside a closed polyline (even-odd rule)."""
    inside = False
    for k in range(len(vertices)):
        (ax, ay), (bx, by) = vertices[k], vertices[(k + 1) % len(vertices)]
        if (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside


def distance_to(vertices: list[tuple[float, float]], x: float, y: float) -> float:
    """Distance from a point to a closed polyline."""
    best = math.inf
    for k in range(len(vertices)):
        (ax, ay), (bx, by) = vertices[k], vertices[(k + 1) % len(vertices)]
        ex, ey = bx - ax, by - ay
        size = ex * ex + ey * ey
        t = 0.0 if size == 0.0 else min(1.0, max(0.0, ((x - ax) * ex + (y - ay) * ey) / size))
        best = min(best, math.hypot(ax + t * ex - x, ay + t * ey - y))
    return best


# -------------------------------------------------------------------------------------------
# observation function


def observed(
    angles: list[float], radii: list[float], theta: float, d_cam: float, fov: float, d_max: float
) -> set[int]:
    """Indices of the observed points, walked point by point."""
    n = len(angles)
    bearing, distance = [], []
    for phi, r in zip(angles, radii, strict=True):
        alpha, d = camera_polar(phi, r, theta, d_cam)
        bearing.append(alpha)
        distance.append(d)
    start = min(range(n), key=lambda i: abs(signed(angles[i] - theta)))
    seen: set[int] = set()
    for side in (+1, -1):  # rising φ falls in bearing
        k = start
        # the nearest point belongs to the other side of the line of sight
        if side * bearing[k] > 0.0:
            k = (k + side) % n
        swept: list[float] = []
        for _ in range(n):
            alpha = bearing[k]
            if abs(alpha) > fov / 2 or distance[k] > d_max or side * alpha > 0.0:
                break
            if not swept or alpha < min(swept) or alpha > max(swept):
                seen.add(k)
            swept = [min([*swept, alpha]), max([*swept, alpha])]
            k = (k + side) % n
    return seen


# ------------------------------------------------------------------------------------------ kernels


def matern(nu: str, s: float, length: float) -> float:
    """Matérn correlation at distance `s` on the line (Rasmussen & Williams 4.17)."""
    s = abs(s)
    if nu == "1/2":
        return math.exp(-s / length)
    if nu == "3/2":
        u = math.sqrt(3.0) * s / length
        return (1.0 + u) * math.exp(-u)
    u = math.sqrt(5.0) * s / length
    return (1.0 + u + u * u / 3.0) * math.exp(-u)


def periodic_sum(nu: str, r: float, length: float) -> float:
    """Sum of all images that matter (at least 50 to either side), smallest first."""
    images = max(50, math.ceil(8.0 * length) * 10)
    return math.fsum(matern(nu, r + TWO_PI * i, length) for i in range(-images, images + 1))


def matern_integral(nu: float, s: float, length: float) -> float:
    """Matérn correlation for any ν from K_ν(u) = ∫_0^∞ exp(-u cosh t) cosh(νt) dt (Abramowitz &
    Stegun 9.6.24).
    """
    u = math.sqrt(2.0 * nu) * abs(s) / length
    if u == 0.0:
        return 1.0
    if u > 700.0:
        return 0.0
    # the trapezoidal rule converges exponentially here
    t = np.linspace(0.0, math.acosh(800.0 / u), 4001)
    inner = -u * np.cosh(t) + nu * math.log(u) + (1.0 - nu) * math.log(2.0) - math.lgamma(nu)
    terms = 0.5 * (np.exp(inner + nu * t) + np.exp(inner - nu * t))
    return float(math.fsum(terms) - 0.5 * (terms[0] + terms[-1])) * float(t[1])


def image_sum(correlation, r: float, images: int) -> float:
    """Sum of `correlation` at r + 2πi for |i| <= images."""
    return math.fsum(correlation(r + TWO_PI * i) for i in range(-images, images + 1))


def smooth_cut_off(r: float, c1: float, c2: float) -> float:
    """The thesis's cut-off from 1 to 0 between c1 and c2, case by case."""
    r = abs(r)
    if r <= c1:
        return 1.0
    if r >= c2:
        return 0.0
    low, high = math.exp(-(c2 - c1) / (c2 - r)), math.exp(-(c2 - c1) / (r - c1))
    return low / (low + high)


# ---------------------------------------------------------------------------------------- posterior


def textbook_posterior(kernel, prior_mean, grid, angle, radius, noise_std):
    """Gaussian conditioning with a plain inverse; `kernel(r)` is called for single numbers."""
    n, m = len(angle), len(grid)
    K = np.array(
        [[float(kernel(angle[i] - angle[j])) for j in range(n)] for i in range(n)]
    ).reshape(n, n)
    Ks = np.array(
        [[float(kernel(grid[i] - angle[j])) for j in range(n)] for i in range(m)]
    ).reshape(m, n)
    inverse = (
        np.linalg.inv(K + np.diag(np.asarray(noise_std, float) ** 2)) if n else np.zeros((0, 0))
    )
    mean = prior_mean + Ks @ inverse @ (np.asarray(radius, float) - prior_mean)
    variance = np.array([float(kernel(0.0)) - Ks[i] @ inverse @ Ks[i] for i in range(m)])
    return mean, np.sqrt(np.maximum(variance, 0.0))


# --------------------------------------------------------------------------------------- objectives


def boundary(phi: float, theta: float, d_cam: float, fov: float) -> float:
    """Distance from the origin to the boundary of the field of view in direction φ."""
    delta = signed(phi - theta)
    return (
        d_cam
        if delta == 0.0
        else line_radius(phi, theta, fov / 2 if delta < 0 else -fov / 2, d_cam)
    )


def sum_over_interval(grid, theta, d_cam, fov, d_max, term) -> float:
    """Sum of `term(k, fov_θ(φ_k))` over the grid angles inside the simple interval."""
    reach = half_width(d_cam, fov, d_max)
    total = 0.0
    for k, phi in enumerate(grid):
        if abs(signed(phi - theta)) <= reach:
            total += term(k, boundary(phi, theta, d_cam, fov))
    return total


def objective_i(grid, lower, upper, theta, *, d_cam, fov, d_max, h, step) -> float:
    def area(k, edge):
        return 0.5 * max(min(upper[k], edge) ** 2 - lower[k] ** 2, 0.0) * step

    return sum_over_interval(grid, theta, d_cam, fov, d_max, area) / h**2


def objective_csw(grid, lower, upper, theta, *, d_cam, fov, d_max, h, step) -> float:
    def area(k, edge):
        return edge / d_cam * 0.5 * (upper[k] ** 2 - lower[k] ** 2) * step

    return sum_over_interval(grid, theta, d_cam, fov, d_max, area) / h**2


def objective_cs(grid, lower, upper, theta, *, d_cam, fov, d_max, h, step) -> float:
    def area(k, edge):
        return 0.5 * (upper[k] ** 2 - lower[k] ** 2) * step

    return sum_over_interval(grid, theta, d_cam, fov, d_max, area) / h**2


def objective_csp(grid, lower, upper, theta, *, d_cam, fov, d_max, h, step) -> float:
    return (
        sum_over_interval(
            grid, theta, d_cam, fov, d_max, lambda k, edge: (upper[k] - lower[k]) * step
        )
        / h**2
    )


def objective_c(grid, lower, upper, theta, *, d_cam, fov, d_max, h, step) -> float:
    """C: walk from the camera's own angle to either side until the boundary ray dips below the
    lower bound.
    """
    reach = half_width(d_cam, fov, d_max)
    offsets = [signed(phi - theta) for phi in grid]
    kept: set[int] = set()
    for side in (+1, -1):
        for k in sorted(
            (k for k, delta in enumerate(offsets) if side * delta >= 0),
            key=lambda k: abs(offsets[k]),
        ):
            if abs(offsets[k]) > reach or lower[k] >= boundary(grid[k], theta, d_cam, fov):
                break
            kept.add(k)
    return sum(0.5 * (upper[k] ** 2 - lower[k] ** 2) * step for k in kept) / h**2


def intersection_interval(lower, theta, d_cam, fov, d_max, pieces=20_000) -> tuple[float, float]:
    """Ends of the intersection interval, relative to the view: march along both rays until inside
    `lower(φ)`.
    """
    ends = []
    for bearing in (fov / 2, -fov / 2):
        s = np.linspace(0.0, d_max, pieces)
        x = d_cam * math.cos(theta) + s * math.cos(theta + math.pi + bearing)
        y = d_cam * math.sin(theta) + s * math.sin(theta + math.pi + bearing)
        phi = np.arctan2(y, x)
        within = np.flatnonzero(np.hypot(x, y) <= lower(phi))
        ends.append(signed(phi[within[0] if len(within) else -1] - theta))
    return ends[0], ends[1]


def circular_interpolation(grid, values, phi: float) -> float:
    """Linear interpolation on a rising grid over the circle (with or without both ends)."""
    phi = phi % TWO_PI
    n = len(grid)
    for k in range(n):
        left = grid[k]
        right = grid[k + 1] if k + 1 < n else grid[0] + TWO_PI
        if left <= phi <= right and right > left:
            t = (phi - left) / (right - left)
            return (1 - t) * values[k] + t * values[(k + 1) % n]
    return values[0]


def pixel_of(x: float, y: float, h: float) -> tuple[int, int]:
    """Pixel that holds a point; pixels are centred on multiples of h."""
    return math.floor(x / h + 0.5), math.floor(y / h + 0.5)


def one_per_pixel(grid, radii, h: float) -> list[int]:
    """One grid index per pixel the curve visits: the first of the grid that lies in it."""
    chosen: dict[tuple[int, int], int] = {}
    for k, (p, r) in enumerate(zip(grid, radii, strict=True)):
        chosen.setdefault(pixel_of(r * math.cos(p), r * math.sin(p), h), k)
    return list(chosen.values())


def pixels_around(radius: float, h: float):
    """Centres of all pixels within `radius` of the origin."""
    n = math.ceil(radius / h)
    for i in range(-n, n + 1):
        for j in range(-n, n + 1):
            if math.hypot(i * h, j * h) <= radius:
                yield i * h, j * h


def objective_ioa(grid, lower, upper, theta, *, d_cam, fov, d_max, h, chosen=None) -> int:
    """IOA, pixel by pixel."""
    chosen = one_per_pixel(grid, lower, h) if chosen is None else list(chosen)
    angles, radii = [grid[k] for k in chosen], [lower[k] for k in chosen]
    seen = observed(angles, radii, theta, d_cam, fov, math.inf)
    screen = sorted(camera_polar(angles[k], radii[k], theta, d_cam) for k in seen)
    bearings, ranges = [s[0] for s in screen], [s[1] for s in screen]
    every = [camera_polar(p, r, theta, d_cam)[0] for p, r in zip(angles, radii, strict=True)]
    low, high = min(lower), max(upper)
    count = 0
    for x, y in pixels_around(high + h, h):
        r = math.hypot(x, y)
        if not low - 1e-9 <= r <= high + 1e-9:
            continue
        phi = math.atan2(y, x)
        alpha, d = camera_polar(phi, r, theta, d_cam)
        if abs(alpha) > fov / 2 or d > d_max:
            continue
        if (
            bearings
            and min(every) <= alpha <= max(every)
            and d >= float(np.interp(alpha, bearings, ranges))
        ):
            continue
        if (
            circular_interpolation(grid, lower, phi)
            <= r
            <= circular_interpolation(grid, upper, phi)
        ):
            count += 1
    return count


def count_pixels(inside, radius: float, h: float) -> int:
    """Number of pixel centres within `radius` of the origin for which `inside(φ, r)` holds."""
    return sum(inside(math.atan2(y, x), math.hypot(x, y)) for x, y in pixels_around(radius, h))


def count_polar_pixels(inside, radius: float, h: float) -> int:
    """Number of pixel centres of the polar world, an h-grid over (φ, r), for which `inside(φ, r)`
    holds.
    """
    angles, radii = np.arange(0.0, TWO_PI, h), np.arange(0.0, radius, h)
    return sum(inside(float(phi), float(r)) for phi in angles for r in radii)


# -------------------------------------------------------------------------------------------------
# thesis protocol


def summed_matern_32(r, length: float, std: float):
    """Periodic Matérn ν=3/2 by a plain sum of images, for arrays."""
    r = np.abs(np.asarray(r, float))[..., None] + TWO_PI * np.arange(-8, 9)
    u = math.sqrt(3.0) * np.abs(r) / length
    u0 = math.sqrt(3.0) * np.abs(TWO_PI * np.arange(-8, 9)) / length
    return std**2 * np.sum((1 + u) * np.exp(-u), axis=-1) / np.sum((1 + u0) * np.exp(-u0))


def thesis_episode(name: str, angles, radii, first: int | None):
    """The noise-free episode of the thesis in one function: the views taken, coverage and new
    points after each.

    `name` is U, UP, CSW, OSM (the omniscient greedy planner) or CS-U (two phases, the first one
    counts pixels).
    """
    d_cam, fov, d_max, h = 10.0, math.radians(35), 10.0, 0.1
    candidates, grid = np.linspace(0.0, TWO_PI, 100), np.linspace(0.0, TWO_PI, 1000)
    n, step = len(angles), TWO_PI / 999
    angles, radii = list(map(float, angles)), list(map(float, radii))
    visible = [observed(angles, radii, float(c), d_cam, fov, d_max) for c in candidates]
    interval = 2 * half_width(d_cam, fov, d_max)
    reach = interval / 2
    weights = None
    if name == "CSW":
        weights = np.array(
            [
                [
                    boundary(p, c, d_cam, fov) / d_cam if abs(signed(p - c)) <= reach else 0.0
                    for p in grid
                ]
                for c in candidates
            ]
        )
    if name == "CS-U":
        x, y = np.meshgrid(np.arange(-100, 101) * h, np.arange(-100, 101) * h)
        pixel_phi, pixel_r = np.arctan2(y, x).ravel() % TWO_PI, np.hypot(x, y).ravel()
        apart = candidates[:, None] - pixel_phi
        near = (np.abs(np.arctan2(np.sin(apart), np.cos(apart))) <= reach).astype(float)
    counts = np.zeros(n)
    prior_gram = summed_matern_32(np.subtract.outer(angles, angles), 0.2, 1.5)
    prior_cross = summed_matern_32(np.subtract.outer(grid, angles), 0.2, 1.5)
    seen: set[int] = set()
    views, history = [], []
    while True:
        data = np.flatnonzero(counts)
        # k repeats of one exact measurement weigh as one with noise variance σ²/k
        noisy = prior_gram[np.ix_(data, data)] + np.diag(0.04 / counts[data])
        gain = (
            np.linalg.solve(noisy, prior_cross[:, data].T).T
            if len(data)
            else np.zeros((len(grid), 0))
        )
        mean = 5.0 + gain @ (np.array(radii)[data] - 5.0)
        std = np.sqrt(np.maximum(2.25 - np.sum(gain * prior_cross[:, data], axis=1), 0.0))
        low, high = mean - 2 * std, mean + 2 * std
        if name == "OSM":
            value = np.array([len(v - seen) for v in visible], float)
        elif name == "CSW":
            value = weights @ (0.5 * (high**2 - low**2)) * step / h**2
        else:
            lo, hi = np.interp(candidates, grid, low), np.interp(candidates, grid, high)
            value = interval * (hi - lo if name == "UP" else 0.5 * (hi**2 - lo**2)) / h**2
        if name == "CS-U":
            in_band = (np.interp(pixel_phi, grid, low) <= pixel_r) & (
                pixel_r <= np.interp(pixel_phi, grid, high)
            )
            middle = candidates[int(np.argmax(near @ in_band))]
            value[[abs(signed(c - middle)) > reach for c in candidates]] = -math.inf
        best = first if first is not None and not views else int(np.argmax(value))
        new = visible[best] - seen
        if not new:
            break
        greedy = max(len(v - seen) for v in visible)
        seen |= visible[best]
        counts[list(visible[best])] += 1
        views.append(best)
        history.append((len(seen) / n, len(new), greedy))
        if len(seen) == n:
            break
    return views, history


# ------------------------------------------------------------------------------------------
# posterior shapes, rollouts


def visible_on_shape(grid, radii, theta, d_cam, fov, d_max) -> set[int]:
    """Grid indices that a view sees of a shape: each side walked outwards until the surface leaves
    the cone.

    A point is hidden if any point before it on its side has a bearing at least as far from the line
    of sight.
    """
    seen: set[int] = set()
    n = len(grid)
    for sign in (1, -1):
        side = sorted((sign * (grid[k] - theta)) % TWO_PI for k in range(n))
        index = {(sign * (grid[k] - theta)) % TWO_PI: k for k in range(n)}
        # A grid angle at the view itself belongs to the rising side alone.
        walk = [index[offset] for offset in side if (offset > 0.0 or sign == 1)]
        bearings: list[float] = []
        for k in walk:
            bearing, distance = camera_polar(grid[k], radii[k], theta, d_cam)
            if abs(bearing) > fov / 2 or distance > d_max:
                break
            if all(abs(bearing) > before for before in bearings):
                seen.add(k)
            bearings.append(abs(bearing))
    return seen


def points_on_shape(grid, radii, h: float) -> list[float]:
    """Pixel edges crossed around each grid angle: half of each of the two edges of the polygon that
    meet there.
    """
    n = len(grid)
    corner = [(r * math.cos(p), r * math.sin(p)) for p, r in zip(grid, radii, strict=True)]
    edge = [
        sum(abs(a - b) for a, b in zip(corner[k], corner[(k + 1) % n], strict=True)) / h
        for k in range(n)
    ]
    return [(edge[k - 1] + edge[k]) / 2 for k in range(n)]


def expected_gain(grid, shapes, taken, theta, *, d_cam, fov, d_max, h) -> float:
    """EMC of a view: points that it sees and none of the views taken does, one by one, averaged
    over the shapes.
    """
    total = 0.0
    for radii in shapes:
        points = points_on_shape(grid, radii, h)
        seen = {k for view in taken for k in visible_on_shape(grid, radii, view, d_cam, fov, d_max)}
        total += sum(
            points[k]
            for k in visible_on_shape(grid, radii, theta, d_cam, fov, d_max)
            if k not in seen
        )
    return total / len(shapes)


def greedy_views(sets, weight, needed: float, first: int) -> float:
    """Number of sets, `first` first and then greedily, that hold `needed` weight; the last one
    counts in part.

    A rest that no set holds counts as one.
    """
    left, views, chosen = dict(enumerate(weight)), 0.0, first
    while needed > 1e-9:
        gain = sum(left[k] for k in sets[chosen] if k in left)
        views += min(1.0, needed / gain) if gain > 0.0 else 1.0
        needed -= gain
        left = {k: w for k, w in left.items() if k not in sets[chosen]}
        chosen = max(range(len(sets)), key=lambda v: sum(left[k] for k in sets[v] if k in left))
        if needed > 1e-9 and not any(k in left for k in sets[chosen]):
            return views + 1.0
    return views
