/* Take it with you: texts, links, figures, tables; and the gallery of starting points. */
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  let texts = {}, timer = null;

  const copy = async (text, what) => {
    const status = $("take-status");
    try {
      await navigator.clipboard.writeText(text);
      status.textContent = `${what} copied.`;
    } catch (error) {  // the browser may not allow it: select the text instead
      const range = document.createRange();
      range.selectNodeContents($("take-text"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      status.textContent = "Selected: press Ctrl+C to copy.";
    }
    setTimeout(() => { status.textContent = ""; }, 4000);
  };

  GS.refreshTexts = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const { problem, view } = GS.state;
      const question = GS.schema.questions[view.question];
      const d = question.finite ? view.d : null;
      try {
        texts = await GS.backend.send("take", { problem, d, question: view.question });
        $("take-text").textContent = texts[$("take-form").value];
      } catch (error) {
        if (!(error instanceof GS.Refusal)) throw error;
        texts = {};
        $("take-text").textContent = error.details.type === "NotHere" ? "" : `The problem is not valid: ${error.message}`;
      }
    }, 300);
  };

  const save = (blob, name) => {
    const link = GS.el("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const figure = async (panel, format, button) => {
    button.disabled = true;
    try {
      const found = await GS.backend.send("figure", { panel: panel.name, format, request: panel.body, points: GS.simulated.forFigure(panel) });
      const bytes = Uint8Array.from(atob(found.content), (c) => c.charCodeAt(0));
      save(new Blob([bytes], { type: found.type }), found.name);
    } catch (error) {
      if (!(error instanceof GS.Refusal)) throw error;
      panel.state.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  };

  const quoted = (value) => { const text = value === null ? "" : String(value); return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };

  /** Columns as CSV: those of the answer, or a phase diagram in long form. */
  GS.csvOf = (panel) => {
    let columns = panel.answer.columns;
    if (panel.name === "spectrum") {
      const pieces = panel.answer.bulk?.pieces || [];
      columns = { value: pieces.flatMap((p) => p.x), density: pieces.flatMap((p) => p.density), kind: pieces.flatMap((p) => p.x.map(() => "bulk")) };
      for (const value of panel.answer.columns.value || []) { columns.value.push(value); columns.density.push(null); columns.kind.push("spike"); }
    }
    if (panel.name === "plane") {
      const { x, y, values, quantity } = panel.answer;
      columns = { [x.path]: y.values.flatMap(() => x.values), [y.path]: y.values.flatMap((v) => x.values.map(() => v)), [quantity]: values.flat() };
      const cells = GS.simulated.plane(quantity).filter((cell) => !cell.faded);
      if (cells.length) {
        const at = columns[x.path].map((across, i) => cells.find((cell) => cell.x === across && cell.y === columns[y.path][i]));
        columns = { ...columns, simulated: at.map((cell) => cell?.mean ?? null), "standard error": at.map((cell) => cell?.error ?? null) };
      }
    }
    const names = Object.keys(columns);
    const rows = columns[names[0]].map((_, i) => names.map((name) => quoted(columns[name][i])).join(","));
    return [names.map(quoted).join(","), ...rows].join("\n") + "\n";
  };

  const tools = (panel) => {
    const button = (text, label, action) => { const made = GS.el("button", { type: "button", class: "small", "aria-label": `${label} of the panel ${panel.figure.querySelector("h2").textContent}`, onclick: () => panel.answer && action(made) }, text); return made; };
    const made = [button("CSV", "Download the numbers", () => save(new Blob([GS.csvOf(panel)], { type: "text/csv" }), `giantsteps-${panel.name}.csv`))];
    if (panel.name !== "numbers" && !GS.backend.isStatic) {
      made.push(...["svg", "pdf"].map((format) => button(format.toUpperCase(), `Download the figure as ${format.toUpperCase()}`, (pressed) => figure(panel, format, pressed))));
    }
    if (panel.name !== "numbers") {
      const table = GS.el("div", { class: "table", tabindex: 0, role: "region", "aria-label": "Numbers of the panel", hidden: true });
      const toggle = button("Table", "Show the numbers", () => {
        table.hidden = !table.hidden;
        toggle.setAttribute("aria-expanded", String(!table.hidden));
        if (table.hidden) return;
        const rows = GS.csvOf(panel).trim().split("\n").map((line) => line.split(","));
        table.replaceChildren(GS.el("table", {}, ...rows.map((row, i) => GS.el("tr", {}, ...row.map((cell) => GS.el(i ? "td" : "th", {}, i && cell !== "" && Number.isFinite(Number(cell)) ? GS.format(Number(cell)) : cell))))));
      });
      made.push(toggle);
      panel.figure.append(table);
    }
    panel.tools.append(...made);
  };

  GS.buildTake = () => {
    $("take-form").addEventListener("change", () => { $("take-text").textContent = texts[$("take-form").value] || ""; });
    $("take-copy").addEventListener("click", () => copy($("take-text").textContent, $("take-form").selectedOptions[0].textContent));
    $("take-link").addEventListener("click", () => { GS.writeUrl(); copy(location.href, "Link"); });
    for (const panel of Object.values(GS.panels)) tools(panel);
    const list = $("gallery");
    GS.gallery.forEach((entry, i) => list.append(GS.el("option", { value: i }, entry.title)));
    list.addEventListener("change", () => {
      if (list.value === "") return;
      const entry = GS.gallery[Number(list.value)];
      GS.show(entry);
      const note = $("gallery-note");
      note.hidden = false;
      note.textContent = entry.sentence + (entry.figure ? ` The figure itself: giantsteps figure ${entry.figure}.` : "");
    });
    if (GS.backend.isStatic) $("take").hidden = $("gallery").parentElement.hidden = true;
  };

  /** Put the page into a given state. */
  GS.show = ({ problem, view }) => GS.set({ problem: GS.copy(problem), view: { ...GS.copy(GS.DEFAULT_VIEW), ...view } });
})();
