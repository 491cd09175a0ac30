/* The guided tour: states of the page, each with a few sentences (`_tour.py`). */
"use strict";
(() => {
  let at = -1;

  const render = () => {
    const box = document.getElementById("tour");
    for (const panel of document.querySelectorAll(".panel")) panel.classList.toggle("lit", at >= 0 && panel.id === GS.tour[at].panel);
    box.hidden = at < 0;
    if (at < 0) return;
    const step = GS.tour[at];
    const button = (text, to, disabled) => GS.el("button", { type: "button", disabled, onclick: () => go(to) }, text);
    const last = at === GS.tour.length - 1;
    box.replaceChildren(
      GS.el("h2", { tabindex: -1 }, GS.el("span", { class: "count" }, `${at + 1} of ${GS.tour.length} · `), step.title),
      GS.el("p", {}, GS.mixed(step.text)),
      GS.el("div", { class: "row" }, button("Back", at - 1, at === 0), last ? button("Finish", -1) : button("Next", at + 1), ...(last ? [] : [button("End the tour", -1)])),
    );
  };

  const go = (to) => {
    at = to;
    render();
    if (at < 0) { document.getElementById("tour-start").focus(); return; }
    GS.show(GS.tour[at]);
    document.querySelector("#tour h2").focus();
    const panel = document.getElementById(GS.tour[at].panel);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    panel.scrollIntoView({ block: innerWidth < 760 ? "end" : "center", behavior: still ? "auto" : "smooth" });
  };

  GS.tourTo = go;
  GS.buildTour = () => {
    document.getElementById("tour-start").addEventListener("click", () => go(0));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && at >= 0) go(-1); });
  };
})();
