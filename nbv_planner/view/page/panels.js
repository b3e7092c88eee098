// The four panels. Each draws from the sections of the live view, whichever of them are there.

import { Plot, polar, ticks, zip } from "./plot.js";

const TURN = 2 * Math.PI;
const QUARTERS = ["0", "π/2", "π", "3π/2", "2π"];
const quarters = [0, 1, 2, 3, 4].map((k) => (k * TURN) / 4);
const WIDE = { width: 640, height: 270 };
const circle = (radius) => Array.from({ length: 181 }, (_, k) => polar((k * TURN) / 180, radius));
const round = (places) => (value) => String(Number(value.toFixed(places)));

export function drawWorld(svg, { scene, belief, truth, hits, camera, decision, ground }) {
  const { places, cameras } = decision;
  const far = decision.views.map(([, , distance]) => distance);
  const limit = 1.15 * Math.max(scene.view_distance, ...far, ...places.map(([x, y]) => Math.hypot(x, y)));
  const plot = new Plot(svg, {
    width: 800, height: 782, x: [-limit, limit], y: [-limit, limit], xlabel: "x (m)", ylabel: "y (m)",
  });
  const even = ticks(-limit, limit, 8);
  plot.xticks(even, round(6));
  plot.yticks(even, round(6));
  if (ground.png) plot.image(ground);
  plot.line(circle(scene.radius_min), "bound");
  plot.line(circle(scene.radius_max), "bound");
  plot.line(circle(scene.view_distance), "circle");
  const around = (radius) => belief.angle.map((angle, i) => polar(angle, radius[i]));
  plot.dots(places, "place");
  for (const path of ground.paths) plot.line(path, "path");
  plot.area([camera.cone], "cone");
  plot.area([around(belief.upper), around(belief.lower)], "band");
  plot.dots(zip(hits.earlier.angle, hits.earlier.radius).map(([a, r]) => polar(a, r)), "hit");
  plot.dots(zip(hits.last.angle, hits.last.radius).map(([a, r]) => polar(a, r)), "last");
  plot.line(around(belief.mean), "mean");
  for (const { measured, points } of belief.lines) plot.line(points, measured ? "mean" : "mean guess");
  for (const line of traced(truth)) plot.line(closed(line).map(([a, r]) => polar(a, r)), "truth");
  plot.area([camera.goal], "goal");
  plot.area([camera.camera], "camera");
  const taken = decision.views.filter(([number]) => number <= decision.taken);
  plot.dots(taken.map(([, angle, distance]) => polar(angle, distance)), "taken");
  plot.area(cameras.slice(0, taken.length), "body");
  numberViews(plot, decision.views);
}

/** The points of each true outline; of a single one that is star-shaped no outline has a number. */
function traced({ angle, radius, outline }) {
  const lines = new Map();
  zip(angle, radius).forEach((point, i) => {
    const number = outline ? outline[i] : 0;
    lines.set(number, [...(lines.get(number) ?? []), point]);
  });
  return [...lines.values()];
}

const closed = (points) => (points.length ? [...points, points[0]] : points);

/** Numbers behind the views: the last one, then those that have room. */
function numberViews(plot, views) {
  const last = views.length - 1;
  const order = [...views.keys()].sort((a, b) => (b === last) - (a === last) || a - b);
  const chosen = [];
  for (const index of order) {
    const [, angle, distance] = views[index];
    const here = polar(angle, distance);
    const gap = ([, other, far]) => Math.hypot(...polar(other, far).map((value, axis) => value - here[axis]));
    if (chosen.some((other) => gap(views[other]) < 0.085 * distance)) continue;
    chosen.push(index);
    const [x, y] = plot.place(polar(angle, 1.09 * distance));
    plot.text(x, y, String(views[index][0]), { class: index === last ? "number chosen" : "number" });
  }
}

export function drawPolar(svg, { scene, belief, truth, hits, decision }) {
  const low = Math.max(0, Math.min(scene.radius_min, ...belief.lower) - 0.4);
  const high = Math.max(scene.radius_max, ...belief.upper) + 0.4;
  const plot = new Plot(svg, {
    ...WIDE, x: [0, TURN], y: [low, high], xlabel: "polar angle φ (rad)", ylabel: "radius (m)",
  });
  angleTicks(plot);
  plot.yticks(ticks(low, high, 4), round(6));
  for (const bound of [scene.radius_min, scene.radius_max]) plot.line([[0, bound], [TURN, bound]], "bound");
  plot.area([[...zip(belief.angle, belief.upper), ...zip(belief.angle, belief.lower).reverse()]], "band");
  plot.dots(zip(hits.earlier.angle, hits.earlier.radius), "hit");
  plot.dots(zip(hits.last.angle, hits.last.radius), "last");
  plot.line(zip(belief.angle, belief.mean), "mean");
  if (truth.outline) plot.dots(zip(truth.angle, truth.radius), "truth");
  else plot.line(zip(truth.angle, truth.radius), "truth");
  for (const [number, angle] of decision.views) markTop(plot, angle, number > decision.taken);
  if (belief.lines.length) plot.note("several surfaces in a direction: see World");
  else if (!belief.angle.length) plot.note("no surface yet");
}

/** A triangle on the upper edge, pointing down: filled for a view taken, hollow for the goal. */
function markTop(plot, angle, isGoal) {
  const [x] = plot.place([angle, 0]);
  const y = plot.box.top + 9;
  const d = `M${x} ${y}L${x - 5} ${y - 9}L${x + 5} ${y - 9}Z`;
  plot.add("path", { class: isGoal ? "area goal" : "area camera", d });
}

const angleTicks = (plot) => plot.xticks(quarters, (value) => QUARTERS[quarters.indexOf(value)]);

export function drawObjective(svg, { decision }) {
  const shown = decision.utility.filter((value) => value !== null);
  const high = Math.max(...shown, 0);
  const low = Math.min(...shown, 0);
  const span = high - low || 1;
  const plot = new Plot(svg, {
    ...WIDE, x: [0, TURN], y: [low, low + 1.08 * span], ylabel: "objective",
    xlabel: decision.free ? "view angle θ (rad); the best of all distances and headings" : "view angle θ (rad)",
  });
  angleTicks(plot);
  plot.yticks(ticks(low, low + 1.08 * span, 4), compact);
  if (!decision.angle.length) return plot.note(decision.views.length ? "its candidates are not known" : "no decision yet");
  const order = nearest(decision.angle, decision.chosen.angle);
  decision.angle.forEach((angle, i) => {
    const kind = i === order ? "bar chosen" : decision.feasible[i] ? "bar" : "bar not";
    if (decision.utility[i] !== null) bar(plot, angle, decision.utility[i], decision.angle.length, kind);
  });
}

/** At most seven characters. */
function compact(value) {
  const size = Math.abs(value);
  return size >= 1e5 || (size > 0 && size < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

const nearest = (angles, wanted) => {
  const gaps = angles.map((angle) => 1 - Math.cos(angle - wanted));
  return gaps.indexOf(Math.min(...gaps));
};

function bar(plot, angle, value, count, kind) {
  const half = Math.min(0.1, (0.4 * TURN) / count);
  const [x1, y1] = plot.place([Math.max(0, angle - half), Math.max(0, value)]);
  const [x2, y2] = plot.place([Math.min(TURN, angle + half), Math.min(0, value)]);
  plot.add("rect", { class: kind, x: x1, y: y1, width: Math.max(1, x2 - x1), height: Math.max(0.5, y2 - y1) });
}

export function drawCoverage(svg, { coverage }) {
  const all = [...coverage.estimate, ...coverage.true];
  const most = Math.max(1, ...all.map(([number]) => number));
  const plot = new Plot(svg, {
    ...WIDE, x: [0, 1.03 * most], y: [0, 104], xlabel: "number of views", ylabel: coverage.label,
  });
  plot.xticks(ticks(0, most, Math.min(10, most)).filter(Number.isInteger));
  plot.yticks([0, 25, 50, 75, 100]);
  plot.line([[0, 100 * coverage.target], [1.03 * most, 100 * coverage.target]], "target");
  const percent = (points) => points.map(([number, value]) => [number, 100 * value]);
  plot.steps(percent(coverage.true), "truth");
  plot.steps(percent(coverage.estimate), "mean");
  plot.dots([...percent(coverage.true.slice(-1)), ...percent(coverage.estimate.slice(-1))], "newest");
}
