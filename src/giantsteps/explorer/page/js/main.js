/* Start: read the schema and the address, build the page, and follow every change. */
"use strict";
(async () => {
  const theme = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const paint = (isDark) => {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    theme.setAttribute("aria-pressed", String(isDark));
    GS.redrawPanels?.();
  };
  theme.addEventListener("click", () => paint(document.documentElement.dataset.theme !== "dark"));
  dark.addEventListener("change", () => paint(dark.matches));
  paint(dark.matches);
  for (const element of document.querySelectorAll(".tex")) GS.tex(element, element.textContent);

  try {
    const [start, schema] = await Promise.all([GS.backend.start(), GS.backend.schema()]);
    GS.schema = schema;
    GS.gallery = start.gallery;
    GS.tour = start.tour;
    if (start.store) document.getElementById("store-note").textContent = `Simulated networks are kept in ${start.store}.`;
    if (start.note) { const note = document.getElementById("static-note"); note.hidden = false; note.textContent = start.note; }
    const state = GS.readUrl() || { problem: start.problem, view: GS.copy(GS.DEFAULT_VIEW) };

    GS.buildPanels();
    GS.buildSimulate();
    GS.buildTake();
    GS.buildTour();
    GS.onChange((how) => {
      GS.renderControls();
      GS.renderChoices();
      GS.refreshPanels(how);
      GS.refreshTexts();
    });
    GS.set(state);
    GS.writeUrl();
    addEventListener("hashchange", () => { const found = GS.readUrl(); if (found) GS.set(found); });
  } catch (error) {
    if (!(error instanceof GS.Refusal)) throw error;
    GS.banner(error.message);
  }

  let timer = null;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(GS.redrawPanels, 150); });
  document.documentElement.dataset.ready = "true";
})();
