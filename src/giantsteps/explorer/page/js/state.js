/* The state of the page: a problem, a view, and the URL that says both. */
"use strict";
const GS = {};

/** Numeric fields: label, symbol, range of the slider, and how it is divided. */
GS.FIELDS = {
  "width": { label: "width", tex: "N/d", min: 0.1, max: 10, scale: "log" },
  "noise_variance": { label: "noise variance", tex: "\\Delta", min: 0, max: 1, step: 0.01 },
  "steps.*.samples": { label: "samples", tex: "n_0/d", min: 0.1, max: 50, scale: "log" },
  "steps.*.rate": { label: "rate", tex: "\\eta/N^{e}", min: 0, max: 10, step: 0.05 },
  "steps.*.exponent": { label: "exponent", tex: "e", min: 0, max: 0.5, step: 0.01 },
  "steps.*.decay": { label: "weight decay", tex: "", min: 0, max: 0.95, step: 0.01 },
  "readout.samples": { label: "samples", tex: "n/d", min: 0.1, max: 20, scale: "log" },
  "readout.penalty": { label: "penalty", tex: "\\lambda", min: 1e-5, max: 10, scale: "log" },
  "init.second_layer.value": { label: "value", tex: "", min: 0.1, max: 5, step: 0.1 },
};

GS.field = (path) => GS.FIELDS[path.replace(/\d+/, "*")];

/** What a path is called on the page: "rate of step 1". */
GS.fieldName = (path) => {
  const parts = path.split(".");
  const name = (GS.field(path) || { label: parts[parts.length - 1].replace("_", " ") }).label;
  if (parts[0] === "steps") return GS.state.problem.steps.length > 1 ? `${name} of step ${+parts[1] + 1}` : `${name} of the step`;
  if (parts[0] === "readout") return `${name} of the readout`;
  return name;
};

GS.get = (data, path) => path.split(".").reduce((at, key) => (at == null ? undefined : at[key]), data);

GS.copy = (data) => JSON.parse(JSON.stringify(data));

/** A copy with another value at a path; undefined removes the key. */
GS.with = (data, path, value) => {
  const copy = GS.copy(data);
  const keys = path.split(".");
  const last = keys.pop();
  const parent = keys.reduce((at, key) => (at[key] ??= {}), copy);
  if (value === undefined) delete parent[last];
  else parent[last] = value;
  return copy;
};

/** Paths of the numbers of a problem that a curve or a plane may vary. */
GS.numericPaths = (problem) => {
  const found = ["width", "noise_variance"];
  (problem.steps || []).forEach((step, i) => found.push(`steps.${i}.samples`, `steps.${i}.rate`, `steps.${i}.exponent`));
  if (problem.readout) found.push("readout.samples", "readout.penalty");
  return found.filter((path) => {
    // A batch that is used once more has the samples of the step before.
    const match = path.match(/^steps\.(\d+)\.samples$/);
    if (match) return problem.steps[+match[1]].batch !== "previous";
    return path !== "readout.samples" || problem.readout.batch !== "previous";
  });
};

/** Values along the range of a field, the current value among them. */
GS.valuesOf = (path, count, include) => {
  const { min, max, scale } = GS.field(path);
  const at = (t) => (scale === "log" ? min * (max / min) ** t : min + (max - min) * t);
  const values = Array.from({ length: count }, (_, i) => at(i / (count - 1)));
  if (include !== undefined && include > min && include < max) {
    const near = values.reduce((best, v, i) => (Math.abs(v - include) < Math.abs(values[best] - include) ? i : best), 0);
    values[near] = include;
  }
  return values.map((v) => Number(v.toPrecision(6)));
};

GS.DEFAULT_VIEW = {
  x: "readout.samples", log: false, d: null, spectrum: "weights", along: "teacher", question: "risk",
  plane: { x: "steps.0.rate", y: "steps.0.samples", quantity: "gain over floor" },
};

GS.state = { problem: null, view: GS.copy(GS.DEFAULT_VIEW) };
GS.listeners = [];
GS.onChange = (listener) => GS.listeners.push(listener);

/** A batch that is used once more has the samples of the step before; the first step has a fresh one. */
GS.followed = (problem) => {
  const copy = GS.copy(problem), steps = copy.steps || [], readout = copy.readout || {};
  steps.forEach((step, i) => {
    if (i === 0 && step.batch === "previous") step.batch = "fresh";
    if (step.batch === "previous") step.samples = steps[i - 1].samples;
  });
  if (readout.batch === "previous" && !steps.length) readout.batch = "fresh";
  if (readout.batch === "previous") readout.samples = steps[steps.length - 1].samples;
  return copy;
};

/** Change the problem or the view; `moving` while a slider is dragged. */
GS.set = (change, { moving = false, source = null } = {}) => {
  if (change.problem) GS.state.problem = GS.followed(change.problem);
  if (change.view) GS.state.view = { ...GS.state.view, ...change.view };
  GS.repairView();
  clearTimeout(GS.urlTimer);
  GS.urlTimer = setTimeout(GS.writeUrl, 200);
  for (const listener of GS.listeners) listener({ moving, source, problem: Boolean(change.problem), view: change.view || {} });
};

/** Fields that the problem does not have cannot be varied. */
GS.repairView = () => {
  const { problem, view } = GS.state;
  const paths = GS.numericPaths(problem);
  if (!paths.includes(view.x)) view.x = paths.includes("readout.samples") ? "readout.samples" : paths[0];
  const plane = { ...GS.DEFAULT_VIEW.plane, ...view.plane };
  if (!paths.includes(plane.x)) plane.x = paths[0];
  if (!paths.includes(plane.y) || plane.y === plane.x) plane.y = paths.find((path) => path !== plane.x);
  view.plane = plane;
};

/** The state as the fragment of the address: plain JSON, percent-encoded. */
GS.hash = () => "#" + encodeURIComponent(JSON.stringify(GS.state));

GS.writeUrl = () => history.replaceState(null, "", GS.hash());

GS.readUrl = () => {
  if (location.hash.length < 2) return null;
  try {
    const state = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    if (state && typeof state.problem === "object" && state.problem !== null) {
      return { problem: { steps: [], noise_variance: 0, ...state.problem }, view: { ...GS.copy(GS.DEFAULT_VIEW), ...state.view } };
    }
  } catch (error) { /* not a state of ours: said below */ }
  GS.banner("The part of the address behind # is not a problem; the page starts from its default.");
  return null;
};

/** A message for the whole page; an empty one takes back only what the same source said. */
GS.banner = (text, source = "page") => {
  const banner = document.getElementById("banner");
  if (!text && banner.dataset.source !== source) return;
  banner.dataset.source = source;
  banner.hidden = !text;
  banner.textContent = text || "";
};

/** A number for people: five digits, no trailing zeros. */
GS.format = (value, digits = 5) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return value.toExponential(digits - 2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(digits)));
};

GS.tex = (element, text, display = false) => {
  katex.render(text, element, { throwOnError: false, displayMode: display });
  return element;
};

/** Text with $formulas$ as nodes. */
GS.mixed = (text) => {
  const span = document.createElement("span");
  text.split("$").forEach((part, i) => span.append(i % 2 ? GS.tex(document.createElement("span"), part) : part));
  return span;
};

/** An element with attributes and children. */
GS.el = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
};
