// Scores of the devices as bars, strongest first, with the threshold of one.

import { byId, fmt, perFrame } from "./dom.js";
import { describe } from "./room.js";
import { store } from "./store.js";

const LINEAR_TOP = 20; // largest score on a linear axis, as in the figures

export class ScoresView {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {number[]} */
    this.order = [];
    this.schedule = perFrame(() => this.draw());
    for (const topic of /** @type {const} */ (["answer", "marked", "turn", "theme", "compare"])) {
      store.subscribe(topic, this.schedule);
    }
    new ResizeObserver(() => this.schedule()).observe(canvas);
    canvas.addEventListener("click", (event) => {
      const device = this.deviceAt(event);
      if (device !== null) store.mark(device);
    });
    canvas.addEventListener("pointermove", (event) => {
      const device = this.deviceAt(event);
      canvas.title = device === null ? "" : describe(device);
    });
  }

  /** @param {MouseEvent} event @returns {number | null} */
  deviceAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left - 34) / (box.width - 40)) * this.order.length);
    return this.order[place] ?? null;
  }

  draw() {
    const answer = store.shown();
    if (answer === null) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    context.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const { scores } = answer;
    this.order = scores.map((_, k) => k).sort((a, b) => scores[b] - scores[a] || a - b);
    const top = Math.max(1.1, scores[this.order[0]] ?? 0);
    const logarithmic = top > LINEAR_TOP;
    const [low, high] = logarithmic ? [Math.log10(0.1), Math.log10(1.5 * top)] : [0, 1.08 * top];
    const y = (/** @type {number} */ score) => {
      const value = logarithmic ? Math.log10(Math.max(score, 0.1)) : score;
      return height - 18 - ((value - low) / (high - low)) * (height - 26);
    };
    const step = (width - 40) / scores.length;
    const bar = Math.max(1, Math.min(step * 0.85, step - 1));
    context.font = "11px system-ui, sans-serif";
    this.order.forEach((k, place) => {
      const x = 34 + place * step + (step - bar) / 2;
      const at = y(scores[k]);
      context.fillStyle = colour(answer.selected[k] ? "--selected" : "--unselected");
      context.fillRect(x, at, bar, height - 18 - at);
      if (!answer.selected[k] && bar > 5) hatch(context, x, at, bar, height - 18 - at, colour("--panel"));
      if (k === store.marked) {
        context.strokeStyle = colour("--text");
        context.lineWidth = 2;
        context.strokeRect(x - 1, at - 1, bar + 2, height - 17 - at);
      }
      if (step > 16 || place % Math.ceil(20 / step) === 0) {
        context.fillStyle = colour("--muted");
        context.textAlign = "center";
        context.fillText(String(k), x + bar / 2, height - 5);
      }
    });
    context.strokeStyle = colour("--text");
    context.setLineDash([5, 4]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(34, y(1));
    context.lineTo(width - 4, y(1));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colour("--muted");
    context.textAlign = "right";
    context.fillText("1", 28, y(1) + 4);
    if (Math.abs(y(top) - y(1)) > 14) context.fillText(fmt(top, 2), 28, y(top) + 4);
    if (!logarithmic && Math.abs(y(0) - y(1)) > 14) context.fillText("0", 28, y(0) + 4);
    const words = answer.selected_count === 0 ? "none selected" : `weakest selected ${fmt(answer.weakest_score)}`;
    this.canvas.setAttribute(
      "aria-label",
      `Scores of ${scores.length} devices against the threshold 1: ${answer.selected_count} selected, ${words}`,
    );
    byId("scores-scale").textContent = logarithmic ? "logarithmic" : "linear";
  }
}

/** White lines across a bar, so that colours are not needed to tell bars apart.
 * @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} width
 * @param {number} height @param {string} colour */
function hatch(context, x, y, width, height, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  for (let at = y - width; at < y + height; at += 5) {
    context.beginPath();
    context.moveTo(x, at + width);
    context.lineTo(x + width, at);
    context.stroke();
  }
  context.restore();
}
