/* Who answers: the server of the explorer, or grids that were computed before (window.GS_STATIC). */
"use strict";
(() => {
  /** What the library refuses, or what went wrong on the way. */
  class Refusal extends Error {
    constructor(error, status) {
      super(error.message);
      Object.assign(this, { details: error, status });
    }
  }

  const live = {
    isStatic: false,

    async send(path, body, { signal, method } = {}) {
      const options = { signal, method: method || (body === undefined ? "GET" : "POST") };
      if (body !== undefined) {
        options.headers = { "Content-Type": "application/json" };
        options.body = JSON.stringify(body);
      }
      let response;
      try {
        response = await fetch(path, options);
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refusal({ type: "Gone", message: "the explorer does not answer: has it been stopped?" }, 0);
      }
      const found = await response.json();
      if (!response.ok) throw new Refusal(found.error, response.status);
      return found;
    },

    start: () => live.send("start"),
    schema: () => live.send("schema"),
  };

  /** Answers by the text of their request; only what was computed before is there. */
  const fixed = {
    isStatic: true,

    async send(path, body) {
      const found = GS_STATIC.lookup(path, body);
      if (found === undefined) {
        throw new Refusal({ type: "NotHere", message: "This page holds precomputed answers only, and not this one. Run “giantsteps explore” for all of them." }, 404);
      }
      if (found.error) throw new Refusal(found.error, 422);
      return found;
    },

    start: async () => GS_STATIC.start,
    schema: async () => GS_STATIC.schema,
  };

  GS.Refusal = Refusal;
  GS.backend = window.GS_STATIC ? fixed : live;
})();
