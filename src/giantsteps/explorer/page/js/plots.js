/* Plots: axes, grid and cursor by uPlot; points with error bars, bars, bands and maps drawn over them. */
"use strict";
(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const HEIGHT = 270;

  /** Colours of a map: perceptually even, and blue–red around zero. Stops of red, green, blue. */
  const RAMPS = {
    even: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
    signed: [[178, 24, 43], [239, 138, 98], [247, 247, 247], [103, 169, 207], [33, 102, 172]],
  };

  const colourAt = (ramp, t) => {
    const place = Math.min(Math.max(t, 0), 1) * (ramp.length - 1);
    const i = Math.min(Math.floor(place), ramp.length - 2);
    return ramp[i].map((from, k) => Math.round(from + (ramp[i + 1][k] - from) * (place - i)));
  };

  /** Numbers on an axis; on a logarithmic one powers of ten, and 2 and 5 where there is room. */
  const tickLabels = (log) => (u, splits) => splits.map((v) => {
    if (v === null || v === undefined) return "";
    if (!log) return GS.format(v, 4);
    const lead = Number((v / 10 ** Math.floor(Math.log10(v) + 1e-9)).toPrecision(3));
    const decades = Math.log10(splits[splits.length - 1] / splits[0]);
    if (lead !== 1 && !(decades < 2.5 && (lead === 2 || lead === 5))) return "";
    return v < 1e-3 || v >= 1e5 ? v.toExponential(0).replace("e+", "e") : GS.format(v, 3);
  });

  const axis = (label, log, side) => ({
    label, side, stroke: css("--soft"), labelSize: 22, size: side === 3 ? 58 : 36, gap: 4, labelGap: 0,
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--grid"), width: 1, size: 5 },
    values: tickLabels(log), space: log && side !== 3 ? 18 : side === 3 ? 34 : 50,
  });

  const extent = (numbers, log) => {
    const usable = numbers.filter((v) => v !== null && Number.isFinite(v) && (!log || v > 0));
    if (!usable.length) return log ? [0.1, 1] : [0, 1];
    const low = Math.min(...usable), high = Math.max(...usable);
    if (log) return [low / 1.15, Math.max(high * 1.15, low * 1.5)];
    const room = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - room, high + room];
  };

  /**
   * Draw a plot into a container.
   * spec.x, spec.y: {label, log, range}; spec.at: common x of the lines;
   * spec.lines: [{name, values, colour, dash, width}]; spec.points: [{x, mean, error, colour}];
   * spec.bars: {edges, density}; spec.band: {low, high, colour}; spec.verticals: [{x, colour, dash, label}];
   * spec.map: {x, y, values, signed, lines, mark, cells: [{x, y, mean, error, theory, faded}]}.
   */
  GS.plot = (container, spec) => {
    container.plot?.destroy();
    const lines = spec.lines || [];
    const log = { x: Boolean(spec.x.log), y: Boolean(spec.y.log) };
    const positive = (v) => (log.y && !(v > 0) ? null : v);
    const at = spec.at && spec.at.length ? spec.at : [spec.x.range?.[0] ?? 0, spec.x.range?.[1] ?? 1];
    const data = [at, ...lines.map((line) => line.values.map(positive))];
    if (!lines.length) data.push(at.map(() => null));
    const points = spec.points || [];
    const range = {
      x: spec.x.range || extent(at, log.x),
      y: spec.y.range || extent([
        ...lines.filter((line) => !line.outside).flatMap((line) => line.values),
        ...points.flatMap((series) => series.mean.flatMap((m, i) => (m === null ? [] : [m - (series.error[i] || 0), m + (series.error[i] || 0)]))),
        ...(spec.bars ? [0, ...spec.bars.density] : []),
      ], log.y),
    };
    const width = Math.max(container.clientWidth, 200);
    const options = {
      width, height: spec.height || HEIGHT, padding: [8, 12, 0, 0],
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      scales: {
        x: { time: false, distr: log.x ? 3 : 1, range: () => range.x },
        y: { distr: log.y ? 3 : 1, range: () => range.y },
      },
      axes: [axis(spec.x.label, log.x, 2), axis(spec.y.label, log.y, 3)],
      series: [{}, ...(lines.length ? lines : [{ colour: "transparent" }]).map((line) => ({
        stroke: line.colour, width: line.width || 2, dash: line.dash, points: { show: false }, spanGaps: false,
      }))],
      hooks: {
        drawClear: [(u) => { if (spec.map) drawMap(u, spec.map); if (spec.bars) drawBars(u, spec.bars); if (spec.band) drawBand(u, at, spec.band); }],
        draw: [(u) => {
          for (const mark of spec.verticals || []) drawVertical(u, mark);
          for (const series of points) drawPoints(u, series);
          if (spec.map) drawLines(u, spec.map);
        }],
        setCursor: [(u) => spec.hover?.(u.cursor.idx)],
      },
    };
    container.plot = new uPlot(options, data, container);
    container.spec = spec;
    container.redraw = () => GS.plot(container, spec);
    return container.plot;
  };

  const clipped = (u, draw) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx, devicePixelRatio);
    ctx.restore();
  };

  const drawPoints = (u, series) => clipped(u, (ctx, ratio) => {
    ctx.strokeStyle = ctx.fillStyle = series.colour;
    ctx.globalAlpha = series.faded ? 0.35 : 1;
    ctx.lineWidth = 1.5 * ratio;
    series.x.forEach((x, i) => {
      if (series.mean[i] === null) return;
      const left = u.valToPos(x, "x", true), error = series.error[i] || 0;
      const [low, mid, high] = [-1, 0, 1].map((k) => u.valToPos(series.mean[i] + k * error, "y", true));
      ctx.beginPath();
      ctx.moveTo(left, Number.isFinite(low) ? low : mid);
      ctx.lineTo(left, Number.isFinite(high) ? high : mid);
      ctx.stroke();
      ctx.beginPath();
      ctx.arc(left, mid, 3.5 * ratio, 0, 2 * Math.PI);
      ctx.fill();
    });
  });

  const drawVertical = (u, mark) => clipped(u, (ctx, ratio) => {
    const left = u.valToPos(mark.x, "x", true);
    ctx.strokeStyle = mark.colour;
    ctx.lineWidth = (mark.width || 1.5) * ratio;
    ctx.setLineDash((mark.dash || []).map((v) => v * ratio));
    ctx.beginPath();
    ctx.moveTo(left, u.bbox.top + (1 - (mark.height || 1)) * u.bbox.height);
    ctx.lineTo(left, u.bbox.top + u.bbox.height);
    ctx.stroke();
    if (mark.label) {
      ctx.fillStyle = mark.colour;
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      const right = left > u.bbox.left + 0.75 * u.bbox.width;
      ctx.textAlign = right ? "right" : "left";
      ctx.fillText(mark.label, left + (right ? -5 : 5) * ratio, u.bbox.top + (1 - (mark.height || 1)) * u.bbox.height + 12 * ratio);
    }
  });

  const drawBars = (u, bars) => clipped(u, (ctx) => {
    ctx.fillStyle = bars.colour;
    ctx.globalAlpha = bars.faded ? 0.2 : 0.4;
    const zero = u.valToPos(0, "y", true);
    bars.density.forEach((height, i) => {
      const left = u.valToPos(bars.edges[i], "x", true), right = u.valToPos(bars.edges[i + 1], "x", true);
      const top = u.valToPos(height, "y", true);
      ctx.fillRect(left, top, Math.max(right - left - 0.5, 1), zero - top);
    });
  });

  const drawBand = (u, at, band) => clipped(u, (ctx) => {
    ctx.fillStyle = band.colour;
    ctx.globalAlpha = 0.18;
    ctx.beginPath();
    at.forEach((x, i) => ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(band.high[i], "y", true)));
    for (let i = at.length - 1; i >= 0; i--) ctx.lineTo(u.valToPos(at[i], "x", true), u.valToPos(band.low[i], "y", true));
    ctx.fill();
  });

  GS.mapRange = (map) => {
    const finite = map.values.flat().filter((v) => v !== null);
    let low = Math.min(...finite), high = Math.max(...finite);
    if (map.signed && low < 0 && high > 0) low = -(high = Math.max(-low, high));
    return finite.length ? [low, high] : [0, 1];
  };

  GS.mapRamp = (map) => { const [low] = GS.mapRange(map); return map.signed && low < 0 ? RAMPS.signed : RAMPS.even; };

  GS.rampCss = (map) => {
    const ramp = GS.mapRamp(map);
    return `linear-gradient(90deg, ${ramp.map((c) => `rgb(${c})`).join(", ")})`;
  };

  /** Where each of `count` even places along a drawn axis lies among its values: [left index, share]. */
  const places = ({ values, log }, count) => {
    const at = log ? values.map(Math.log) : values, last = at.length - 1;
    return Array.from({ length: count }, (_, k) => {
      const t = at[0] + ((at[last] - at[0]) * k) / (count - 1);
      let i = 0;
      while (i < last - 1 && at[i + 1] < t) i++;
      return [i, (t - at[i]) / (at[i + 1] - at[i])];
    });
  };

  /** A small image, linear between the values, stretched over the frame; empty where one is missing. */
  const drawMap = (u, map) => clipped(u, (ctx) => {
    const SIDE = 72, [low, high] = GS.mapRange(map), ramp = GS.mapRamp(map), v = map.values;
    const image = new ImageData(SIDE, SIDE), across = places(map.x, SIDE);
    places(map.y, SIDE).forEach(([j, b], row) => across.forEach(([i, a], column) => {
      const corners = [v[j][i], v[j][i + 1], v[j + 1][i], v[j + 1][i + 1]];
      if (corners.includes(null)) return;
      const value = (1 - b) * ((1 - a) * corners[0] + a * corners[1]) + b * ((1 - a) * corners[2] + a * corners[3]);
      image.data.set([...colourAt(ramp, high > low ? (value - low) / (high - low) : 0.5), 255], 4 * ((SIDE - 1 - row) * SIDE + column));
    }));
    const small = GS.el("canvas", { width: SIDE, height: SIDE });
    small.getContext("2d").putImageData(image, 0, 0);
    const { left, top, width, height } = u.bbox;
    // The middle of an outer pixel lies on the frame.
    const dx = width / (SIDE - 1), dy = height / (SIDE - 1);
    ctx.imageSmoothingQuality = "high";
    ctx.drawImage(small, left - dx / 2, top - dy / 2, width + dx, height + dy);
  });

  const DASHES = [[], [7, 4], [2, 3]];

  /** Of lines and dots on a map, whose colours are the same in both themes; a white rim sets them off. */
  GS.MAP_INK = "#111";

  const drawLines = (u, map) => clipped(u, (ctx, ratio) => {
    const trace = (piece) => {
      ctx.beginPath();
      for (const [x, y] of piece) ctx.lineTo(u.valToPos(x, "x", true), u.valToPos(y, "y", true));
      ctx.stroke();
    };
    (map.lines || []).forEach((line, k) => line.pieces.forEach((piece) => {
      ctx.setLineDash([]);
      ctx.strokeStyle = "rgba(255,255,255,.8)";
      ctx.lineWidth = 5 * ratio;
      trace(piece);
      ctx.setLineDash(DASHES[k % 3].map((v) => v * ratio));
      ctx.strokeStyle = GS.MAP_INK;
      ctx.lineWidth = 2 * ratio;
      trace(piece);
    }));
    drawCells(u, ctx, ratio, map);
    if (map.mark) {
      const x = u.valToPos(map.mark[0], "x", true), y = u.valToPos(map.mark[1], "y", true);
      ctx.setLineDash([]);
      ctx.beginPath();
      ctx.arc(x, y, 6 * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = "#fff";
      ctx.fill();
      ctx.lineWidth = 2 * ratio;
      ctx.strokeStyle = GS.MAP_INK;
      ctx.stroke();
    }
  });

  /** Simulated cells: dots in the colours of the map, with their means and theory's values. */
  const drawCells = (u, ctx, ratio, map) => {
    const [low, high] = GS.mapRange(map), ramp = GS.mapRamp(map);
    ctx.save();
    ctx.setLineDash([]);
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    for (const cell of map.cells || []) {
      const x = u.valToPos(cell.x, "x", true), y = u.valToPos(cell.y, "y", true);
      ctx.globalAlpha = cell.faded ? 0.4 : 1;
      ctx.beginPath();
      ctx.arc(x, y, 6 * ratio, 0, 2 * Math.PI);
      ctx.fillStyle = `rgb(${colourAt(ramp, high > low ? (cell.mean - low) / (high - low) : 0.5)})`;
      ctx.fill();
      ctx.lineWidth = 1.5 * ratio;
      ctx.strokeStyle = GS.MAP_INK;
      ctx.stroke();
      const text = [cell.mean, cell.theory].filter((v) => v !== null).map((v) => GS.format(v, 2)).join(" | ");
      const width = ctx.measureText(text).width + 6 * ratio;
      ctx.fillStyle = "rgba(255,255,255,.85)";
      ctx.fillRect(x - width / 2, y - 24 * ratio, width, 15 * ratio);
      ctx.fillStyle = GS.MAP_INK;
      ctx.fillText(text, x, y - 13 * ratio);
    }
    ctx.restore();
  };

  /** A tiny graph as SVG, for functions and their coefficients. */
  GS.sparkline = (x, y, label) => {
    const finite = y.filter((v) => v !== null && Math.abs(v) < 50);
    const low = Math.min(0, ...finite), high = Math.max(0, ...finite), room = (high - low || 1) * 0.08;
    const px = (v) => (100 * (v - x[0])) / (x[x.length - 1] - x[0]);
    const py = (v) => 60 - (60 * (v - low + room)) / (high - low + 2 * room);
    const path = y.map((v, i) => (v === null ? "" : `${i && y[i - 1] !== null ? "L" : "M"}${px(x[i]).toFixed(2)} ${py(Math.max(Math.min(v, 1e3), -1e3)).toFixed(2)}`)).join("");
    return svg(`<path d="M0 ${py(0)}H100M50 0V60" class="zero"/><path d="${path}" class="curve"/>`, label, true);
  };

  GS.coefficientBars = (values, label) => {
    const most = Math.max(...values.map(Math.abs), 1e-9), step = 100 / values.length;
    const bars = values.map((v, i) => {
      const height = (24 * Math.abs(v)) / most;
      return `<rect x="${i * step + 2}" y="${v >= 0 ? 27 - height : 27}" width="${step - 4}" height="${Math.max(height, 0.4)}" class="${v >= 0 ? "plus" : "minus"}"><title>degree ${i}: ${GS.format(v)}</title></rect><text x="${(i + 0.5) * step}" y="59">${i}</text>`;
    });
    return svg(`<path d="M0 27H100" class="zero"/>${bars.join("")}`, label);
  };

  const svg = (content, label, stretch = false) => {
    const holder = document.createElement("div");
    holder.innerHTML = `<svg viewBox="0 0 100 60" ${stretch ? `preserveAspectRatio="none"` : ""} role="img"><title></title>${content}</svg>`;
    const element = holder.firstChild;
    element.querySelector("title").textContent = label;
    return element;
  };

  GS.colour = css;
})();
