/* Answers without a server: a table of errors over a few fields, and some answers as they are.
   `window.GS_DATA` (data.js, written by precompute.py) holds both. */
"use strict";
(() => {
  const { table, answers, start, schema } = window.GS_DATA;
  const paths = table.axes.map(([path]) => path);
  const valuesAlong = Object.fromEntries(table.axes);

  const get = (data, path) => path.split(".").reduce((at, key) => (at == null ? undefined : at[key]), data);

  /** The problem with the fields of the table taken out: those of the table's family agree. */
  const frame = (problem) => {
    const copy = JSON.parse(JSON.stringify(problem));
    for (const path of paths) {
      const keys = path.split("."), last = keys.pop();
      const parent = keys.reduce((at, key) => (at == null ? at : at[key]), copy);
      if (parent) parent[last] = null;
    }
    return JSON.stringify(copy);
  };
  const family = frame(start.problem);
  const within = (problem) => frame(problem) === family && paths.every((path) => valuesAlong[path].includes(get(problem, path)));

  /** Errors at a problem of the family: test, training, before the steps. */
  const cell = (problem) => {
    let place = 0;
    for (const path of paths) {
      const values = valuesAlong[path];
      place = place * values.length + values.indexOf(get(problem, path));
    }
    const read = (name) => table[name][place] ?? null;
    return { test: read("test"), train: read("train"), "initial.test": read("initial") };
  };

  const put = (problem, path, value) => {
    const copy = JSON.parse(JSON.stringify(problem));
    const keys = path.split("."), last = keys.pop();
    keys.reduce((at, key) => at[key], copy)[last] = value;
    return copy;
  };

  const key = (path, body) => JSON.stringify([path, body.question, body.problem, body.d ?? null, body.options ?? null, Object.keys(body.axes || {})[0] ?? null]);

  const risk = ({ problem, axes }) => {
    const path = axes && Object.keys(axes)[0];
    const cells = path ? axes[path].map((value) => cell(put(problem, path, value))) : [cell(problem)];
    const columns = path ? { [path]: axes[path] } : {};
    columns.d = cells.map(() => null);
    columns.source = cells.map(() => "limit");
    for (const name of Object.keys(cells[0])) columns[name] = cells.map((one) => one[name]);
    return { question: "risk", columns, facts: table.facts[get(problem, "steps.0.exponent")] };
  };

  const plane = ({ problem, x, y, quantity }) => {
    const read = { test: (c) => c.test, train: (c) => c.train, "initial.test": (c) => c["initial.test"],
      gain: (c) => c["initial.test"] - c.test, "gain over floor": (c) => table.floor - c.test }[quantity];
    if (!read) return undefined;
    const values = y.values.map((v) => x.values.map((u) => read(cell(put(put(problem, y.path, v), x.path, u)))));
    return { x, y, quantity, values, lines: [], refused: {} };
  };

  window.GS_STATIC = {
    start, schema,

    lookup(path, body) {
      const kept = answers[key(path, body)];
      if (kept) return kept;
      if (path === "function") return answers[JSON.stringify(["function", body.field, body.function])];
      if (path === "plane") return within(body.problem) && paths.includes(body.x.path) && paths.includes(body.y.path) ? plane(body) : undefined;
      if (path === "ask" && body.question === "risk" && within(body.problem) && !body.d && Object.keys(body.axes || {}).every((p) => paths.includes(p))) return risk(body);
      if (path === "ask" && body.question === "weights" && within(body.problem)) {
        // The weights know nothing of the readout.
        const readout = start.problem.readout;
        return answers[key("ask", { ...body, problem: { ...body.problem, readout } })];
      }
      return undefined;
    },

    /** Values that a slider can take. */
    valuesOf: (path) => (within(GS.state.problem) && valuesAlong[path]) || [get(GS.state.problem, path)],

    /** Values of a field along the curve of the errors; null where no curve is held. */
    axis(path) {
      const { problem, view } = GS.state;
      const kept = answers[key("ask", { question: "risk", problem, d: view.d, axes: { [path]: [] } })];
      if (kept) return kept.columns[path];
      return within(problem) ? valuesAlong[path] ?? null : null;
    },

    /** Values of a field along a side of the phase diagram. */
    side: (path) => valuesAlong[path] ?? [0, 1],
  };
})();
