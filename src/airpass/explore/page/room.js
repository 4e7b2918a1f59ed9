// The room from above: waveguides, antennas, devices, obstacles; zoom and pan; dragging by mouse, touch and keys.

import { clamp, el, fixed, fmt, perFrame, svg } from "./dom.js";
import { GainMap } from "./gain_map.js";
import { store } from "./store.js";

const MARGIN_M = 1; // around waveguides and devices, as in the figures
const MOST_LABELS = 24; // more devices are numbered only if zoomed in
const LABEL_SCALE = 3; // zoom from which on all devices are numbered
const LABELS_PX = [24, 14]; // left free for the labels of the axes, at the left and at the bottom
const LABEL_PX = [44, 13]; // size of a label
const LABEL_SIDES = [[0, -17], [0, 18], [32, 0], [-32, 0], [0, -30], [0, 31]]; // of a device, in order of preference
const STACK_PX = 16; // distance of waveguides at the same y
const RADIUS_PX = 6.5; // of a device with the mean weight
const STEPS_M = { plain: 0.1, large: 1, small: 0.01 }; // of arrow keys: alone, with Shift, with Alt

/** What a pointer moves. @typedef {{kind: "device", device: number} | {kind: "antenna", guide: number,
 * antenna: number} | {kind: "pan", x: number, y: number}} Grip */

/** Positions of antennas on a waveguide after one has moved: order and gaps are kept, neighbours are pushed.
 * @param {number[]} positions @param {number} moved @param {number} to @param {number} gap @param {number} length
 * @returns {number[]} */
export function pushed(positions, moved, to, gap, length) {
  const count = positions.length;
  const found = [...positions];
  found[moved] = clamp(to, moved * gap, length - (count - 1 - moved) * gap);
  for (let n = moved + 1; n < count; n++) found[n] = Math.max(found[n], found[n - 1] + gap);
  for (let n = moved - 1; n >= 0; n--) found[n] = Math.min(found[n], found[n + 1] - gap);
  return found;
}

export class RoomView {
  /** @param {HTMLElement} host @param {HTMLElement} tip */
  constructor(host, tip) {
    this.host = host;
    this.tip = tip;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.svg = svg("svg", {
      tabindex: "0",
      role: "application",
      "aria-label": "Room from above",
      "aria-describedby": "room-keys",
    });
    this.layers = /** @type {Record<string, SVGGElement>} */ ({});
    for (const name of ["axes", "cut", "obstacles", "guides", "links", "ghosts", "antennas", "devices"]) {
      this.layers[name] = svg("g", { class: name, "aria-hidden": "true" });
      this.svg.append(this.layers[name]);
    }
    host.append(this.canvas, this.svg);
    this.map = new GainMap(this.canvas, "floor", () => this.bounds());
    /** Pixels per metre, and the point at the top left. */
    this.view = { scale: 20, x: 0, y: 0 };
    this.fitted = true;
    /** y of the vertical cut; null if there is none. @type {number | null} */
    this.cutY = null;
    /** Number of the marked antenna. @type {{guide: number, antenna: number} | null} */
    this.antenna = null;
    /** @type {Map<number, Grip>} */
    this.grips = new Map();
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    this.moved = false;
    this.adding = false;
    /** @type {{key: string, made: SVGGElement}[]} */
    this.drawn = [];
    this.staticKey = "";
    this.extentKey = "";
    this.antennaKey = "";
    /** @type {number[][] | null} */
    this.linksOf = null;
    this.linkKey = "";
    /** Called when zoom or place of the view have changed. @type {() => void} */
    this.onView = () => undefined;
    this.schedule = perFrame(() => this.draw());
    this.listen();
  }

  listen() {
    for (const topic of /** @type {const} */ (["state", "answer", "compare", "turn", "theme"])) {
      store.subscribe(topic, this.schedule);
    }
    store.subscribe("marked", () => {
      this.schedule();
      void this.askLinks();
    });
    store.subscribe("answer", () => void this.askLinks());
    new ResizeObserver(() => this.resize()).observe(this.host);
    this.svg.addEventListener("pointerdown", (event) => this.down(event));
    this.svg.addEventListener("pointermove", (event) => this.move(event));
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
      this.svg.addEventListener(name, (event) => this.up(event));
    }
    this.svg.addEventListener("pointerleave", () => this.showTip(null, 0, 0));
    this.svg.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.svg.addEventListener("keydown", (event) => this.key(event));
    this.svg.addEventListener("dblclick", (event) => {
      if (/** @type {Element} */ (event.target).closest("[data-device],[data-antenna]") === null) this.fit();
    });
  }

  // Geometry ---------------------------------------------------------------------------------------------

  /** Limits of what is shown when all is shown, in metres. */
  extent() {
    const answer = store.shown();
    const devices = store.devices();
    const xs = [0, ...(answer?.room.length_m ?? [40])];
    const ys = [...(answer?.room.waveguide_y_m ?? [0, 8])];
    const places = answer?.array_m ?? [];
    return {
      left: low([...xs, ...(devices?.x_m ?? []), ...places.map((place) => place[0])]) - MARGIN_M,
      right: high([...xs, ...(devices?.x_m ?? []), ...places.map((place) => place[0])]) + MARGIN_M,
      bottom: low([...ys, ...(devices?.y_m ?? []), ...places.map((place) => place[1])]) - MARGIN_M,
      top: high([...ys, ...(devices?.y_m ?? []), ...places.map((place) => place[1])]) + MARGIN_M,
    };
  }

  /** Limits of what is shown, in metres. */
  bounds() {
    const width = this.host.clientWidth;
    const height = this.host.clientHeight;
    const { scale, x, y } = this.view;
    return { left: x, right: x + width / scale, top: y, bottom: y - height / scale, width, height };
  }

  /** @param {number} x @returns {number} */
  px(x) {
    return (x - this.view.x) * this.view.scale;
  }

  /** @param {number} y @returns {number} */
  py(y) {
    return (this.view.y - y) * this.view.scale;
  }

  /** @param {PointerEvent | WheelEvent | MouseEvent} event @returns {{x: number, y: number}} */
  at(event) {
    const box = this.svg.getBoundingClientRect();
    return {
      x: this.view.x + (event.clientX - box.left) / this.view.scale,
      y: this.view.y - (event.clientY - box.top) / this.view.scale,
    };
  }

  fit() {
    this.fitted = true;
    this.resize();
  }

  resize() {
    if (this.fitted) {
      const { left, right, bottom, top } = this.extent();
      const width = Math.max(this.host.clientWidth, 50);
      const tall = Math.min(window.innerHeight * 0.62, Math.max(260, (width * (top - bottom)) / (right - left)));
      this.host.style.setProperty("height", `${Math.round(tall)}px`);
      const [freeWidth, freeHeight] = [width - LABELS_PX[0], tall - LABELS_PX[1]];
      const scale = Math.min(freeWidth / (right - left), freeHeight / (top - bottom));
      this.view = {
        scale,
        x: (left + right) / 2 - (LABELS_PX[0] + freeWidth / 2) / scale,
        y: (bottom + top) / 2 + freeHeight / 2 / scale,
      };
    }
    this.viewChanged();
  }

  viewChanged() {
    this.schedule();
    this.map.viewChanged();
    this.onView();
  }

  /** Zoom about a point of the room. @param {number} factor @param {{x: number, y: number}} [about] */
  zoom(factor, about) {
    const { left, right, bottom, top } = this.bounds();
    const centre = about ?? { x: (left + right) / 2, y: (bottom + top) / 2 };
    const scale = clamp(this.view.scale * factor, 1, 20000);
    const real = scale / this.view.scale;
    this.view = {
      scale,
      x: centre.x - (centre.x - this.view.x) / real,
      y: centre.y - (centre.y - this.view.y) / real,
    };
    this.fitted = false;
    this.viewChanged();
  }

  // Pointers -------------------------------------------------------------------------------------------------

  /** @param {Element} target @param {{x: number, y: number}} at @returns {Grip} */
  gripOf(target, at) {
    const answer = store.shown();
    const device = target.closest("[data-device]");
    if (device !== null && answer?.room.devices_move !== false) {
      return { kind: "device", device: Number(device.getAttribute("data-device")) };
    }
    const antenna = target.closest("[data-antenna]");
    if (antenna !== null) {
      const [guide, number] = String(antenna.getAttribute("data-antenna")).split(",").map(Number);
      return { kind: "antenna", guide, antenna: number };
    }
    return { kind: "pan", ...at };
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button !== 0) return;
    const at = this.at(event);
    if (this.adding) {
      this.addDevice(at.x, at.y);
      this.setAdding(false);
      return;
    }
    const target = /** @type {Element} */ (event.target);
    this.svg.setPointerCapture(event.pointerId);
    const grip = this.gripOf(target, at);
    this.grips.set(event.pointerId, grip);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.moved = false;
    const device = target.closest("[data-device]");
    if (device !== null) {
      this.antenna = null;
      store.mark(Number(device.getAttribute("data-device")));
    } else if (grip.kind === "antenna") {
      this.antenna = { guide: grip.guide, antenna: grip.antenna };
      store.mark(null);
      this.antennaKey = "";
      this.schedule();
    }
    this.showTip(null, 0, 0);
  }

  /** @param {PointerEvent} event */
  move(event) {
    const grip = this.grips.get(event.pointerId);
    if (grip === undefined) {
      this.hover(event);
      return;
    }
    const before = this.pointers.get(event.pointerId) ?? { x: event.clientX, y: event.clientY };
    if (!this.moved && Math.hypot(event.clientX - before.x, event.clientY - before.y) < 3) return;
    this.moved = true;
    if (this.pointers.size >= 2) {
      this.pinch(event);
      return;
    }
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const at = this.at(event);
    if (grip.kind === "device") this.moveDevice(grip.device, at.x, at.y);
    else if (grip.kind === "antenna") this.moveAntenna(grip.guide, grip.antenna, at.x);
    else {
      this.view = { ...this.view, x: this.view.x + grip.x - at.x, y: this.view.y + grip.y - at.y };
      this.fitted = false;
      this.viewChanged();
    }
  }

  /** Two fingers: zoom about the middle between them. @param {PointerEvent} event */
  pinch(event) {
    const old = [...this.pointers.values()].slice(0, 2);
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const now = [...this.pointers.values()].slice(0, 2);
    const span = (/** @type {{x: number, y: number}[]} */ points) =>
      Math.max(10, Math.hypot(points[0].x - points[1].x, points[0].y - points[1].y));
    const box = this.svg.getBoundingClientRect();
    const middle = {
      x: this.view.x + ((now[0].x + now[1].x) / 2 - box.left) / this.view.scale,
      y: this.view.y - ((now[0].y + now[1].y) / 2 - box.top) / this.view.scale,
    };
    this.zoom(span(now) / span(old), middle);
  }

  /** @param {PointerEvent} event */
  up(event) {
    const grip = this.grips.get(event.pointerId);
    this.grips.delete(event.pointerId);
    this.pointers.delete(event.pointerId);
    if (grip === undefined) return;
    if (grip.kind === "pan" && !this.moved) {
      store.mark(null);
      this.antenna = null;
      this.antennaKey = "";
      this.schedule();
    }
    store.endSeries();
    void this.askLinks();
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // scroll the page
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * 0.0015), this.at(event));
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const device = /** @type {Element} */ (event.target).closest("[data-device]");
    this.showTip(device === null ? null : Number(device.getAttribute("data-device")), event.clientX, event.clientY);
  }

  /** @param {number | null} device @param {number} x @param {number} y */
  showTip(device, x, y) {
    const answer = store.shown();
    const devices = store.devices();
    if (device === null || answer === null || devices === null || device >= answer.scores.length) {
      this.tip.hidden = true;
      return;
    }
    this.tip.textContent = describe(device);
    this.tip.hidden = false;
    const width = this.tip.offsetWidth;
    this.tip.style.setProperty("left", `${clamp(x + 14, 4, window.innerWidth - width - 4)}px`);
    this.tip.style.setProperty("top", `${y + 16}px`);
  }

  // Changes --------------------------------------------------------------------------------------------------

  /** @param {number} device @param {number} x @param {number} y */
  moveDevice(device, x, y) {
    store.editDevices((lists) => {
      lists.x_m[device] = round(x);
      lists.y_m[device] = round(y);
    }, `device ${device}`);
  }

  /** @param {number} guide @param {number} antenna @param {number} x */
  moveAntenna(guide, antenna, x) {
    const layout = store.layout();
    const room = store.shown()?.room;
    if (layout === null || room === undefined) return;
    const rows = layout.map((row) => [...row]);
    rows[guide] = pushed(rows[guide], antenna, round(x), room.min_gap_m, room.length_m[guide]);
    store.setLayout(rows, `antenna ${guide},${antenna}`);
  }

  /** @param {number} x @param {number} y */
  addDevice(x, y) {
    if (!this.devicesMove()) return;
    let number = 0;
    store.editDevices((lists) => {
      number = lists.x_m.length;
      lists.x_m.push(round(x));
      lists.y_m.push(round(y));
      lists.z_m.push(median(lists.z_m));
      lists.gain.push(1);
      lists.samples.push(Math.max(1, Math.round(lists.samples.reduce((a, b) => a + b, 0) / number)));
      lists.priority.push(1);
    });
    store.mark(number);
  }

  /** @param {number} device */
  removeDevice(device) {
    if (!this.devicesMove()) return;
    const devices = store.devices();
    if (devices === null || devices.x_m.length < 2) {
      store.fail("the last device cannot be removed");
      return;
    }
    store.editDevices((lists) => {
      for (const list of Object.values(lists)) list.splice(device, 1);
    });
    store.mark(null);
  }

  /** Whether devices can be changed; says so if not. */
  devicesMove() {
    const free = store.shown()?.room.devices_move !== false;
    if (!free) store.fail("the channels are known for these devices only, so that none can be moved, added or removed");
    return free;
  }

  /** Whether the next click adds a device. @param {boolean} on */
  setAdding(on) {
    this.adding = on;
    this.svg.classList.toggle("adding", on);
    document.getElementById("add-device")?.setAttribute("aria-pressed", String(on));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey) return;
    const step = event.shiftKey ? STEPS_M.large : event.altKey ? STEPS_M.small : STEPS_M.plain;
    const moves = /** @type {Record<string, [number, number]>} */ ({
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, step],
      ArrowDown: [0, -step],
    });
    const devices = store.devices();
    const handled = () => event.preventDefault();
    if (event.key in moves) {
      handled();
      const [dx, dy] = moves[event.key];
      if (this.antenna !== null) {
        const { guide, antenna } = this.antenna;
        const at = store.layout()?.[guide]?.[antenna];
        if (at !== undefined && dx !== 0) this.moveAntenna(guide, antenna, at + dx);
      } else if (store.marked !== null && devices !== null && store.answer?.room.devices_move !== false) {
        this.moveDevice(store.marked, devices.x_m[store.marked] + dx, devices.y_m[store.marked] + dy);
      } else {
        this.view = { ...this.view, x: this.view.x + 5 * dx, y: this.view.y + 5 * dy };
        this.fitted = false;
        this.viewChanged();
      }
    } else if (event.key === "n" || event.key === "p") {
      handled();
      const count = devices?.x_m.length ?? 0;
      const now = store.marked ?? (event.key === "n" ? -1 : count);
      this.antenna = null;
      this.antennaKey = "";
      store.mark((now + (event.key === "n" ? 1 : -1) + count) % count);
      this.say(describe(/** @type {number} */ (store.marked)));
    } else if (event.key === "a") {
      handled();
      this.nextAntenna(event.shiftKey ? -1 : 1);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      handled();
      if (store.marked !== null) this.removeDevice(store.marked);
    } else if (event.key === "Insert" || event.key === "i") {
      handled();
      const { left, right, top, bottom } = this.bounds();
      const turn = 2.4 * (devices?.x_m.length ?? 0); // not on the place of the one before
      this.addDevice((left + right) / 2 + Math.cos(turn), (top + bottom) / 2 + Math.sin(turn));
    } else if (event.key === "+" || event.key === "=") {
      handled();
      this.zoom(1.25);
    } else if (event.key === "-") {
      handled();
      this.zoom(0.8);
    } else if (event.key === "0") {
      handled();
      this.fit();
    } else if (event.key === "Escape") {
      this.setAdding(false);
      this.antenna = null;
      this.antennaKey = "";
      store.mark(null);
      this.schedule();
    }
  }

  /** @param {number} way */
  nextAntenna(way) {
    const layout = store.layout();
    if (layout === null) return;
    const count = layout[0].length;
    const all = layout.length * count;
    const now = this.antenna === null ? (way > 0 ? -1 : 0) : this.antenna.guide * count + this.antenna.antenna;
    const next = (now + way + all) % all;
    this.antenna = { guide: Math.floor(next / count), antenna: next % count };
    store.mark(null);
    this.antennaKey = "";
    this.schedule();
    const { guide, antenna } = this.antenna;
    this.say(`Antenna ${antenna} of waveguide ${guide} at ${fmt(layout[guide][antenna], 5)} m`);
  }

  /** Tell a screen reader. @param {string} text */
  say(text) {
    const region = document.getElementById("said");
    if (region !== null) region.textContent = text;
  }

  /** Ask which links of the marked device are blocked, if the channel has such. */
  async askLinks() {
    const marked = store.marked;
    if (marked === null || store.answer?.room.has_factors !== true || store.answer.array_m !== null) {
      if (this.linksOf !== null) this.schedule();
      this.linksOf = null;
      this.linkKey = "";
      return;
    }
    const key = `${marked} ${JSON.stringify(store.state)}`;
    if (key === this.linkKey || this.grips.size > 0) return;
    this.linkKey = key;
    try {
      const found = await store.connection.request("links", { state: store.state, device: marked });
      if (store.marked === marked) this.linksOf = found.links;
      this.schedule();
    } catch {
      this.linksOf = null;
    }
  }

  // Drawing --------------------------------------------------------------------------------------------------

  draw() {
    const answer = store.shown();
    if (answer === null) return;
    if (this.fitted && this.grips.size === 0) this.refit();
    this.drawStatic(answer);
    this.drawAntennas(answer);
    this.drawLinks(answer);
    this.drawDevices(answer);
    this.map.draw();
  }

  /** Fit again if the room has changed. */
  refit() {
    const { left, right, bottom, top } = this.extent();
    const key = [left, right, bottom, top].map((value) => value.toFixed(2)).join();
    if (key !== this.extentKey) {
      this.extentKey = key;
      this.resize();
    }
  }

  /** Vertical offsets of waveguides that lie above each other, in pixels. @param {import("./types.js").Room} room */
  offsets(room) {
    return room.waveguide_y_m.map((y, m) => {
      const there = room.waveguide_y_m.map((_, i) => i).filter((i) => room.waveguide_y_m[i] === y);
      there.sort((a, b) => room.height_m[a] - room.height_m[b]);
      return there.length === 1 ? 0 : -STACK_PX * (there.indexOf(m) - (there.length - 1) / 2);
    });
  }

  /** Axes, waveguides, feeds, obstacles and places. @param {import("./types.js").Answer} answer */
  drawStatic(answer) {
    const { room } = answer;
    const size = `${this.host.clientWidth} ${this.host.clientHeight}`;
    const key = JSON.stringify([room, this.view, size, this.cutY, answer.array_m === null]);
    if (key === this.staticKey) return;
    this.staticKey = key;
    this.drawAxes();
    const cut = this.layers.cut;
    cut.replaceChildren();
    if (this.cutY !== null) {
      const y = this.py(this.cutY);
      cut.append(svg("line", { x1: 0, x2: this.host.clientWidth, y1: y, y2: y }));
    }
    this.layers.obstacles.replaceChildren(
      ...room.obstacles.map((one) =>
        svg("circle", {
          cx: this.px(one.x_m),
          cy: this.py(one.y_m),
          r: Math.max(3, one.radius_m * this.view.scale),
        }),
      ),
    );
    const guides = this.layers.guides;
    guides.replaceChildren();
    if (answer.array_m !== null) return;
    const offsets = this.offsets(room);
    const severalHeights = new Set(room.height_m).size > 1;
    room.waveguide_y_m.forEach((y, m) => {
      const at = this.py(y) + offsets[m];
      const parts = room.segments;
      for (let q = 0; q < parts; q++) {
        const gap = parts > 1 ? 0.12 : 0;
        const from = (q * room.length_m[m]) / parts + (q > 0 ? gap : 0);
        const to = ((q + 1) * room.length_m[m]) / parts - (q < parts - 1 ? gap : 0);
        guides.append(svg("line", { x1: this.px(from), x2: this.px(to), y1: at, y2: at }));
        const feed = this.px((room.feed_x_m[m] + q * room.length_m[m]) / parts);
        guides.append(svg("rect", { class: "feed", x: feed - 4, y: at - 4, width: 8, height: 8 }));
      }
      for (const place of room.candidates_m?.[m] ?? []) {
        guides.append(svg("line", { x1: this.px(place), x2: this.px(place), y1: at - 3, y2: at + 3 }));
      }
      if (severalHeights) {
        guides.append(svg("text", { x: this.px(0) + 8, y: at - 5 }, `height ${fmt(room.height_m[m])} m`));
      }
    });
  }

  drawAxes() {
    const { left, right, bottom, top, width, height } = this.bounds();
    const layer = this.layers.axes;
    layer.replaceChildren();
    const across = niceStep(70 / this.view.scale);
    const up = niceStep(34 / this.view.scale);
    const decimals = (/** @type {number} */ step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let i = Math.ceil(left / across); i * across < right; i++) {
      const x = this.px(i * across);
      if (x < 34 || x > width - 46) continue;
      layer.append(svg("line", { x1: x, x2: x, y1: height, y2: height - 5 }));
      layer.append(svg("text", { x, y: height - 8, "text-anchor": "middle" }, fixed(i * across, decimals(across))));
    }
    for (let i = Math.ceil(bottom / up); i * up < top; i++) {
      const y = this.py(i * up);
      if (y < 24 || y > height - 24) continue;
      layer.append(svg("line", { x1: 0, x2: 4, y1: y, y2: y }));
      layer.append(svg("text", { x: 6, y: y - 3 }, fixed(i * up, decimals(up))));
    }
    layer.append(svg("text", { x: width - 6, y: height - 8, "text-anchor": "end" }, "x, m"));
    layer.append(svg("text", { x: 8, y: 12 }, "y, m"));
  }

  /** @param {import("./types.js").Answer} answer */
  drawAntennas(answer) {
    const layout = store.preview ?? store.layout();
    const ghosts = store.compare?.answer.layout_m ?? null;
    if (this.antenna !== null && layout?.[this.antenna.guide]?.[this.antenna.antenna] === undefined) this.antenna = null;
    const marked = this.antenna;
    const key = JSON.stringify([layout, ghosts, answer.array_m, this.view, marked, store.preview !== null]);
    if (key === this.antennaKey) return;
    this.antennaKey = key;
    const offsets = this.offsets(answer.room);
    const ticks = [];
    if (answer.array_m !== null && store.preview === null && layout === null) {
      for (const [x, y] of answer.array_m) {
        ticks.push(svg("rect", { class: "array", x: this.px(x) - 1.5, y: this.py(y) - 5, width: 3, height: 10 }));
      }
    }
    (layout ?? []).forEach((row, m) => {
      if (m >= answer.room.waveguide_y_m.length) return;
      const at = this.py(answer.room.waveguide_y_m[m]) + offsets[m];
      row.forEach((x, n) => {
        const here = marked !== null && marked.guide === m && marked.antenna === n;
        const antenna = svg("g", {
          "data-antenna": `${m},${n}`,
          class: `antenna${here ? " marked" : ""}${store.preview === null ? "" : " moving"}`,
          transform: `translate(${this.px(x)},${at})`,
        });
        antenna.append(svg("rect", { class: "hit", x: -8, y: -13, width: 16, height: 26 }));
        antenna.append(svg("rect", { class: "tick", x: -2, y: -8, width: 4, height: 16, rx: 1 }));
        ticks.push(antenna);
      });
    });
    this.layers.antennas.replaceChildren(...ticks);
    this.layers.ghosts.replaceChildren(
      ...(ghosts ?? []).flatMap((row, m) =>
        m < answer.room.waveguide_y_m.length
          ? row.map((x) =>
              svg("rect", {
                x: this.px(x) - 3,
                y: this.py(answer.room.waveguide_y_m[m]) + offsets[m] - 10,
                width: 6,
                height: 20,
                rx: 2,
              }),
            )
          : [],
      ),
    );
  }

  /** Lines of sight of the marked device. @param {import("./types.js").Answer} answer */
  drawLinks(answer) {
    const layer = this.layers.links;
    layer.replaceChildren();
    const devices = store.devices();
    const layout = store.layout();
    if (this.linksOf === null || store.marked === null || devices === null || layout === null) return;
    const offsets = this.offsets(answer.room);
    const [x, y] = [this.px(devices.x_m[store.marked]), this.py(devices.y_m[store.marked])];
    this.linksOf.forEach((row, m) =>
      row.forEach((free, n) => {
        if (layout[m]?.[n] === undefined) return;
        layer.append(
          svg("line", {
            class: free > 0.7 ? "free" : "blocked",
            x1: x,
            y1: y,
            x2: this.px(layout[m][n]),
            y2: this.py(answer.room.waveguide_y_m[m]) + offsets[m],
          }),
        );
      }),
    );
  }

  /** @param {import("./types.js").Answer} answer */
  drawDevices(answer) {
    const devices = store.devices();
    if (devices === null) return;
    const count = devices.x_m.length;
    while (this.drawn.length > count) this.drawn.pop()?.made.remove();
    while (this.drawn.length < count) {
      const made = deviceShape(this.drawn.length);
      this.layers.devices.append(made);
      this.drawn.push({ key: "", made });
    }
    const mean = answer.weights.reduce((a, b) => a + b, 0) / Math.max(1, answer.weights.length);
    const labels = count <= MOST_LABELS || this.view.scale > LABEL_SCALE * 20;
    const before = store.compare?.answer.selected ?? null;
    const sides = labels && count <= MOST_LABELS ? this.labelSides(devices) : null;
    for (let k = 0; k < count; k++) {
      const chosen = answer.selected[k] ?? false;
      const size = clamp(Math.sqrt((answer.weights[k] ?? mean) / mean), 0.6, 1.8) * RADIUS_PX;
      const change =
        before === null || k >= before.length || before[k] === chosen ? "" : chosen ? " gained" : " lost";
      const score = answer.scores[k];
      const label = labels ? `${k}: ${score < 10 ? fixed(score, 2) : fmt(score)}` : "";
      const x = this.px(devices.x_m[k]).toFixed(2);
      const y = this.py(devices.y_m[k]).toFixed(2);
      const marked = store.marked === k ? " marked" : "";
      const name = `device ${chosen ? "selected" : "unselected"}${marked}${change}`;
      const side = sides?.[k] ?? LABEL_SIDES[0];
      const key = `${x} ${y} ${name} ${label} ${size.toFixed(1)} ${side}`;
      if (key === this.drawn[k].key) continue;
      this.drawn[k].key = key;
      const { made } = this.drawn[k];
      made.setAttribute("transform", `translate(${x},${y})`);
      made.setAttribute("class", name);
      const shape = /** @type {SVGGElement} */ (made.querySelector(".shape"));
      shape.setAttribute("transform", `scale(${(size / RADIUS_PX).toFixed(3)})`);
      const text = /** @type {SVGTextElement} */ (made.querySelector("text"));
      if (text.textContent !== label) text.textContent = label;
      text.setAttribute("x", String(side[0]));
      text.setAttribute("y", String(side[1] + 4));
    }
  }

  /** Where labels are: on the first side of their device that is free, as in the figures.
   * @param {import("./types.js").Devices} devices @returns {number[][]} */
  labelSides(devices) {
    const at = devices.x_m.map((x, k) => [this.px(x), this.py(devices.y_m[k])]);
    /** @type {number[][]} */
    const taken = [];
    return at.map(([x, y], k) => {
      const free = (/** @type {number[]} */ [dx, dy]) => {
        const near = (/** @type {number[]} */ [ox, oy], /** @type {number} */ width, /** @type {number} */ height) => Math.abs(x + dx - ox) < width && Math.abs(y + dy - oy) < height;
        const onDevice = at.some((other, j) => j !== k && near(other, 30, 13));
        return !onDevice && !taken.some((label) => near(label, LABEL_PX[0], LABEL_PX[1]));
      };
      const side = LABEL_SIDES.find(free) ?? LABEL_SIDES[0];
      taken.push([x + side[0], y + side[1]]);
      return side;
    });
  }
}

/** The parts of a device: a dot if it is selected, a cross if not, and a ring if it is marked or has changed.
 * @param {number} k @returns {SVGGElement} */
function deviceShape(k) {
  const r = RADIUS_PX;
  const d = `M${-r},${-r}L${r},${r}M${-r},${r}L${r},${-r}`;
  return svg(
    "g",
    { "data-device": k },
    svg("circle", { class: "hit", r: 15 }),
    svg("circle", { class: "ring", r: r + 5 }),
    svg(
      "g",
      { class: "shape" },
      svg("circle", { class: "dot", r }),
      svg("path", { class: "cross-edge", d }),
      svg("path", { class: "cross", d }),
    ),
    svg("text", { y: -r - 6, "text-anchor": "middle" }),
  );
}

/** A device in words. @param {number} device @returns {string} */
export function describe(device) {
  const answer = store.shown();
  const devices = store.devices();
  if (answer === null || devices === null) return "";
  const height = devices.z_m[device] === 0 ? "" : `, z ${fmt(devices.z_m[device])} m`;
  const share = store.turn === null ? "" : `, sends ${fmt(100 * store.turn.shares[device], 3)} % of its weight`;
  return (
    `Device ${device}: ${answer.selected[device] ? "selected" : "not selected"}, score ${fmt(answer.scores[device], 4)}, ` +
    `weight ${fmt(answer.weights[device])}, power ${fmt(answer.transmit_power[device])} P\u2080, ` +
    `x ${fixed(devices.x_m[device], 2)} m, y ${fixed(devices.y_m[device], 2)} m${height}, ` +
    `gain ${fmt(devices.gain[device])}${share}`
  );
}

/** Round to a tenth of a millimetre. @param {number} value */
function round(value) {
  return Math.round(value * 1e4) / 1e4;
}

/** @param {number[]} values */
function low(values) {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

/** @param {number[]} values */
function high(values) {
  return values.reduce((a, b) => Math.max(a, b), -Infinity);
}

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** The smallest of 1, 2, 5 times a power of ten that is at least a value. @param {number} least @returns {number} */
export function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least) return factor * power;
  return 10 * power;
}
