/* Panels: each asks for what it shows, keeps the old answer greyed until the new one comes, and lets
   only the latest request through. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  //: Points of a curve while a slider moves, and when it rests.
  const COARSE = 11, FINE = 41;
  //: Cells of a side of the phase diagram at first, and when they are refined: the first are among the last.
  const FIRST_SIDE = 5, SIDE = 9;
  //: Milliseconds of a coarse answer after which a finer one would be no help.
  const PATIENCE = 6000;
  const panels = {};

  class Panel {
    constructor(name, { delay, request, draw, path = "ask", coarseFirst = false }) {
      Object.assign(this, { name, delay, request, draw, path, coarseFirst });
      this.figure = $(name);
      this.plot = GS.el("div", { class: "plot", role: "img" });
      this.key = GS.el("div", { class: "key" });
      this.state = GS.el("span", { class: "state", "aria-hidden": "true" });
      this.refusal = GS.el("div", { class: "refusal", role: "status", hidden: true });
      this.content = GS.el("div", { class: "content" });
      this.caption = GS.el("figcaption", {});
      this.tools = GS.el("div", { class: "tools" });
      this.figure.append(this.state, this.refusal, this.content, this.plot, this.key, this.caption, this.tools);
      this.latency = [];
      this.visible = true;
      new IntersectionObserver(([entry]) => { this.visible = entry.isIntersecting; if (this.waiting) this.go(); }, { rootMargin: "200px" }).observe(this.figure);
      panels[name] = this;
    }

    /** Ask again soon; a request that is under way is overtaken if it takes long. */
    refresh({ moving = false } = {}) {
      this.sliding = moving;
      this.moving = moving || this.coarseFirst;
      this.figure.classList.add("stale");
      this.figure.setAttribute("aria-busy", "true");
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.go(), moving ? Math.min(this.delay, 250) : this.delay);
    }

    go() {
      // What nobody sees need not be computed: it is when it comes into view.
      this.waiting = !this.visible && !GS.backend.isStatic;
      if (this.waiting) return;
      if (this.running) {
        this.pending = true;
        // A short request is worth waiting for; a long one that nobody needs any more is not.
        if (performance.now() - this.started > 300) this.controller.abort();
        return;
      }
      this.pending = false;
      this.send();
    }

    async send() {
      this.refining = this.coarseFirst && !this.moving;
      this.unrefined = "";
      const body = this.request(this);
      if (!body) return this.refuse({ message: this.unasked || "" });
      const text = JSON.stringify(body);
      if (text === this.shown) { this.settle(); return this.after(); }
      this.running = true;
      this.started = performance.now();
      this.controller = new AbortController();
      const late = setTimeout(() => { this.state.textContent = "computing…"; }, 400);
      try {
        this.answer = await GS.backend.send(this.path, body, { signal: this.controller.signal });
        this.body = body;
        this.shown = text;
        this.latency.push(performance.now() - this.started);
        this.refusal.hidden = true;
        this.plot.hidden = false;
        this.draw(this);
        GS.clearErrorsOf(this.name);
      } catch (error) {
        if (error.name === "AbortError") { /* overtaken */ }
        else if (error instanceof GS.Refusal && this.refining && this.answer) this.unrefined = error.message;
        else if (error instanceof GS.Refusal) this.refuse(error.details);
        else throw error;
      } finally {
        clearTimeout(late);
        this.running = false;
        if (!this.pending) this.settle();
        this.after();
      }
    }

    /** After an answer: what came meanwhile, or more points once the slider rests. */
    after() {
      if (this.pending) { this.pending = false; this.send(); }
      else if (this.moving) { this.moving = false; clearTimeout(this.timer); this.timer = setTimeout(() => this.go(), this.sliding ? 350 : 0); }
    }

    settle() {
      // Of a map that cannot be refined the coarse one stays.
      this.state.textContent = this.unrefined ? `coarse: ${this.unrefined}` : "";
      this.figure.classList.remove("stale");
      this.figure.setAttribute("aria-busy", "false");
    }

    /** Whether few points will do: while a slider moves, at first, and where they took long. */
    get isCoarse() { return this.moving || this.latency[this.latency.length - 1] > PATIENCE; }

    refuse(details) {
      this.answer = this.shown = null;
      this.plot.hidden = true;
      this.key.replaceChildren();
      this.caption.textContent = "";
      this.content.replaceChildren();
      this.refusal.hidden = false;
      this.refusal.replaceChildren(sentence(details), ...remedies(details));
      this.settle();
      GS.reportError(this.name, details);
    }

    redraw() { if (this.answer) this.draw(this); }

    /** The legend; `series`: [{name, colour, style, points, onMap}]. */
    legend(series) {
      this.key.replaceChildren(...series.map((s) => GS.el("span", { class: [s.points && "points", s.onMap && "on-map"].filter(Boolean).join(" "), style: `--colour:${s.colour};--style:${s.style || "solid"}` }, s.name)));
    }
  }

  const sentence = (details) => {
    if (details.type === "NotCovered") return `Theory does not cover this: ${details.why}. Try ${details.covered}.`;
    if (details.type === "NotConverged") return `The equations were not solved. Try ${details.advice}.`;
    return details.message;
  };

  /** Buttons that do what a refusal advises. */
  const remedies = (details) => {
    const found = [];
    if (details.type === "NotCovered" && GS.state.view.d === null) {
      found.push(GS.el("button", { type: "button", class: "small", onclick: () => GS.set({ view: { d: 1000 } }) }, "Use d = 1000"));
    }
    return found.flatMap((button) => [" ", button]);
  };

  // Errors at controls: shown while any panel has them --------------------------------------------

  const reported = {};
  GS.reportError = (name, details) => {
    if (details.field && GS.showError(details)) { reported[name] = details; return; }
    if (details.type === "Gone") GS.banner(details.message, "connection");
  };
  GS.clearErrorsOf = (name) => {
    delete reported[name];
    if (!Object.keys(reported).length) GS.clearError();
    GS.banner("", "connection");
  };

  // What is common --------------------------------------------------------------------------------

  const ask = (question, extra = {}) => {
    const row = GS.schema.questions[question], { problem, view } = GS.state;
    return { question, problem, d: row.finite ? view.d : null, ...extra };
  };

  const options = (select, entries, chosen) => {
    const now = JSON.stringify(entries);
    if (select.dataset.entries !== now) {
      select.replaceChildren(...entries.map(([value, name]) => GS.el("option", { value }, name)));
      select.dataset.entries = now;
    }
    select.value = chosen;
  };

  const COLOURS = () => ({ test: GS.colour("--c-test"), train: GS.colour("--c-train"), initial: GS.colour("--c-initial"), floor: GS.colour("--c-floor"), point: GS.colour("--c-point") });

  // Errors ----------------------------------------------------------------------------------------

  const errors = () => new Panel("errors", {
    delay: 0, coarseFirst: true,
    request(panel) {
      const { problem, view } = GS.state;
      if (!problem.readout) { panel.unasked = "Errors need a readout: tick “train a readout”."; return null; }
      const values = GS.backend.isStatic ? GS_STATIC.axis(view.x) : GS.valuesOf(view.x, panel.isCoarse ? COARSE : FINE, GS.get(problem, view.x));
      return ask("risk", { axes: { [view.x]: values }, partial: true });
    },
    draw(panel) {
      const { columns } = panel.answer, path = Object.keys(panel.body.axes)[0], field = GS.field(path), colours = COLOURS();
      const at = columns[path];
      const lines = [
        { name: "test error", values: columns.test, colour: colours.test },
        { name: "training error", values: columns.train, colour: colours.train },
      ];
      if (columns["initial.test"]) lines.push({ name: "test error before the steps", values: columns["initial.test"], colour: colours.initial, dash: [6, 4], style: "dashed" });
      const floor = GS.functionView("teacher")?.floor;
      if (floor > 1e-9) lines.push({ name: "floor of kernel methods", values: at.map(() => floor), colour: colours.floor, dash: [2, 3], width: 1.3, style: "dotted" });
      const points = GS.simulated.curve(path, { test: colours.test, train: colours.train, initial: colours.initial });
      const value = GS.get(GS.state.problem, path);
      const log = $("errors-log").checked;
      GS.plot(panel.plot, {
        at, lines, points, x: { label: GS.fieldName(path), log: field.scale === "log", range: [at[0], at[at.length - 1]] },
        y: { label: "error", log }, verticals: [{ x: value, colour: colours.point, dash: [3, 3], width: 1 }],
        hover: (i) => hover(panel, lines, at, i),
      });
      panel.legend([...lines, ...(points.length ? [{ name: GS.simulated.label(), colour: colours.test, points: true }] : []), { name: "now", colour: colours.point, style: "dotted" }]);
      const near = at.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(at[best] - value) ? i : best), 0);
      const there = at.map((_, i) => i).filter((i) => columns.test[i] !== null), first = there[0], last = there[there.length - 1];
      const empty = panel.answer.empty ? ` Theory has no answer at ${panel.answer.empty.cells} of ${at.length} points (${panel.answer.empty.why.why || panel.answer.empty.why.message}).` : "";
      const text = `Test error against the ${GS.fieldName(path)}, from ${GS.format(columns.test[first], 3)} at ${GS.format(at[first], 3)} to ${GS.format(columns.test[last], 3)} at ${GS.format(at[last], 3)}; ${GS.format(columns.test[near], 4)} at the current value ${GS.format(value, 3)}.${empty}`;
      panel.caption.textContent = text;
      panel.plot.setAttribute("aria-label", text);
    },
  });

  const hover = (panel, lines, at, i) => {
    if (i == null) { panel.state.textContent = ""; return; }
    panel.state.textContent = `${GS.format(at[i], 4)}: ${lines.map((line) => GS.format(line.values[i], 4)).join(" · ")}`;
  };

  // Numbers ---------------------------------------------------------------------------------------

  const numbers = () => new Panel("numbers", {
    delay: 0,
    request(panel) {
      const name = GS.state.view.question, row = GS.schema.questions[name];
      if (row.needs_readout && !GS.state.problem.readout) { panel.unasked = "This question needs a readout."; return null; }
      if (row.needs_step && !(GS.state.problem.steps || []).length) { panel.unasked = "This question needs a step."; return null; }
      return ask(name);
    },
    draw(panel) {
      const { columns, facts } = panel.answer;
      panel.plot.hidden = true;
      const names = Object.keys(columns).filter((name) => name !== "d" && name !== "source" && columns[name].some((v) => v !== null && !(typeof v === "number" && Math.abs(v) < 1e-20)));
      const measured = GS.simulated.numbers(panel.answer.question);
      const rows = columns.source.length === 1 ? names.map((name) => {
        const cell = measured[name];
        return GS.el("tr", {}, GS.el("th", { scope: "row" }, words(name)), GS.el("td", { class: "number" }, GS.format(columns[name][0])),
          ...(Object.keys(measured).length ? [GS.el("td", { class: "number" }, cell ? `${GS.format(cell.mean, 4)} ± ${GS.format(cell.error, 2)}` : "")] : []));
      }) : tableRows(columns, names);
      const head = columns.source.length === 1
        ? GS.el("tr", {}, GS.el("th", { scope: "col" }, "quantity"), GS.el("th", { class: "number", scope: "col" }, "theory"), ...(Object.keys(measured).length ? [GS.el("th", { class: "number", scope: "col" }, GS.simulated.label())] : []))
        : GS.el("tr", {}, ...names.map((name) => GS.el("th", { scope: "col" }, words(name))));
      const nothing = columns.source.length ? null : GS.el("p", {}, "None for this problem.");
      panel.content.replaceChildren(GS.el("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Numbers" }, GS.el("table", {}, GS.el("thead", {}, head), GS.el("tbody", {}, ...rows))), ...(nothing ? [nothing] : []), factsOf(facts));
      panel.content.values = columns;
    },
  });

  const tableRows = (columns, names) => columns.source.map((_, i) => GS.el("tr", {}, ...names.map((name) => GS.el("td", {}, GS.format(columns[name][i])))));

  const words = (name) => name.replace(/^initial\.(.*)$/, "$1 before the steps").replace(/by_degree\.(\d+)/, "test error of degree $1").replaceAll("_", " ").replace(/^test( before|$)/, "test error$1").replace(/^train( before|$)/, "training error$1");

  const factsOf = (facts) => {
    const list = GS.el("ul", { class: "facts" });
    const where = facts.d === null ? "in the limit d → ∞" : `at d = ${facts.d}`;
    list.append(GS.el("li", {}, GS.el("span", { class: "tag" }, facts.evidence || "computed"), ` ${where}${facts.exact ? "" : ", approximate here"}`));
    for (const text of facts.violated) list.append(GS.el("li", { class: "violated" }, `not satisfied: ${text}`));
    const held = facts.assumptions.filter((text) => !facts.violated.includes(text));
    if (held.length) {
      list.append(GS.el("li", {}, GS.el("details", {}, GS.el("summary", {}, `${held.length} assumptions hold`), GS.el("ul", { class: "facts" }, ...held.map((text) => GS.el("li", { class: "held" }, text))))));
    }
    if (facts.references.length) list.append(GS.el("li", {}, GS.el("details", {}, GS.el("summary", {}, `references: ${facts.references.join(", ")}`), GS.el("pre", { tabindex: 0 }, facts.citation))));
    if (facts.solution && facts.solution.error !== null) list.append(GS.el("li", {}, `numerical error about ${facts.solution.error.toExponential(0)} (relative)`));
    return list;
  };

  // Spectrum --------------------------------------------------------------------------------------

  const NAMES = { weights: "singular value of the weights", kernel: "eigenvalue of the kernel", features: "singular value of the features" };

  const spectrum = () => new Panel("spectrum", {
    delay: 200,
    request(panel) {
      const name = GS.state.view.spectrum;
      if (GS.schema.questions[name].needs_readout && !GS.state.problem.readout) { panel.unasked = "This spectrum needs the samples of a readout."; return null; }
      return ask(name);
    },
    draw(panel) {
      const { bulk, columns } = panel.answer, colours = COLOURS(), name = panel.answer.question;
      const at = [], density = [];
      for (const piece of bulk?.pieces || []) {
        if (at.length) { at.push(piece.x[0]); density.push(null); }
        at.push(...piece.x);
        density.push(...piece.density);
      }
      // Close to a hard edge the density diverges: show the rest.
      const sorted = density.filter((v) => v !== null).sort((a, b) => a - b);
      const cap = 2.2 * (sorted[Math.floor(0.75 * sorted.length)] || 1);
      const spikes = (columns.value || []).filter((v) => v !== null);
      const escaped = (columns.value || []).length - spikes.length;
      const histogram = GS.simulated.histogram(name), found = GS.simulated.spikes(name);
      const high = Math.max(at.length ? at[at.length - 1] : 1, ...spikes, ...found.map((s) => s.mean));
      const low = Math.min(0, at.length ? at[0] : 0);
      const top = Math.min(Math.max(...density.filter((v) => v !== null), 0) || 1, cap);
      GS.plot(panel.plot, {
        at, lines: [{ name: "bulk", values: density, colour: colours.test }],
        x: { label: NAMES[name] || "value", range: [low, high * 1.06] }, y: { label: "density", range: [0, 1.15 * top] },
        bars: histogram && { ...histogram, colour: colours.train },
        verticals: spikes.map((x, i) => ({ x, colour: colours.point, width: 2.5, height: 0.75, label: `spike ${GS.format(x, 4)}` })),
        points: found.map((s) => ({ x: [s.mean], mean: [0.05 * top], error: [0], colour: colours.train, faded: s.faded })),
      });
      panel.legend([{ name: "bulk (theory)", colour: colours.test }, ...(spikes.length ? [{ name: "spike (theory)", colour: colours.point }] : []),
        ...(histogram ? [{ name: GS.simulated.label(), colour: colours.train, points: true }] : [])]);
      const overlaps = Object.keys(columns).filter((key) => key.startsWith("overlap."));
      const spikeText = spikes.map((v, i) => `a spike at ${GS.format(v, 4)}${overlaps.length ? ` (squared overlap with the ${overlaps[0].slice(8).replaceAll("_", " ")} ${GS.format(columns[overlaps[0]][i], 3)})` : ""}`);
      if (escaped) spikeText.push(`${escaped === 1 ? "one spike grows" : `${escaped} spikes grow`} without bound as d → ∞${overlaps.length ? `, squared overlap with the ${overlaps[0].slice(8)} ${GS.format(columns[overlaps[0]][0], 3)}` : ""}: give d to see where`);
      const edges = (bulk?.support || []).map(([a, b]) => `[${GS.format(a, 3)}, ${GS.format(b, 3)}]`).join(" and ");
      const text = `Bulk on ${edges}; ${spikeText.length ? spikeText.join("; ") : "no spike"}.`;
      panel.caption.textContent = text;
      panel.plot.setAttribute("aria-label", text);
    },
  });

  // Learned function ------------------------------------------------------------------------------

  const learned = () => new Panel("learned", {
    delay: 80,
    request(panel) {
      if (!GS.state.problem.readout) { panel.unasked = "The learned function needs a readout."; return null; }
      return ask("learned_function", { options: { along: GS.state.view.along } });
    },
    draw(panel) {
      const { columns } = panel.answer, colours = COLOURS();
      const lines = [{ name: "learned function (mean)", values: columns.mean, colour: colours.test }];
      if (columns.target) lines.push({ name: "teacher", values: columns.target, colour: colours.floor, dash: [6, 4], style: "dashed" });
      const points = GS.simulated.learned(colours.train);
      GS.plot(panel.plot, {
        at: columns.x, lines, points,
        band: columns.band && { low: columns.mean.map((m, i) => m - columns.band[i]), high: columns.mean.map((m, i) => m + columns.band[i]), colour: colours.test },
        x: { label: GS.state.view.along === "teacher" ? "projection on the teacher" : "projection on the spike", range: [columns.x[0], columns.x[columns.x.length - 1]] }, y: { label: "output" },
        hover: (i) => hover(panel, lines, columns.x, i),
      });
      panel.legend([...lines, { name: "± one standard deviation", colour: colours.test, style: "dotted" }, ...(points.length ? [{ name: GS.simulated.label(), colour: colours.train, points: true }] : [])]);
      const gap = columns.target ? Math.max(...columns.mean.map((m, i) => Math.abs(m - columns.target[i]))) : null;
      const text = `The mean of the network given its ${GS.state.view.along === "teacher" ? "input along the teacher" : "input along the spike"}${gap === null ? "" : `; it is at most ${GS.format(gap, 2)} from the teacher on this range`}.`;
      panel.caption.textContent = text;
      panel.plot.setAttribute("aria-label", text);
    },
  });

  // Phase diagram ---------------------------------------------------------------------------------

  const SIGNED = ["gain", "gain over floor"];

  const plane = () => new Panel("plane", {
    delay: 700, path: "plane", coarseFirst: true,
    request(panel) {
      const { problem, view } = GS.state;
      if (!problem.readout) { panel.unasked = "Phase diagrams of errors need a readout."; return null; }
      const axis = (path) => ({ path, values: GS.backend.isStatic ? GS_STATIC.side(path) : GS.valuesOf(path, panel.isCoarse ? FIRST_SIDE : SIDE) });
      const lines = Object.keys(GS.schema.lines).filter((name) => (name === "critical rate" ? problem.steps?.length === 1 && problem.steps[0].exponent < 0.5 : name !== "gain" || problem.steps?.length));
      return { problem, d: view.d, quantity: view.plane.quantity, lines: panel.moving && !GS.backend.isStatic ? [] : lines, x: axis(view.plane.x), y: axis(view.plane.y) };
    },
    draw(panel) {
      const { x, y, values, lines } = panel.answer;
      const log = (axis) => GS.field(axis.path).scale === "log";
      const map = { x: { ...x, log: log(x) }, y: { ...y, log: log(y) }, values, lines, signed: SIGNED.includes(panel.answer.quantity),
        mark: [GS.get(GS.state.problem, x.path), GS.get(GS.state.problem, y.path)] };
      map.cells = GS.simulated.plane(panel.answer.quantity).map((cell) => ({ ...cell, theory: values[y.values.indexOf(cell.y)]?.[x.values.indexOf(cell.x)] ?? null }));
      const ends = (axis) => [axis.values[0], axis.values[axis.values.length - 1]];
      GS.plot(panel.plot, { map, height: 330, x: { label: GS.fieldName(x.path), log: log(x), range: ends(x) }, y: { label: GS.fieldName(y.path), log: log(y), range: ends(y) } });
      const [low, high] = GS.mapRange(map);
      panel.content.replaceChildren(GS.el("div", { class: "scale" }, GS.el("span", {}, GS.schema.quantities[panel.answer.quantity]), GS.format(low, 3), GS.el("span", { class: "ramp", style: `background:${GS.rampCss(map)}` }), GS.format(high, 3)));
      const drawn = lines.filter((line) => line.pieces.length);
      panel.legend([...drawn.map((line) => ({ name: line.label, colour: GS.MAP_INK, onMap: true, style: ["solid", "dashed", "dotted"][lines.indexOf(line) % 3] })),
        ...(map.cells.length ? [{ name: `${GS.simulated.label()} | theory`, colour: GS.MAP_INK, onMap: true, points: true }] : [])]);
      const compared = map.cells.filter((cell) => cell.theory !== null && cell.error > 0);
      const apart = compared.length ? ` Dots: ${map.cells.length} simulated cells, coloured by their mean, which stands before theory’s value; at most ${GS.format(Math.max(...compared.map((cell) => Math.abs(cell.mean - cell.theory) / cell.error)), 2)} standard errors apart.` : "";
      const text = `${GS.schema.quantities[panel.answer.quantity]} over ${GS.fieldName(x.path)} and ${GS.fieldName(y.path)}; the circle is the current problem. ${drawn.length ? `Lines: ${drawn.map((line) => line.label).join("; ")}.` : GS.backend.isStatic ? "Critical lines are drawn in the explorer itself." : panel.moving ? "" : "No critical line crosses this range."}${apart}`;
      panel.caption.textContent = text;
      panel.plot.setAttribute("aria-label", text);
    },
  });

  // Choices above the panels ----------------------------------------------------------------------

  GS.renderChoices = () => {
    const { problem, view } = GS.state;
    const paths = GS.numericPaths(problem).map((path) => [path, GS.fieldName(path)]);
    const held = GS.backend.isStatic ? paths.filter(([path]) => GS_STATIC.axis(path)) : paths;
    options($("errors-x"), held, view.x);
    options($("plane-x"), paths.filter(([path]) => path !== view.plane.y), view.plane.x);
    options($("plane-y"), paths.filter(([path]) => path !== view.plane.x), view.plane.y);
    options($("plane-quantity"), Object.entries(GS.schema.quantities), view.plane.quantity);
    const asked = Object.entries(GS.schema.questions).filter(([, row]) => row.sides.includes("theory"));
    options($("numbers-question"), asked.map(([name, row]) => [name, row.summary]), view.question);
    options($("spectrum-matrix"), asked.filter(([, row]) => row.answer === "Spectrum").map(([name]) => [name, name]), view.spectrum);
    $("learned-along").value = view.along;
    $("errors-log").checked = view.log;
  };

  GS.buildPanels = () => {
    for (const make of [errors, numbers, spectrum, learned, plane]) make();
    const on = (id, change) => $(id).addEventListener("change", () => GS.set({ view: change($(id)) }));
    on("errors-x", (el) => ({ x: el.value }));
    on("errors-log", (el) => ({ log: el.checked }));
    on("numbers-question", (el) => ({ question: el.value }));
    on("spectrum-matrix", (el) => ({ spectrum: el.value }));
    on("learned-along", (el) => ({ along: el.value }));
    for (const key of ["x", "y", "quantity"]) on(`plane-${key}`, (el) => ({ plane: { ...GS.state.view.plane, [key]: el.value } }));
    if (GS.backend.isStatic) for (const id of ["plane-x", "plane-y", "plane-quantity", "numbers-question", "learned-along", "spectrum-matrix"]) $(id).disabled = true;
  };

  GS.FIRST_SIDE = FIRST_SIDE;
  GS.panels = panels;
  GS.refreshPanels = (how) => {
    for (const panel of Object.values(panels)) {
      if (how.view.log !== undefined && !how.problem) { if (panel.name === "errors") panel.redraw(); continue; }
      panel.refresh(how);
    }
  };
  GS.redrawPanels = () => { for (const panel of Object.values(panels)) panel.redraw(); };
  GS.redrawFloor = () => panels.errors?.redraw();
})();
