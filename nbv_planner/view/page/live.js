// Listens to the events of the server, keeps the newest sections, and draws what they change.

import { drawCoverage, drawObjective, drawPolar, drawWorld } from "./panels.js";
import { drawPicture, drawRanked, drawSphere } from "./space.js";

const PANELS = [
  ["world", drawWorld, ["scene", "belief", "truth", "hits", "camera", "decision", "ground"]],
  ["polar", drawPolar, ["scene", "belief", "truth", "hits", "decision"]],
  ["objective", drawObjective, ["decision"]],
  ["coverage", drawCoverage, ["coverage"]],
];
const IN_SPACE = [
  ["world", drawPicture, ["picture"], "Mean surface from the camera's side (grey: the model's guess)"],
  ["polar", drawSphere, ["decision"], "Candidate views by their value, and views taken"],
  ["objective", drawRanked, ["decision"], "Values of the candidate views, the best first"],
  ["coverage", drawCoverage, ["coverage"], "Completeness by number of views, as estimated"],
];
const QUIET_AFTER = 3; // seconds
const sections = {};
const byId = (id) => document.getElementById(id);

/** Write the status line. */
function say({ title, state, message, reason, doubt, views, elapsed, estimate, interval, target, deviation, waits_for: waits }) {
  byId("title").textContent = title || "nbv_planner";
  document.title = state ? `${state} · nbv_planner` : "nbv_planner";
  byId("state").textContent = reason ? `${state}: ${reason}` : state || "no planner found yet";
  byId("message").textContent = reason ? message.replace(`${reason}: `, "") : message;
  const figures = [`${views} views taken`];
  const [low, high, level] = (interval ?? []).map((part) => (100 * part).toFixed(0));
  const between = interval ? ` (${level} %: ${low} to ${high})` : "";
  if (estimate !== null) figures.push(`estimated ${target} ${(100 * estimate).toFixed(1)} %${between}`);
  if (elapsed !== null) figures.push(`${elapsed.toFixed(1)} s since the start`);
  byId("figures").textContent = state ? figures.join(" · ") : "";
  byId("deviation").textContent = deviation ? `deviation: ${deviation}` : "";
  byId("state").className = doubt ? "doubt" : "";
  list("waits", waits.map((text) => [`waiting for ${text}`, ""]));
}

/** Fill a list with texts, each with the class of its item. */
function list(id, entries) {
  byId(id).replaceChildren(...entries.map(([text, kind]) => {
    const item = document.createElement("li");
    item.textContent = text;
    item.className = kind;
    return item;
  }));
}

function draw(changed) {
  const space = "depth" in sections.picture;
  document.body.classList.toggle("space", space);
  for (const [id, panel, needs, caption] of space ? IN_SPACE : PANELS) {
    if (caption) byId(id).previousElementSibling.firstChild.textContent = caption + " ";
    if (needs.some((name) => name in changed)) panel(byId(id), sections);
  }
  const { chosen, choice } = sections.decision;
  byId("choice").textContent = choice ? `(view ${chosen.round}: ${choice})` : "";
  byId("objective").setAttribute("aria-label", chosen ? `view ${chosen.round} at ${chosen.place}` : "no decision");
  byId("world").setAttribute("aria-label", `world view with ${sections.decision.views.length} views`);
}

function connection(text, kind) {
  byId("connection").textContent = text;
  byId("connection").className = kind;
}

const events = new EventSource("events");
events.addEventListener("change", (event) => {
  const changed = JSON.parse(event.data);
  Object.assign(sections, changed);
  if (changed.status) say(changed.status);
  if (changed.checks) list("checks", changed.checks.map(({ text, level }) => [text, level]));
  draw(changed);
});
const ended = () => sections.status?.state === "DONE";
events.addEventListener("alive", (event) => {
  const quiet = Number(event.data);
  if (ended()) connection("ended", "");
  else if (quiet > QUIET_AFTER) connection(`nothing received for ${quiet.toFixed(0)} s`, "quiet");
  else connection("live", "");
});
events.addEventListener("error", () => {
  if (ended()) {
    connection("ended, and so has the program that showed it", "");
    events.close(); // what is drawn stays
    return;
  }
  connection("connection lost, trying again", "lost");
  // A browser gives up by itself when the server refuses; it may be there again later.
  if (events.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 2000);
});
