// The panels of an episode in space: a picture, candidates on the sphere, and their values.

import { Plot, ticks } from "./plot.js";

const WIDE = { width: 640, height: 270, right: 20 };

export function drawPicture(svg, { picture }) {
  const { png, azimuth, elevation } = picture;
  svg.setAttribute("viewBox", "0 0 800 782");
  svg.replaceChildren();
  const add = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    svg.append(element);
    return element;
  };
  const text = add("text", { x: 400, y: 774, "text-anchor": "middle" });
  text.textContent = png ? `from azimuth ${azimuth.toFixed(0)}°, elevation ${elevation.toFixed(0)}°` : "no surface yet";
  if (png) add("image", { href: `data:image/png;base64,${png}`, x: 20, y: 0, width: 760, height: 760 });
}

export function drawSphere(svg, { decision }) {
  const plot = new Plot(svg, { ...WIDE, x: [-180, 180], y: [-92, 92], xlabel: "azimuth (°)", ylabel: "elevation (°)" });
  plot.xticks([-180, -90, 0, 90, 180]);
  plot.yticks([-90, -45, 0, 45, 90]);
  if (!decision.sphere) return plot.note("no decision yet");
  for (const [azimuth, elevation, color] of decision.sphere.candidates) {
    const [cx, cy] = plot.place([azimuth, elevation]);
    plot.add("circle", { cx, cy, r: 5, fill: color });
  }
  for (const [number, azimuth, elevation] of decision.sphere.views) {
    const [x, y] = plot.place([azimuth, elevation]);
    const goal = number > decision.taken;
    plot.add("circle", { cx: x, cy: y, r: 8, class: goal ? "area goal" : "area visited" });
    plot.text(x + 10, y - 8, String(number), { class: goal ? "number chosen" : "number" });
  }
}

export function drawRanked(svg, { decision }) {
  const values = (decision.sphere?.ranked ?? []).filter((value) => value !== null);
  const high = Math.max(...values, 0) || 1;
  const plot = new Plot(svg, {
    ...WIDE, x: [0, Math.max(values.length, 1)], y: [0, 1.05 * high], xlabel: "rank", ylabel: "objective",
  });
  plot.yticks(ticks(0, high, 4), (value) => String(Number(value.toPrecision(3))));
  if (!values.length) return plot.note("no values yet");
  values.forEach((value, i) => {
    const [x1, y1] = plot.place([i + 0.1, Math.max(value, 0)]);
    const [x2, y2] = plot.place([i + 0.9, 0]);
    plot.add("rect", { class: "bar", x: x1, y: y1, width: Math.max(1, x2 - x1), height: Math.max(0.5, y2 - y1) });
  });
}
