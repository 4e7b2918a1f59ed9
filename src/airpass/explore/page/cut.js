// A vertical cut through the room, along x at a chosen y: mean gain, waveguides, antennas and devices.

import { byId, clamp, el, fixed, perFrame, svg } from "./dom.js";
import { GainMap } from "./gain_map.js";
import { niceStep } from "./room.js";
import { store } from "./store.js";

export class CutView {
  /** @param {HTMLElement} host @param {import("./room.js").RoomView} room */
  constructor(host, room) {
    this.host = host;
    this.room = room;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.svg = svg("svg", { role: "img", "aria-label": "Vertical cut through the room" });
    host.append(this.canvas, this.svg);
    this.map = new GainMap(this.canvas, "cut", () => this.bounds());
    this.map.on = false;
    this.open = false;
    this.schedule = perFrame(() => this.draw());
    for (const topic of /** @type {const} */ (["state", "answer", "turn", "theme", "marked"])) {
      store.subscribe(topic, this.schedule);
    }
    new ResizeObserver(() => this.schedule()).observe(host);
    room.onView = () => {
      this.schedule();
      this.map.viewChanged();
    };
    byId("cut-y").addEventListener("input", () => this.setY(Number(byId("cut-y").value)));
  }

  /** @param {boolean} open */
  show(open) {
    this.open = open;
    byId("cut-card").hidden = !open;
    if (open) {
      const ys = store.answer?.room.waveguide_y_m ?? [0];
      this.setY(ys[Math.floor(ys.length / 2)]);
    } else {
      this.room.cutY = null;
      this.room.schedule();
    }
    this.map.switch(open && this.room.map.on);
  }

  /** @param {number} y */
  setY(y) {
    const { bottom, top } = this.room.extent();
    const input = byId("cut-y");
    input.min = String(Math.floor(bottom));
    input.max = String(Math.ceil(top));
    input.value = String(y);
    byId("cut-y-text").textContent = `${fixed(y, 1)} m`;
    this.map.at = y;
    this.room.cutY = y;
    this.room.schedule();
    this.schedule();
    this.map.ask();
  }

  /** Metres; z has a scale of its own. */
  bounds() {
    const heights = store.shown()?.room.height_m ?? [4];
    const top = Math.max(...heights, ...(store.devices()?.z_m ?? []).slice(0, 2000)) + 0.6;
    const bottom = Math.min(0, ...(store.devices()?.z_m ?? []).slice(0, 2000)) - 0.4;
    const { left, right } = this.room.bounds();
    return { left, right, bottom, top, width: this.host.clientWidth, height: this.host.clientHeight };
  }

  draw() {
    const answer = store.shown();
    const devices = store.devices();
    if (!this.open || answer === null || devices === null) return;
    const b = this.bounds();
    const px = (/** @type {number} */ x) => ((x - b.left) / (b.right - b.left)) * b.width;
    const pz = (/** @type {number} */ z) => ((b.top - z) / (b.top - b.bottom)) * b.height;
    const parts = [];
    const step = niceStep((b.top - b.bottom) / 4);
    for (let i = Math.ceil(b.bottom / step); i * step < b.top; i++) {
      parts.push(svg("text", { class: "label", x: 8, y: pz(i * step) + 3.5 }, fixed(i * step, step < 1 ? 1 : 0)));
    }
    parts.push(svg("text", { class: "label", x: 8, y: 11 }, "z, m"));
    parts.push(svg("line", { class: "floor", x1: 0, x2: b.width, y1: pz(0), y2: pz(0) }));
    for (const one of answer.room.obstacles) {
      const half = Math.max(2, (one.radius_m / (b.right - b.left)) * b.width);
      parts.push(
        svg("rect", {
          class: "obstacle",
          x: px(one.x_m) - half,
          y: pz(one.height_m),
          width: 2 * half,
          height: pz(0) - pz(one.height_m),
        }),
      );
    }
    if (answer.array_m === null) {
      answer.room.waveguide_y_m.forEach((_, m) => {
        const z = pz(answer.room.height_m[m]);
        parts.push(svg("line", { class: "guide", x1: px(0), x2: px(answer.room.length_m[m]), y1: z, y2: z }));
        for (const x of answer.layout_m?.[m] ?? []) {
          parts.push(svg("rect", { class: "tick", x: px(x) - 1.5, y: z - 5, width: 3, height: 10 }));
        }
      });
    } else {
      for (const [x, , z] of answer.array_m) {
        parts.push(svg("rect", { class: "tick", x: px(x) - 1.5, y: pz(z) - 1.5, width: 3, height: 3 }));
      }
    }
    devices.x_m.forEach((x, k) => {
      const near = clamp(1 - Math.abs(devices.y_m[k] - (this.room.cutY ?? 0)) / 6, 0.25, 1);
      parts.push(
        svg("circle", {
          class: answer.selected[k] ? "selected" : "unselected",
          cx: px(x),
          cy: pz(devices.z_m[k]),
          r: store.marked === k ? 6 : 4,
          opacity: near.toFixed(2),
        }),
      );
    });
    this.svg.replaceChildren(...parts);
    this.map.draw();
  }
}
