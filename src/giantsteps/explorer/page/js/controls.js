/* Controls: every field of a problem, each with its label, its value and the place for its error. */
"use strict";
(() => {
  const form = () => document.getElementById("controls");
  let functionViews = {};
  let shape = "";  // what decides which controls there are; their values are updated in place

  const problem = () => GS.state.problem;
  const change = (path, value, moving = false) => GS.set({ problem: GS.with(problem(), path, value) }, { moving, source: path });

  // One control ---------------------------------------------------------------------------------

  let count = 0;
  const control = (path, label, tex, ...inputs) => {
    const id = `c${++count}`;
    inputs[0].id = id;
    inputs[0].setAttribute("aria-describedby", `${id}-problem`);
    const text = GS.el("label", { for: id }, label);
    if (tex) text.append(" ", GS.tex(document.createElement("span"), tex));
    return GS.el("div", { class: "control", "data-path": path }, text, ...inputs,
      GS.el("div", { class: "problem", id: `${id}-problem`, role: "alert", hidden: true }));
  };

  /** The present value at a path as text: an error of what was typed beside it lasts as long. */
  const keyAt = (path) => String(JSON.stringify(path === "d" ? GS.state.view.d : GS.get(problem(), path)));

  /** Take what is typed into a box; what `read` has no value for is said and not taken. */
  const listen = (box, path, allowed, read, take) => {
    box.addEventListener("input", () => {
      const value = read(box);
      GS.clearError(path);
      if (value !== undefined) { take(value); return; }
      GS.showError({ allowed }, path);
      box.closest(".control").dataset.typed = keyAt(path);  // what panels answer says nothing about it
    });
  };
  const numberIn = (box) => (Number.isFinite(box.valueAsNumber) ? box.valueAsNumber : undefined);
  /** Whether a box may be given the value of the problem: nobody is at it, and what it has was taken. */
  const isFree = (box) => document.activeElement !== box && !box.closest(".control").dataset.typed;

  const toSlider = (field, value) => (field.scale === "log"
    ? (1000 * Math.log(Math.max(value, field.min) / field.min)) / Math.log(field.max / field.min) : value);
  const fromSlider = (field, text) => {
    if (field.scale !== "log") return Number(text);
    return Number((field.min * (field.max / field.min) ** (Number(text) / 1000)).toPrecision(3));
  };

  /** A slider and a number; the number may leave the range of the slider. */
  const slider = (path) => {
    const field = GS.field(path);
    const box = GS.el("input", { type: "number", class: "value", step: "any", inputmode: "decimal" });
    const fixed = GS.backend.isStatic ? GS_STATIC.valuesOf(path) : null;
    const log = field.scale === "log";
    const range = GS.el("input", {
      type: "range", "aria-label": `${GS.fieldName(path)}, slider`,
      min: fixed ? 0 : log ? 0 : field.min, max: fixed ? fixed.length - 1 : log ? 1000 : field.max,
      step: fixed ? 1 : log ? 1 : field.step,
    });
    const take = (moving) => change(path, fixed ? fixed[Number(range.value)] : fromSlider(field, range.value), moving);
    range.addEventListener("input", () => { GS.clearError(path); box.value = fixed ? fixed[Number(range.value)] : fromSlider(field, range.value); take(true); });
    range.addEventListener("change", () => take(false));
    listen(box, path, "a number", numberIn, (value) => change(path, value));
    const element = control(path, field.label, field.tex, box, range);
    if (fixed) { box.readOnly = true; if (fixed.length < 2) range.disabled = true; }
    element.update = () => {
      const value = GS.get(problem(), path);
      if (isFree(box)) box.value = value ?? "";
      const place = fixed ? fixed.indexOf(value) : toSlider(field, value);
      if (document.activeElement !== range || String(range.value) === "") range.value = place;
      range.setAttribute("aria-valuetext", GS.format(value));
      if (document.activeElement !== range) range.value = place;
    };
    return element;
  };

  const select = (path, label, options, { get, set } = {}) => {
    const list = GS.el("select", { class: "value" }, ...options.map((name) => GS.el("option", { value: name }, String(name).replace("_", " "))));
    list.addEventListener("change", () => (set ? set(list.value) : change(path, list.value)));
    const element = control(path, label, "", list);
    element.update = () => {
      const value = get ? get() : GS.get(problem(), path) ?? options[0];
      if (![...list.options].some((option) => option.value === String(value))) list.append(GS.el("option", { value }, value));
      list.value = value;
    };
    if (GS.backend.isStatic) list.disabled = true;
    return element;
  };

  /** Numbers separated by commas. */
  const numbers = (path, label) => {
    const box = GS.el("input", { type: "text", class: "value full", spellcheck: "false" });
    const read = () => {
      const parts = box.value.split(",").map((part) => part.trim());
      return parts.every((part) => part && Number.isFinite(Number(part))) ? parts.map(Number) : undefined;
    };
    listen(box, path, "numbers with commas between them", read, (values) => change(path, values));
    const element = control(path, label, "", box);
    element.update = () => { if (isFree(box)) box.value = (GS.get(problem(), path) || []).join(", "); };
    return element;
  };

  const plainNumber = (path, label) => {
    const box = GS.el("input", { type: "number", class: "value", step: "any" });
    listen(box, path, "a number", numberIn, (value) => change(path, value));
    const element = control(path, label, "", box);
    element.update = () => { if (isFree(box)) box.value = GS.get(problem(), path) ?? ""; };
    return element;
  };

  // Functions -----------------------------------------------------------------------------------

  const asText = (data) => {
    if (typeof data === "string") return data;
    const text = data.name ?? data.expression ?? "";
    return data.centered ? `centered(${text})` : text;
  };

  const functionControl = (path, label, tex) => {
    const box = GS.el("input", { type: "text", class: "full", list: "function-names", spellcheck: "false", autocapitalize: "off" });
    const element = control(path, label, tex, box);
    element.querySelector("label").classList.add("full");
    const view = GS.el("div", { class: "function-view" });
    element.append(view);
    let timer = null, asked = 0;
    const look = async (given) => {
      const turn = ++asked;
      try {
        const found = await GS.backend.send("function", { function: given, field: path });
        if (turn !== asked) return null;
        functionViews[path] = found;
        showFunction(view, found, label);
        return found;
      } catch (error) {
        if (turn !== asked) return null;
        if (!(error instanceof GS.Refusal)) throw error;
        GS.showError(error.details, path);
        element.dataset.typed = keyAt(path);
        return null;
      }
    };
    box.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        GS.clearError(path);
        const text = box.value;
        if (await look(text)) change(path, text);
      }, 150);
    });
    if (GS.backend.isStatic) { box.readOnly = true; }
    let shown = null;
    element.update = () => {
      const given = GS.get(problem(), path);
      const text = given.rank ? given.expression : asText(given);
      if (document.activeElement !== box) box.value = text;
      const key = JSON.stringify(given);
      if (key !== shown && document.activeElement !== box) look(given).then(() => GS.redrawFloor?.());
      shown = key;
    };
    return element;
  };

  const showFunction = (view, found, label) => {
    view.replaceChildren();
    if (found.rank > 1) { view.append(GS.el("span", { class: "name" }, `depends on ${found.rank} directions`)); return; }
    const name = GS.el("span", { class: "name" });
    GS.tex(name, found.latex);
    const coefficients = found.hermite.map((v, i) => `degree ${i}: ${GS.format(v, 3)}`).join(", ");
    view.append(GS.sparkline(found.x, found.y, `Graph of the ${label} from −4 to 4`), GS.coefficientBars(found.hermite, `Hermite coefficients. ${coefficients}`), name);
  };

  GS.functionView = (path) => functionViews[path];

  // Steps ---------------------------------------------------------------------------------------

  const stepControls = (i, choices) => {
    const path = `steps.${i}`, step = problem().steps[i], last = problem().steps.length - 1;
    const replace = (list) => GS.set({ problem: { ...problem(), steps: list } });
    const moved = (to) => { const list = GS.copy(problem().steps); [list[i], list[to]] = [list[to], list[i]]; replace(list); };
    const button = (text, label, action, disabled) => GS.el("button", { type: "button", class: "small", "aria-label": label, disabled: disabled || GS.backend.isStatic, onclick: action }, text);
    const more = GS.el("details", {}, GS.el("summary", {}, "rule, loss, decay"),
      select(`${path}.rule`, "rule", choices.rule.enum), select(`${path}.loss`, "loss", choices.loss.enum), slider(`${path}.decay`));
    more.open = ["rule", "loss", "decay"].some((key) => step[key] !== undefined);
    const batches = i > 0 ? [select(`${path}.batch`, "batch", choices.batch.enum)] : [];
    return GS.el("div", { class: "step", role: "group", "aria-label": `Step ${i + 1}` },
      GS.el("div", { class: "head" }, GS.el("h3", {}, `Step ${i + 1}`),
        button("↑", `Move step ${i + 1} up`, () => moved(i - 1), i === 0),
        button("↓", `Move step ${i + 1} down`, () => moved(i + 1), i === last),
        button("✕", `Remove step ${i + 1}`, () => replace(problem().steps.filter((_, k) => k !== i)))),
      ...batches,
      ...(step.batch === "previous" ? [] : [slider(`${path}.samples`)]),
      slider(`${path}.rate`), slider(`${path}.exponent`), more);
  };

  // The form ------------------------------------------------------------------------------------

  const lawName = (given, fallback) => (given === undefined ? fallback : typeof given === "string" ? given : given.law);

  const secondLayer = () => {
    const path = "init.second_layer";
    const starts = { gaussian: "gaussian", constant: "constant", vocabulary: { law: "vocabulary", values: [-1, 1], probabilities: [0.5, 0.5] } };
    const found = [select(path, "second layer", Object.keys(starts), {
      get: () => lawName(GS.get(problem(), path), "gaussian"), set: (name) => change(path, starts[name]),
    })];
    if (lawName(GS.get(problem(), path)) === "vocabulary") found.push(numbers(`${path}.values`, "values"), numbers(`${path}.probabilities`, "probabilities"));
    if (typeof GS.get(problem(), path) === "object" && GS.get(problem(), path).law === "constant") found.push(plainNumber(`${path}.value`, "value"));
    return found;
  };

  const inputs = (laws) => {
    const starts = {
      isotropic: undefined, power_law: { law: "power_law", exponent: 0.2 },
      spiked: { law: "spiked", strength: 2, alignment: 0.5 },
      covariance: { law: "covariance", eigenvalues: [0.3, 1.7], weights: [0.5, 0.5] },
    };
    const given = problem().inputs;
    const found = [select("inputs", "law", laws, { get: () => lawName(given, "isotropic"), set: (name) => change("inputs", starts[name]) })];
    if (given && typeof given === "object") {
      for (const [key, value] of Object.entries(given)) {
        if (key !== "law") found.push((Array.isArray(value) ? numbers : plainNumber)(`inputs.${key}`, key));
      }
    }
    return found;
  };

  const dimension = () => {
    const box = GS.el("input", { type: "number", class: "value", min: 2, step: 1, placeholder: "limit" });
    const read = () => {
      if (box.value === "" && !box.validity.badInput) return null;
      return Number.isInteger(box.valueAsNumber) && box.valueAsNumber >= 2 ? box.valueAsNumber : undefined;
    };
    listen(box, "d", "a whole number from 2 on, or empty for the limit", read, (d) => GS.set({ view: { d } }, { source: "d" }));
    const element = control("d", "dimension d (empty: d → ∞)", "", box);
    element.update = () => { if (isFree(box)) box.value = GS.state.view.d ?? ""; };
    if (GS.backend.isStatic) box.readOnly = true;
    return element;
  };

  const group = (title, ...children) => GS.el("fieldset", {}, GS.el("legend", {}, title), ...children);

  const build = () => {
    const schema = GS.schema.ask.properties.problem.properties;
    const steps = problem().steps || [];
    const add = GS.el("button", { type: "button", disabled: GS.backend.isStatic, onclick: () => {
      const steps = problem().steps || [];
      const last = steps[steps.length - 1] || { samples: 4, rate: 1, exponent: 0.5 };
      GS.set({ problem: { ...problem(), steps: [...steps, { ...last, batch: "fresh" }] } });
    } }, "Add a step");
    const has = GS.el("input", { type: "checkbox", disabled: GS.backend.isStatic, onchange: () => change("readout", has.checked ? { samples: 3, penalty: 0.1 } : undefined) });
    has.checked = Boolean(problem().readout);
    const readout = problem().readout
      ? [...(steps.length ? [select("readout.batch", "batch", schema.readout.properties.batch.enum)] : []),
        ...(problem().readout.batch === "previous" ? [] : [slider("readout.samples")]), slider("readout.penalty")] : [];
    form().replaceChildren(
      GS.el("datalist", { id: "function-names" }, ...GS.schema.functions.map((name) => GS.el("option", { value: name }))),
      group("Network and teacher", functionControl("activation", "activation", "\\sigma"), functionControl("teacher", "teacher", "\\sigma_*"), slider("width"), slider("noise_variance")),
      group("Gradient steps on the first layer", ...steps.map((_, i) => stepControls(i, schema.steps.items.properties)), add),
      group("Readout: ridge regression", GS.el("label", { class: "inline" }, has, "train a readout"), ...readout),
      group("Initialisation", select("init.weights", "first layer", schema.init.properties.weights.enum), ...secondLayer(), select("init.output", "output", schema.init.properties.output.enum)),
      group("Inputs", ...inputs(GS.schema.inputs)),
      group("Size", dimension()),
    );
  };

  /** Build the controls anew if the problem has other fields; else update their values. */
  GS.renderControls = () => {
    const p = problem();
    const now = JSON.stringify([p.steps?.map((s) => s.batch), Boolean(p.readout), p.readout?.batch, lawName(p.init?.second_layer), typeof p.init?.second_layer, lawName(p.inputs), GS.state.view.key]);
    if (now !== shape) { const at = document.activeElement?.closest?.("[data-path]")?.dataset.path; shape = now; build(); if (at) form().querySelector(`[data-path="${at}"] input, [data-path="${at}"] select`)?.focus(); }
    for (const { dataset } of form().querySelectorAll(".control[data-typed]")) {
      if (dataset.typed !== keyAt(dataset.path)) GS.clearError(dataset.path);
    }
    for (const element of form().querySelectorAll(".control")) element.update?.();
  };

  // Errors --------------------------------------------------------------------------------------

  /** The control that a field belongs to: its own, or that of the part it lies in. */
  const controlOf = (field) => {
    for (let path = field; path; path = path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : "") {
      const found = form().querySelector(`.control[data-path="${CSS.escape(path)}"]`);
      if (found) return found;
    }
    return null;
  };

  /** Show an error of the library at the control that caused it; false if there is none. */
  GS.showError = (details, field = details.field) => {
    const element = field && controlOf(field);
    if (!element) return false;
    const place = element.querySelector(".problem");
    place.hidden = false;
    place.textContent = details.allowed ? `must be ${details.allowed}` : details.message;
    element.classList.add("bad");
    element.querySelector("input, select").setAttribute("aria-invalid", "true");
    return true;
  };

  GS.clearError = (path) => {
    for (const element of form().querySelectorAll(".control.bad")) {
      if (path ? element.dataset.path !== path : element.dataset.typed) continue;
      delete element.dataset.typed;
      element.classList.remove("bad");
      element.querySelector("input, select").removeAttribute("aria-invalid");
      const place = element.querySelector(".problem");
      place.hidden = true;
      place.textContent = "";
    }
  };
})();
