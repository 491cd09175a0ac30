/* The guided tour: eight states of the page, each with a few sentences. */
"use strict";
(() => {
  const giant = (changes = {}) => ({
    activation: "tanh", teacher: "sin", width: 1.5, noise_variance: 0.05,
    steps: [{ samples: 8, rate: 3, exponent: 0.5, batch: "fresh" }],
    readout: { samples: 3, penalty: 0.1 }, init: { weights: "gaussian", second_layer: "constant" }, ...changes,
  });
  const small = (rate) => giant({ width: 2, teacher: "centered(relu)", steps: [{ samples: 4, rate, exponent: 0, batch: "fresh" }] });

  const STEPS = [
    {
      title: "What a spike is", panel: "spectrum", problem: small(6), view: { spectrum: "weights", x: "steps.0.rate" },
      text: "The weights start random, and their singular values fill a bulk. One gradient step adds almost a matrix of rank one: every neuron moves along the same direction, which points towards the teacher. Here the step is large enough for one singular value to leave the bulk. That is the spike, and its singular vector holds what the network has learned about the direction of the teacher.",
    },
    {
      title: "When it appears", panel: "spectrum", problem: small(2), view: { spectrum: "weights", x: "steps.0.rate" },
      text: "The same step with a smaller rate: the bulk hides it, and the spectrum shows nothing. Between the two lies a sharp threshold. Move the slider of the rate slowly from 2 to 6 and watch the spike come out. More samples in the step lower the threshold.",
    },
    {
      title: "The floor", panel: "errors", problem: giant({ steps: [{ samples: 4, rate: 3, exponent: 0, batch: "fresh" }] }), view: { x: "readout.samples", spectrum: "weights" },
      text: "Spike or not, a step with a rate of order one leaves the features nearly linear in the inputs. The dotted line is the part of the teacher beyond its linear part, $E\\sigma_*^2 - (E\\sigma_*)^2 - c_1^2$: neither random features nor any kernel method with this many samples gets below it. The step helps (compare with the grey line), yet the test error stays above the floor however many samples the readout has.",
    },
    {
      title: "Passing it", panel: "errors", problem: giant({ readout: { samples: 6, penalty: 0.03 } }), view: { x: "readout.samples", spectrum: "weights" },
      text: "Now the rate grows with the width: $\\eta = 3\\sqrt N$, an exponent of 1/2. Each neuron moves by more than its own norm, the features become nonlinear functions of the spike, and the readout fits the teacher along it. The test error passes the floor. Slide the exponent back to 0 to lose it again, or give the step more samples to sharpen its direction.",
    },
    {
      title: "The staircase", panel: "errors",
      problem: giant({ activation: "centered(tanh(x) + 0.6*tanh(x)**2)", teacher: "he1(x) + he2(x)/2**0.5", width: 1, noise_variance: 0, steps: [{ samples: 4, rate: 1, exponent: 0.4, batch: "fresh" }], readout: { samples: 2, penalty: 0.01 }, init: { weights: "sphere", second_layer: "constant" } }),
      view: { x: "steps.0.exponent", d: 1000, spectrum: "weights" },
      text: "Between small and giant steps lies a staircase. This teacher has a linear and a quadratic part. Once the exponent passes 1/4, the features contain the square of the spike and the quadratic part can be learned. In the limit the error falls in stairs, one for each degree; at a finite size, here $d = 1000$, the stairs are slopes.",
    },
    {
      title: "Readouts", panel: "errors", problem: giant({ readout: { samples: 1.5, penalty: 0.0003 } }), view: { x: "readout.samples", log: true, spectrum: "weights" },
      text: "What the step has put into the features still has to be read out. With almost no penalty the test error peaks where the readout has as many samples as neurons, $n = N$: it fits the noise exactly there. Raise the penalty and the peak goes away; raise it further and the readout starts to ignore what it could learn. The phase diagram below shows both at once.",
    },
    {
      title: "Two steps", panel: "errors", problem: giant({ steps: [{ samples: 2, rate: 1, exponent: 0.5, batch: "fresh" }, { samples: 2, rate: 1, exponent: 0.5, batch: "fresh" }] }), view: { x: "steps.1.rate", spectrum: "weights", along: "teacher" },
      text: "A second step on a fresh batch starts from weights that already lean towards the teacher, and it learns from the residual of the first. Move the rate of step 2: at zero you have one step, and a moderate rate improves on it. You can add more steps, remove them and change their order.",
    },
    {
      title: "Reuse", panel: "learned", problem: giant({ activation: "centered(tanh(x) + 0.5*tanh(x)**2)", teacher: "he3(x)/6**0.5", noise_variance: 0, width: 1, steps: [{ samples: 4, rate: 2, exponent: 0.5, batch: "fresh" }, { samples: 4, rate: 2, exponent: 0.5, batch: "previous" }], readout: { samples: 3, penalty: 0.1 } }), view: { x: "readout.samples", along: "teacher", spectrum: "weights" },
      text: "This teacher has no linear part, so that a step on a fresh batch sees nothing of its direction. The second step here uses the batch of the first one again: weights and samples now depend on each other, and through this dependence the second step does see the teacher. Set the batch of step 2 to “fresh” and the learned function is flat again.",
    },
  ];

  let at = -1;

  const render = () => {
    const box = document.getElementById("tour");
    for (const panel of document.querySelectorAll(".panel")) panel.classList.toggle("lit", at >= 0 && panel.id === STEPS[at].panel);
    box.hidden = at < 0;
    if (at < 0) return;
    const step = STEPS[at];
    const button = (text, to, disabled) => GS.el("button", { type: "button", disabled, onclick: () => go(to) }, text);
    const last = at === STEPS.length - 1;
    box.replaceChildren(
      GS.el("h2", { tabindex: -1 }, GS.el("span", { class: "count" }, `${at + 1} of ${STEPS.length} · `), step.title),
      GS.el("p", {}, GS.mixed(step.text)),
      GS.el("div", { class: "row" }, button("Back", at - 1, at === 0), last ? button("Finish", -1) : button("Next", at + 1), ...(last ? [] : [button("End the tour", -1)])),
    );
  };

  const go = (to) => {
    at = to;
    render();
    if (at < 0) { document.getElementById("tour-start").focus(); return; }
    GS.show(STEPS[at]);
    document.querySelector("#tour h2").focus();
    const panel = document.getElementById(STEPS[at].panel);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    panel.scrollIntoView({ block: innerWidth < 760 ? "end" : "center", behavior: still ? "auto" : "smooth" });
  };

  GS.TOUR = STEPS;
  GS.tourTo = go;
  GS.buildTour = () => {
    document.getElementById("tour-start").addEventListener("click", () => go(0));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && at >= 0) go(-1); });
  };
})();
