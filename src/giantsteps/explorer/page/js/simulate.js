/* Simulate here: networks in the background, their means and standard errors on the panels. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  //: Points of a simulated curve.
  const POINTS = 8;
  //: Results on the panels: what was asked, and the job that answered.
  let kept = null;
  let running = null;

  /** The problem without the fields that a curve or a plane varies: with equal keys they are the same. */
  const keyOf = (problem, ...paths) => JSON.stringify(paths.reduce((at, path) => GS.with(at, path, null), problem));

  const resultOf = (role) => {
    const i = kept ? kept.roles.indexOf(role) : -1;
    return i < 0 ? null : kept.job.results[i] || null;
  };

  GS.simulated = {
    label: () => (kept ? `simulation, d = ${kept.job.d}` : "simulation"),

    curve(path, colours) {
      const found = resultOf("curve");
      if (!found || kept.path !== path) return [];
      const faded = keyOf(GS.state.problem, path) !== keyOf(kept.problem, path);
      const series = { test: found.numbers.test, train: found.numbers.train, initial: found.initial.test };
      return Object.entries(series).filter(([, numbers]) => numbers).map(([name, numbers]) => (
        { name, x: found.coords[path], mean: numbers.mean, error: numbers.error, colour: colours[name], faded }));
    },

    histogram(name) {
      const found = resultOf("spectrum");
      if (!found?.histogram || found.question !== name || !found.histogram.density.length) return null;
      return { ...found.histogram, faded: keyOf(GS.state.problem) !== keyOf(kept.problem) };
    },

    /** Simulated values above the histogram: the largest singular values or eigenvalues. */
    spikes(name) {
      const found = resultOf("spectrum");
      if (!found || found.question !== name || !found.numbers.value) return [];
      const top = found.histogram?.edges[found.histogram.edges.length - 1] ?? 0;
      const faded = keyOf(GS.state.problem) !== keyOf(kept.problem);
      return found.numbers.value.mean.map((mean) => ({ mean, faded })).filter((spike) => spike.mean > top);
    },

    learned(colour) {
      const found = resultOf("learned");
      if (!found?.numbers.mean || kept.along !== GS.state.view.along) return [];
      const faded = keyOf(GS.state.problem) !== keyOf(kept.problem);
      return [{ x: found.numbers.x.mean, mean: found.numbers.mean.mean, error: found.numbers.mean.error, colour, faded }];
    },

    /** Numbers of a question at the current problem; none when it has changed since. */
    numbers(question) {
      if (!kept || keyOf(GS.state.problem) !== keyOf(kept.problem)) return {};
      const found = {};
      kept.job.results.forEach((result, i) => {
        if (result.question !== question || !["point", "numbers"].includes(kept.roles[i])) return;
        for (const [prefix, numbers] of [["", result.numbers], ["initial.", result.initial]]) {
          for (const [name, cell] of Object.entries(numbers)) {
            if (!cell.dims.length) found[prefix + name] = { mean: cell.mean, error: cell.error };
            else if (cell.dims.length === 1 && Array.isArray(cell.mean)) cell.mean.forEach((mean, k) => { found[`${prefix}${name}.${k}`] = { mean, error: cell.error[k] }; });
          }
        }
      });
      return found;
    },

    /** Simulated cells of the phase diagram: [{x, y, mean, error, faded}]. */
    plane(quantity) {
      const found = resultOf("plane"), { problem, view } = GS.state;
      if (!found || kept.plane.x !== view.plane.x || kept.plane.y !== view.plane.y) return [];
      const { x, y } = kept.plane, floor = GS.functionView("teacher")?.floor;
      const noise = (at) => at.noise_variance ?? problem.noise_variance;
      const { test, train, gain } = found.numbers;
      const [numbers, value] = {
        "test": [test, (v) => v], "train": [train, (v) => v], "initial.test": [found.initial.test, (v) => v], "gain": [gain, (v) => v],
        "test_noisy": [test, (v, at) => v + noise(at)], "gain over floor": [floor === undefined ? null : test, (v) => floor - v],
      }[quantity] || [];
      if (!numbers) return [];
      const faded = keyOf(problem, x, y) !== keyOf(kept.problem, x, y);
      return found.coords[y].flatMap((up, j) => found.coords[x].map((across, i) => ({ x: across, y: up, mean: numbers.mean[j][i], error: numbers.error[j][i], faded })))
        .filter((cell) => cell.mean !== null).map((cell) => ({ ...cell, mean: value(cell.mean, { [x]: cell.x, [y]: cell.y }) }));
    },

    /** Points for a figure drawn elsewhere; none of a problem that has changed since. */
    forFigure(panel) {
      const columns = (rows, names) => Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name])]));
      if (panel.name === "errors") return Object.fromEntries(GS.simulated.curve(GS.state.view.x, {}).filter((s) => !s.faded).map((s) => [s.name, columns(s.x.map((x, i) => ({ x, mean: s.mean[i], error: s.error[i] })), ["x", "mean", "error"])]));
      if (panel.name === "spectrum") {
        const name = GS.state.view.spectrum, bars = GS.simulated.histogram(name);
        return bars && !bars.faded ? { edges: bars.edges, density: bars.density, spikes: GS.simulated.spikes(name).map((s) => s.mean) } : {};
      }
      if (panel.name === "learned") {
        const [series] = GS.simulated.learned("");
        return series && !series.faded ? { x: series.x, mean: series.mean, error: series.error } : {};
      }
      const cells = GS.simulated.plane(panel.answer.quantity).filter((cell) => !cell.faded);
      return cells.length ? columns(cells, ["x", "y", "mean", "error"]) : {};
    },
  };

  const asks = () => {
    const { problem, view } = GS.state, roles = [], list = [];
    const add = (role, ask) => { roles.push(role); list.push(ask); };
    const simulates = (name) => GS.schema.questions[name]?.sides.includes("simulation");
    if (problem.readout) {
      add("curve", { question: "risk", problem, axes: { [view.x]: GS.valuesOf(view.x, POINTS, GS.get(problem, view.x)) } });
      add("point", { question: "risk", problem });
      const side = (path) => GS.valuesOf(path, GS.FIRST_SIDE).slice(1, -1);
      add("plane", { question: "risk", problem, axes: { [view.plane.y]: side(view.plane.y), [view.plane.x]: side(view.plane.x) } });
    }
    if (simulates(view.spectrum) && (problem.readout || !GS.schema.questions[view.spectrum].needs_readout)) add("spectrum", { question: view.spectrum, problem, options: { bulk: true } });
    if (problem.readout) add("learned", { question: "learned_function", problem, options: { along: view.along } });
    if (simulates(view.question) && view.question !== "risk") add("numbers", { question: view.question, problem });
    return { roles, list };
  };

  const show = (job) => {
    const status = $("simulate-status"), bar = $("simulate-progress");
    const active = job.state === "running";
    $("simulate-run").disabled = active;
    $("simulate-cancel").hidden = !active;
    $("simulate-clear").hidden = active || !kept;
    bar.hidden = !active;
    bar.max = Math.max(job.total, 1);
    bar.value = job.done + job.failed;
    const count = job.total ? `${job.done} of ${job.total} answers` : "starting";
    status.textContent = { running: `Simulating ${job.seeds} networks at d = ${job.d}: ${count}.`, done: `Done: ${job.seeds} networks at d = ${job.d}.${job.failed ? ` ${job.failed} answers failed: ${job.message}` : ""}`,
      cancelled: `Cancelled; ${count} are kept and will be reused.`, failed: `Failed: ${job.message}` }[job.state];
  };

  const follow = async (asked) => {
    try {
      let job = asked.job;
      while (job.state === "running") {
        await new Promise((resolve) => setTimeout(resolve, 250));
        job = await GS.backend.send(`simulate/${job.id}`);
        show(job);
      }
      if (job.state === "done" || (job.state === "cancelled" && job.results.length && job.done)) {
        kept = { ...asked, job };
        GS.redrawPanels();
      }
      show(job);
    } finally {
      running = null;
    }
  };

  const start = async () => {
    const { roles, list } = asks();
    const d = $("simulate-d").valueAsNumber, seeds = $("simulate-seeds").valueAsNumber;
    $("simulate-run").disabled = true;
    $("simulate-status").textContent = "Starting…";
    try {
      const job = await GS.backend.send("simulate", { d, seeds, asks: list });
      running = { roles, job, problem: GS.copy(GS.state.problem), path: GS.state.view.x, along: GS.state.view.along, plane: GS.copy(GS.state.view.plane) };
      if ($("simulate-same").checked && GS.state.view.d !== d) GS.set({ view: { d } });
      show(job);
      await follow(running);
    } catch (error) {
      if (!(error instanceof GS.Refusal)) throw error;
      $("simulate-run").disabled = false;
      $("simulate-status").textContent = `Not simulated: ${error.message}`;
    }
  };

  GS.buildSimulate = () => {
    $("simulate-run").addEventListener("click", start);
    $("simulate-cancel").addEventListener("click", () => running && GS.backend.send(`simulate/${running.job.id}`, undefined, { method: "DELETE" }));
    $("simulate-clear").addEventListener("click", () => { kept = null; $("simulate-clear").hidden = true; $("simulate-status").textContent = ""; GS.redrawPanels(); });
    if (GS.backend.isStatic) $("simulate").hidden = true;
  };
})();
