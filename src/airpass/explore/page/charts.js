// Line charts in the looks of the figures: a legend that switches lines, numbers under the pointer, and a table.

import { el, fmt } from "./dom.js";
import { store } from "./store.js";
import uPlot from "./vendor/uPlot.esm.js";

/** @typedef {import("./types.js").Series} Series */
/** @typedef {import("./types.js").Look} Look */

const DASHES = /** @type {Record<string, number[]>} */ ({ "-": [], "--": [7, 4], "-.": [8, 3, 2, 3], ":": [2, 3] });

/**
 * @typedef {Object} ChartOptions
 * @property {string} label  what the chart shows, for screen readers
 * @property {string} xlabel
 * @property {string} ylabel
 * @property {string} [right]  label of a second axis, for series with the scale "right"
 * @property {number} [height]
 * @property {string} [log]  "", "x", "y" or "xy"
 * @property {{at: number[], text: string[]} | null} [ticks]  on x
 * @property {boolean} [table]  whether numbers are offered as a table
 * @property {(series: number, place: number) => void} [onPoint]  called when a point is clicked
 * @property {boolean} [whole]  whether ticks on y are whole numbers
 */

/** A look for lines that no scheme has. @param {string} name @param {number} place @returns {Look} */
export function plainLook(name, place) {
  const colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const dashes = ["-", "--", "-.", ":"];
  const markers = ["o", "^", "D", "v", "s", "X"];
  return {
    name,
    colour: colours[place % colours.length],
    dash: dashes[place % dashes.length],
    marker: markers[place % markers.length],
    filled: true,
    width: 1.4,
  };
}

/** A colour that can be seen on the page's background. @param {string} colour @returns {string} */
function visible(colour) {
  const dark = document.documentElement.dataset.theme === "dark";
  if (!dark) return colour;
  return { "#000000": "#e8e8e8", "#0072B2": "#4aa8e0" }[colour] ?? colour;
}

export class LineChart {
  /** @param {HTMLElement} host @param {ChartOptions} options */
  constructor(host, options) {
    this.options = options;
    /** @type {Series[]} */
    this.series = [];
    /** @type {Set<string>} */
    this.hidden = new Set();
    this.plotHost = el("div", { class: "plot", role: "img", "aria-label": options.label });
    this.legend = el("div", { class: "legend" });
    this.readout = el("p", { class: "readout", "aria-hidden": "true" });
    this.numbers = el("details", { class: "numbers" }, el("summary", {}, "Numbers"));
    this.numbers.addEventListener("toggle", () => this.fillTable());
    host.replaceChildren(this.plotHost, this.readout, this.legend);
    if (options.table !== false) host.append(this.numbers);
    /** @type {any} */
    this.plot = null;
    this.width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.plotHost.clientWidth - this.width) > 2) this.draw();
    }).observe(this.plotHost);
    store.subscribe("theme", () => {
      if (this.plotHost.isConnected) this.draw();
    });
  }

  /** @param {Series[]} series */
  set(series) {
    this.series = series;
    this.draw();
    this.drawLegend();
    this.fillTable();
  }

  /** Series that are switched on. */
  shown() {
    return this.series.filter((one) => !this.hidden.has(one.label));
  }

  drawLegend() {
    this.legend.replaceChildren(
      ...this.series.map((one) => {
        const sample = legendSample(one.look);
        return el(
          "button",
          {
            type: "button",
            "aria-pressed": String(!this.hidden.has(one.label)),
            onclick: () => {
              if (!this.hidden.delete(one.label)) this.hidden.add(one.label);
              this.draw();
              this.drawLegend();
              this.fillTable();
            },
          },
          sample,
          one.label,
        );
      }),
    );
  }

  fillTable() {
    if (!this.numbers.open) return;
    const shown = this.shown();
    const xs = [...new Set(shown.flatMap((one) => one.x))].sort((a, b) => a - b);
    const head = el("tr", {}, el("th", { scope: "col" }, this.options.xlabel));
    for (const one of shown) head.append(el("th", { scope: "col" }, one.label));
    const body = el("tbody");
    for (const x of xs) {
      const row = el("tr", {}, el("th", { scope: "row" }, this.xText(x)));
      for (const one of shown) row.append(el("td", {}, pointText(one, one.x.indexOf(x))));
      body.append(row);
    }
    const table = el("div", { class: "scroll", tabindex: "0" }, el("table", {}, el("thead", {}, head), body));
    this.numbers.replaceChildren(el("summary", {}, "Numbers"), table);
  }

  /** @param {number} x @returns {string} */
  xText(x) {
    const place = this.options.ticks?.at.indexOf(x) ?? -1;
    return place >= 0 ? /** @type {any} */ (this.options.ticks).text[place] : fmt(x, 5);
  }

  draw() {
    this.plot?.destroy();
    this.plot = null;
    const shown = this.shown();
    this.width = this.plotHost.clientWidth;
    if (this.width < 60 || shown.length === 0) return;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--muted").trim();
    const grid = style.getPropertyValue("--line").trim();
    const log = this.options.log ?? "";
    const xs = [...new Set(shown.flatMap((one) => one.x))].sort((a, b) => a - b);
    const data = [xs, ...shown.map((one) => xs.map((x) => one.y[one.x.indexOf(x)] ?? null))];
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "11px system-ui" };
    const ticks = this.options.ticks ?? null;
    const options = {
      width: this.width,
      height: this.options.height ?? 260,
      legend: { show: false },
      cursor: { points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, distr: log.includes("x") ? 3 : 1, range: padded(log.includes("x")) },
        y: { distr: log.includes("y") ? 3 : 1, ...(log.includes("y") ? {} : { range: withIntervals(shown) }) },
        right: {},
      },
      axes: [
        {
          ...axis,
          label: this.options.xlabel,
          labelFont: "12px system-ui",
          labelSize: 18,
          size: 30,
          ...(ticks === null
            ? {}
            : {
                splits: () => ticks.at,
                values: (/** @type {any} */ _, /** @type {number[]} */ at) =>
                  at.map((one) => ticks.text[ticks.at.indexOf(one)] ?? ""),
              }),
        },
        {
          ...axis,
          label: this.options.ylabel,
          labelFont: "12px system-ui",
          labelSize: 20,
          size: 48,
          ...(this.options.whole === true ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] } : {}),
        },
        ...(this.options.right === undefined
          ? []
          : [{ ...axis, scale: "right", side: 1, label: this.options.right, labelFont: "12px system-ui", labelSize: 20, grid: { show: false } }]),
      ],
      series: [
        {},
        ...shown.map((one) => ({
          label: one.label,
          scale: one.scale ?? "y",
          stroke: visible(one.look.colour),
          width: Math.min(one.look.width * 1.3, 4),
          dash: DASHES[one.look.dash],
          spanGaps: true,
          points: { show: false },
        })),
      ],
      hooks: {
        drawSeries: [(/** @type {any} */ u, /** @type {number} */ i) => drawMarks(u, i, shown[i - 1])],
        setCursor: [(/** @type {any} */ u) => this.read(u, xs, shown)],
      },
    };
    this.plot = new uPlot(options, data, this.plotHost);
    if (this.options.onPoint !== undefined) {
      this.plot.over.addEventListener("click", () => {
        const index = this.plot?.cursor.idx;
        if (index === null || index === undefined) return;
        const nearest = this.nearest(this.plot, index, shown);
        if (nearest !== null) {
          const series = this.series.indexOf(shown[nearest]);
          this.options.onPoint?.(series, shown[nearest].x.indexOf(xs[index]));
        }
      });
    }
  }

  /** The line nearest to the pointer at a point. @param {any} u @param {number} index @param {Series[]} shown */
  nearest(u, index, shown) {
    let best = null;
    let least = Infinity;
    shown.forEach((one, i) => {
      const value = u.data[i + 1][index];
      if (value === null || value === undefined) return;
      const away = Math.abs(u.valToPos(value, one.scale ?? "y") - u.cursor.top);
      if (away < least) [least, best] = [away, i];
    });
    return best;
  }

  /** Numbers under the pointer. @param {any} u @param {number[]} xs @param {Series[]} shown */
  read(u, xs, shown) {
    const index = u.cursor.idx;
    if (index === null || index === undefined) {
      this.readout.textContent = "\u00a0";
      return;
    }
    const texts = shown
      .map((one) => [one, one.x.indexOf(xs[index])])
      .filter(([, at]) => /** @type {number} */ (at) >= 0)
      .map(([one, at]) => `${/** @type {Series} */ (one).label} ${pointText(/** @type {any} */ (one), /** @type {any} */ (at))}`);
    this.readout.textContent = `${this.options.xlabel} ${this.xText(xs[index])}: ${texts.join(" · ")}`;
  }
}

/** A point as text, with its confidence interval. @param {Series} one @param {number} at @returns {string} */
function pointText(one, at) {
  if (at < 0 || one.y[at] === null || one.y[at] === undefined) return "–";
  const half = one.half?.[at];
  const count = one.count?.[at];
  const interval = half === null || half === undefined ? "" : ` ± ${fmt(half, 3)}`;
  return `${fmt(one.y[at], 4)}${interval}${count === undefined || count < 2 ? "" : ` (n = ${count})`}`;
}

/** A range of y that holds the confidence intervals. @param {Series[]} shown */
function withIntervals(shown) {
  const ends = shown
    .filter((one) => (one.scale ?? "y") === "y")
    .flatMap((one) => one.y.flatMap((y, i) => (y === null ? [] : [y - (one.half?.[i] ?? 0), y + (one.half?.[i] ?? 0)])));
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return () => (low < high ? uPlot.rangeNum(low, high, 0.05, true) : [low - 1, high + 1]);
}

/** A short piece of a line with its marker. @param {Look} look @returns {HTMLCanvasElement} */
function legendSample(look) {
  const ratio = window.devicePixelRatio || 1;
  const canvas = el("canvas", { width: 34 * ratio, height: 14 * ratio, class: "sample", "aria-hidden": "true" });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(ratio, ratio);
  context.strokeStyle = visible(look.colour);
  context.lineWidth = Math.min(look.width * 1.3, 4);
  context.setLineDash(DASHES[look.dash] ?? []);
  context.beginPath();
  context.moveTo(1, 7);
  context.lineTo(33, 7);
  context.stroke();
  context.setLineDash([]);
  if (look.marker !== "") mark(context, look, 17, 7, 4);
  return canvas;
}

/** A range of x with a margin, so that markers at its ends are whole. @param {boolean} log */
function padded(log) {
  return (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => {
    if (log) return [low / 1.15, high * 1.15];
    const margin = (high - low) * 0.03 || 1;
    return [low - margin, high + margin];
  };
}

/** Markers at about eight points of a line, and confidence intervals.
 * @param {any} u @param {number} i @param {Series} one */
function drawMarks(u, i, one) {
  const context = u.ctx;
  const scale = one.scale ?? "y";
  const known = /** @type {number[]} */ (u.data[i].map((/** @type {any} */ value, /** @type {number} */ at) => (value === null ? -1 : at)).filter((/** @type {number} */ at) => at >= 0));
  const step = Math.max(1, Math.floor(known.length / 8));
  const ratio = window.devicePixelRatio || 1;
  context.save();
  context.strokeStyle = visible(one.look.colour);
  context.lineWidth = ratio;
  context.setLineDash([]);
  known.forEach((at, number) => {
    const own = one.x.indexOf(u.data[0][at]);
    const half = one.half?.[own];
    const x = u.valToPos(u.data[0][at], "x", true);
    if (half !== null && half !== undefined && half > 0 && (known.length <= 40 || number % step === 0)) {
      const low = u.valToPos(Math.max(u.data[i][at] - half, u.scales[scale].min), scale, true);
      const high = u.valToPos(Math.min(u.data[i][at] + half, u.scales[scale].max), scale, true);
      context.beginPath();
      context.moveTo(x, low);
      context.lineTo(x, high);
      context.stroke();
    }
    if ((number + i) % step === 0 && one.look.marker !== "") {
      mark(context, one.look, x, u.valToPos(u.data[i][at], scale, true), 4 * ratio);
    }
  });
  context.restore();
}

/** One marker, named as in matplotlib.
 * @param {CanvasRenderingContext2D} context @param {Look} look @param {number} x @param {number} y @param {number} r */
function mark(context, look, x, y, r) {
  const colour = visible(look.colour);
  const corners = /** @type {Record<string, [number, number]>} */ ({
    "^": [3, -90], v: [3, 90], "<": [3, 180], ">": [3, 0], s: [4, 45], D: [4, 0], d: [4, 0], p: [5, -90], h: [6, -90], H: [6, 0], 8: [8, 22.5],
  });
  context.beginPath();
  if (look.marker === "X" || look.marker === "P") {
    const turn = look.marker === "X" ? Math.PI / 4 : 0;
    for (let i = 0; i < 4; i++) {
      const angle = turn + (i * Math.PI) / 2;
      context.moveTo(x, y);
      context.lineTo(x + 1.2 * r * Math.cos(angle), y + 1.2 * r * Math.sin(angle));
    }
    context.lineWidth = r * 0.7;
    context.strokeStyle = colour;
    context.stroke();
    return;
  }
  if (look.marker === "*") {
    for (let i = 0; i < 10; i++) {
      const angle = -Math.PI / 2 + (i * Math.PI) / 5;
      const reach = i % 2 === 0 ? 1.5 * r : 0.65 * r;
      context.lineTo(x + reach * Math.cos(angle), y + reach * Math.sin(angle));
    }
  } else if (look.marker in corners) {
    const [count, start] = corners[look.marker];
    for (let i = 0; i < count; i++) {
      const angle = ((start + (360 * i) / count) * Math.PI) / 180;
      context.lineTo(x + 1.15 * r * Math.cos(angle), y + 1.15 * r * Math.sin(angle));
    }
  } else {
    context.arc(x, y, r, 0, 2 * Math.PI);
  }
  context.closePath();
  const panel = getComputedStyle(document.documentElement).getPropertyValue("--panel").trim();
  context.fillStyle = look.filled ? colour : panel;
  context.fill();
  if (!look.filled) {
    context.lineWidth = 1.5;
    context.strokeStyle = colour;
    context.stroke();
  }
}
