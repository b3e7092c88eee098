// A small plotting surface on SVG: axes in data units, lines, areas, dots and texts. Texts are set as text only.

const SVG = "http://www.w3.org/2000/svg";
const round = (value) => Math.round(value * 10) / 10;

export const polar = (angle, radius) => [radius * Math.cos(angle), radius * Math.sin(angle)];
export const zip = (a, b) => a.map((value, i) => [value, b[i]]);

/** Ticks at round values from `low` to `high`, about `count` of them. */
export function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.8);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) found.push(i * step);
  return found;
}

export class Plot {
  /** Clear `svg` and give it axes: `x` and `y` are [least, greatest] in data units. */
  constructor(svg, { width, height, x, y, xlabel, ylabel, left = 58, right = 10, bottom = 40 }) {
    Object.assign(this, { svg, x, y, box: { left, right: width - right, top: 10, bottom: height - bottom } });
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.replaceChildren();
    this.add("rect", {
      class: "frame", x: left, y: 10, width: this.box.right - left, height: this.box.bottom - 10,
    });
    this.text((left + this.box.right) / 2, height - 6, xlabel, { "text-anchor": "middle" });
    const middle = (10 + this.box.bottom) / 2;
    this.text(14, middle, ylabel, { "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` });
  }

  add(name, attributes, parent = this.svg) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  }

  text(x, y, content, attributes = {}) {
    this.add("text", { x: round(x), y: round(y), ...attributes }).textContent = content;
  }

  place([x, y]) {
    const { left, right, top, bottom } = this.box;
    return [
      round(left + ((x - this.x[0]) / (this.x[1] - this.x[0])) * (right - left)),
      round(bottom - ((y - this.y[0]) / (this.y[1] - this.y[0])) * (bottom - top)),
    ];
  }

  xticks(values, label = String) {
    for (const value of values) {
      const [x] = this.place([value, this.y[0]]);
      this.add("line", { class: "tick", x1: x, x2: x, y1: this.box.top, y2: this.box.bottom });
      this.text(x, this.box.bottom + 16, label(value), { "text-anchor": "middle" });
    }
  }

  yticks(values, label = String) {
    for (const value of values) {
      const [, y] = this.place([this.x[0], value]);
      this.add("line", { class: "tick", x1: this.box.left, x2: this.box.right, y1: y, y2: y });
      this.text(this.box.left - 6, y + 4, label(value), { "text-anchor": "end" });
    }
  }

  path(points, closed = false) {
    if (!points.length) return "";
    return "M" + points.map((point) => this.place(point).join(" ")).join("L") + (closed ? "Z" : "");
  }

  line(points, kind) {
    if (points.length) this.add("path", { class: `line ${kind}`, d: this.path(points) });
  }

  /** Fill closed outlines; one that lies inside another is a hole. */
  area(outlines, kind) {
    const d = outlines.map((points) => this.path(points, true)).join("");
    if (d) this.add("path", { class: `area ${kind}`, d, "fill-rule": "evenodd" });
  }

  /** A picture whose first row is the lowest: its corner, direction and side of a pixel in data units. */
  image({ png, x, y, yaw, width, height, side }) {
    const { left, right, top, bottom } = this.box;
    const [x1, y1] = this.place([x, y]);
    const [x2, y2] = this.place([x + width * side, y + height * side]);
    const size = `scale(${(x2 - x1) / width} ${(y2 - y1) / height})`;
    const clip = this.add("clipPath", { id: "box" });
    this.add("rect", { x: left, y: top, width: right - left, height: bottom - top }, clip);
    this.add("image", {
      href: `data:image/png;base64,${png}`, width, height, preserveAspectRatio: "none",
      transform: `translate(${x1} ${y1}) rotate(${(-yaw * 180) / Math.PI}) ${size}`,
    }, this.add("g", { class: "ground", "clip-path": "url(#box)" }));
  }

  dots(points, kind) {
    const d = points.map((point) => `M${this.place(point).join(" ")}h0`).join("");
    if (d) this.add("path", { class: `dots ${kind}`, d });
  }

  /** Values as steps: each holds until the next. */
  steps(points, kind) {
    const corners = points.flatMap(([x, y], i) => (i ? [[x, points[i - 1][1]], [x, y]] : [[x, y]]));
    this.line(corners, `${kind} steps`);
  }

  note(content) {
    const { left, right, top, bottom } = this.box;
    this.text((left + right) / 2, (top + bottom) / 2, content, { class: "note", "text-anchor": "middle" });
  }
}
