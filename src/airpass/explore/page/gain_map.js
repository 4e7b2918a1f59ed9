// The mean receive gain as shades of grey behind a view, from the server as 32-bit floats.

import { settled } from "./dom.js";
import { store } from "./store.js";

const POINTS = 220; // along the longer side; the mean gain varies over metres
const PAUSE_MS = 120; // without a change, before a map is asked for: answers to drags come first
const SPANS_DB = [6, 30]; // smallest and largest range of the shading
const WHITE_SHARE = 0.02; // of the points; shadows of obstacles may have no gain at all

/** @typedef {{left: number, right: number, bottom: number, top: number, width: number, height: number}} Bounds */

export class GainMap {
  /** @param {HTMLCanvasElement} canvas @param {"floor" | "cut"} plane @param {() => Bounds} bounds */
  constructor(canvas, plane, bounds) {
    this.canvas = canvas;
    this.plane = plane;
    this.bounds = bounds;
    this.on = true;
    /** z of the floor's map, or y of the cut. */
    this.at = 0;
    /** @type {{image: HTMLCanvasElement, bounds: Bounds, low: number, high: number} | null} */
    this.shown = null;
    /** @type {{levels: Float32Array, columns: number, rows: number, bounds: Bounds} | null} */
    this.levels = null;
    this.busy = false;
    this.asked = "";
    /** Called with the range in dB that is shown. @type {(low: number | null, high: number | null) => void} */
    this.onRange = () => undefined;
    this.ask = settled(() => void this.request(), PAUSE_MS);
    store.subscribe("answer", this.ask);
    store.subscribe("turn", this.ask);
    store.subscribe("theme", () => this.paint());
  }

  viewChanged() {
    this.draw();
    this.ask();
  }

  /** @param {boolean} on */
  switch(on) {
    this.on = on;
    if (on) this.ask();
    this.onRange(on ? (this.shown?.low ?? null) : null, on ? (this.shown?.high ?? null) : null);
    this.draw();
  }

  async request() {
    const answer = store.shown();
    if (!this.on || answer === null || this.busy) return;
    if (!answer.room.devices_move) {
      this.clear();
      return;
    }
    const bounds = this.bounds();
    if (bounds.width < 20 || bounds.height < 20) return;
    if (this.plane === "floor") {
      const heights = [...answer.devices.z_m].sort((a, b) => a - b);
      this.at = heights[Math.floor(heights.length / 2)];
    }
    const share = POINTS / Math.max(bounds.width, bounds.height);
    const points = [Math.max(2, Math.round(bounds.width * share)), Math.max(2, Math.round(bounds.height * share))];
    const body = {
      state: store.base(),
      plane: this.plane,
      at_m: this.at,
      low_m: [bounds.left, bounds.bottom],
      high_m: [bounds.right, bounds.top],
      points,
    };
    const key = JSON.stringify(body);
    if (key === this.asked) return;
    this.busy = true;
    try {
      const { data } = await store.connection.request("map", body);
      const [columns, rows] = new Uint32Array(data.slice(4, 12));
      this.levels = { levels: new Float32Array(data.slice(12)), columns, rows, bounds };
      this.asked = key;
      this.paint();
    } catch {
      this.clear();
    }
    this.busy = false;
    if (JSON.stringify(this.bounds()) !== JSON.stringify(bounds) || body.state !== store.base()) this.ask();
  }

  clear() {
    this.levels = null;
    this.shown = null;
    this.asked = "";
    this.onRange(null, null);
    this.draw();
  }

  /** Turn levels into shades. */
  paint() {
    if (this.levels === null) return;
    const { levels, columns, rows, bounds } = this.levels;
    const sorted = Float32Array.from(levels).sort();
    const peak = sorted[sorted.length - 1];
    const white = sorted[Math.floor(WHITE_SHARE * (sorted.length - 1))];
    const span = Math.min(Math.max(SPANS_DB[0], peak - white), SPANS_DB[1]);
    const image = document.createElement("canvas");
    image.width = columns;
    image.height = rows;
    const context = /** @type {CanvasRenderingContext2D} */ (image.getContext("2d"));
    const pixels = context.createImageData(columns, rows);
    const dark = document.documentElement.dataset.theme === "dark";
    const [base, reach] = dark ? [24, 88] : [255, -112];
    for (let j = 0; j < rows; j++) {
      for (let i = 0; i < columns; i++) {
        const share = Math.min(Math.max((levels[j * columns + i] - peak + span) / span, 0), 1);
        const at = 4 * ((rows - 1 - j) * columns + i);
        const grey = base + reach * share;
        pixels.data[at] = grey;
        pixels.data[at + 1] = grey;
        pixels.data[at + 2] = grey + (dark ? 6 : 0);
        pixels.data[at + 3] = 255;
      }
    }
    context.putImageData(pixels, 0, 0);
    this.shown = { image, bounds, low: peak - span, high: peak };
    this.onRange(peak - span, peak);
    this.draw();
  }

  draw() {
    const now = this.bounds();
    const ratio = window.devicePixelRatio || 1;
    const width = Math.round(now.width * ratio);
    const height = Math.round(now.height * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    context.clearRect(0, 0, width, height);
    if (!this.on || this.shown === null) return;
    const { image, bounds } = this.shown;
    const [sx, sy] = [width / (now.right - now.left), height / (now.top - now.bottom)];
    context.imageSmoothingEnabled = true;
    context.drawImage(
      image,
      (bounds.left - now.left) * sx,
      (now.top - bounds.top) * sy,
      (bounds.right - bounds.left) * sx,
      (bounds.top - bounds.bottom) * sy,
    );
  }
}
