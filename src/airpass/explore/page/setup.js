// Sliders and fields of the scenario, and the marked device.

import { byId, el, fmt } from "./dom.js";
import { describe } from "./room.js";
import { store } from "./store.js";

const LIGHT_M_S = 299792458;

/**
 * @typedef {Object} Slider
 * @property {string} name
 * @property {string} label
 * @property {string} unit
 * @property {[number, number]} range
 * @property {number} step
 * @property {boolean} [log]  whether the slider is logarithmic
 * @property {() => number | null} get  null if it cannot be set, as there are several values
 * @property {(value: number) => void} set
 */

const PLACED = ["devices", "waveguides", "height", "carrier"]; // fixed if channels were given for these devices

/** @returns {any} */
const radio = () => store.base().scenario.radio;
/** @returns {any} */
const receiver = () => store.base().scenario.receiver;
/** @param {any} value @returns {number | null} */
const single = (value) => (typeof value === "number" ? value : null);

/** @type {Slider[]} */
const SLIDERS = [
  {
    name: "snr",
    label: "SNR",
    unit: "dB",
    range: [-40, 40],
    step: 0.5,
    get: () => ("power_dbm" in radio() ? radio().power_dbm : radio().snr_db),
    set: (value) => store.patch({ radio: { ["power_dbm" in radio() ? "power_dbm" : "snr_db"]: value } }, "snr"),
  },
  {
    name: "threshold",
    label: "Error threshold ε",
    unit: "",
    range: [1e-4, 10],
    step: 0,
    log: true,
    get: () => radio().mse_threshold,
    set: (value) => store.patch({ radio: { mse_threshold: value } }, "threshold"),
  },
  {
    name: "devices",
    label: "Devices K",
    unit: "",
    range: [1, 200],
    step: 1,
    get: () => store.devices()?.x_m.length ?? null,
    set: (value) => void setCount(value),
  },
  {
    name: "waveguides",
    label: "Waveguides M",
    unit: "",
    range: [1, 20],
    step: 1,
    get: () => receiver().waveguides,
    set: (value) => store.patch({ receiver: resized(value) }, "waveguides"),
  },
  {
    name: "antennas",
    label: "Antennas per waveguide N",
    unit: "",
    range: [1, 20],
    step: 1,
    get: () => receiver().antennas,
    set: (value) => store.patch({ receiver: { antennas: value } }, "antennas"),
  },
  {
    name: "gap",
    label: "Smallest gap",
    unit: "m",
    range: [0, 3],
    step: 0.01,
    get: () => receiver().min_gap_m,
    set: (value) => store.patch({ receiver: { min_gap_m: value } }, "gap"),
  },
  {
    name: "height",
    label: "Height of the waveguides",
    unit: "m",
    range: [1, 20],
    step: 0.1,
    get: () => single(receiver().height_m),
    set: (value) => store.patch({ receiver: { height_m: value } }, "height"),
  },
  {
    name: "carrier",
    label: "Carrier",
    unit: "GHz",
    range: [0.3, 100],
    step: 0,
    log: true,
    get: () => ("carrier_ghz" in radio() ? radio().carrier_ghz : LIGHT_M_S / radio().wavelength_m / 1e9),
    set: (value) =>
      store.patch(
        { radio: "carrier_ghz" in radio() ? { carrier_ghz: value } : { wavelength_m: LIGHT_M_S / (value * 1e9) } },
        "carrier",
      ),
  },
];

/** Changes of the receiver for another number of waveguides: lists get as many entries.
 * @param {number} count @returns {Object<string, any>} */
function resized(count) {
  /** @type {Object<string, any>} */
  const changes = { waveguides: count };
  for (const name of ["length_m", "height_m", "feed"]) {
    const given = receiver()[name];
    if (Array.isArray(given)) changes[name] = Array.from({ length: count }, (_, m) => given[Math.min(m, given.length - 1)]);
  }
  const ys = receiver().waveguide_y_m;
  if (Array.isArray(ys)) {
    // The same width, divided evenly.
    const [low, high] = [Math.min(...ys), Math.max(...ys)];
    const margin = ys.length > 1 ? (high - low) / (ys.length - 1) / 2 : receiver().spacing_m / 2;
    const width = high - low + 2 * margin;
    changes.waveguide_y_m = Array.from({ length: count }, (_, m) => low - margin + (width * (m + 0.5)) / count);
  }
  return changes;
}

let newestCount = 0; // a draw may arrive after the slider has moved on

/** Another number of devices: a new draw if they were drawn; else the last are removed, or some are added.
 * @param {number} count */
async function setCount(count) {
  newestCount = count;
  const table = /** @type {any} */ (store.state.scenario.devices);
  if (!Array.isArray(table.x_m)) {
    store.patch({ devices: { count } }, "count");
    return;
  }
  if (count <= table.x_m.length) {
    store.editDevices((lists) => {
      for (const list of Object.values(lists)) list.length = count;
    }, "count");
    return;
  }
  const drawn = await store.connection.request("draw", { devices: { ...fitted(drawRanges(), count), count, seed: store.state.seed } });
  const { devices } = drawn;
  if (count !== newestCount) return;
  store.editDevices((lists) => {
    const now = lists.x_m.length;
    const typical = lists.samples[0];
    for (let k = now; k < count; k++) {
      lists.x_m.push(devices.x_m[k]);
      lists.y_m.push(devices.y_m[k]);
      lists.z_m.push(lists.z_m[0]);
      lists.gain.push(devices.gain[k]);
      lists.samples.push(typical);
      lists.priority.push(1);
    }
  }, "count");
}

/** Ranges of the last draw that was shown. @type {Object<string, any> | null} */
let lastRanges = null;

/** Where devices are drawn: as in the last draw, or over the floor under the waveguides.
 * @returns {Object<string, any>} */
function drawRanges() {
  const devices = store.devices();
  const heights = devices === null || devices.z_m.every((z) => z === 0) ? {} : { z_m: devices.z_m };
  if (lastRanges !== null) return { ...lastRanges, ...heights };
  const room = store.shown()?.room;
  if (devices === null || room === undefined) return {};
  const span = (/** @type {number[]} */ values) => [Math.min(...values), Math.max(...values)];
  const wide = (/** @type {number[]} */ values, /** @type {number[]} */ others) => {
    const [low, high] = span(values);
    return high - low > 1 ? [low, high] : span([...values, ...others]);
  };
  return {
    x_range_m: wide(devices.x_m, [0, ...room.length_m]),
    y_range_m: wide(devices.y_m, room.waveguide_y_m),
    gain_range: span(devices.gain),
    ...heights,
  };
}

/** Remember how the devices of the state were drawn. */
function noteRanges() {
  const { x_range_m, y_range_m, gain_range } = /** @type {any} */ (store.state.scenario.devices);
  if (Array.isArray(x_range_m)) lastRanges = { x_range_m, y_range_m, gain_range };
}

/** Heights for a number of devices: as they are, or the first for all. @param {Object<string, any>} ranges
 * @param {number} count @returns {Object<string, any>} */
function fitted(ranges, count) {
  if (!Array.isArray(ranges.z_m)) return ranges;
  return { ...ranges, z_m: Array.from({ length: count }, (_, k) => ranges.z_m[k] ?? ranges.z_m[0]) };
}

export class SetupPanel {
  /** @param {HTMLElement} host @param {import("./room.js").RoomView} room */
  constructor(host, room) {
    this.room = room;
    /** @type {Map<string, {range: HTMLInputElement, field: HTMLInputElement, unit: HTMLElement, label: HTMLElement}>} */
    this.inputs = new Map();
    const preset = el("select", { id: "preset", onchange: () => void this.loadPreset(preset.value) });
    preset.append(el("option", { value: "" }, "choose…"), el("option", { value: "opened" }, "as opened"));
    for (const name of store.hello.presets) preset.append(el("option", { value: name }, name));
    this.preset = preset;
    this.seed = /** @type {HTMLInputElement} */ (
      el("input", { id: "draw-seed", type: "number", min: 0, step: 1, value: 0 })
    );
    this.weights = el(
      "select",
      { id: "weights", onchange: () => store.patch({ weights: { normalisation: this.weights.value } }) },
      el("option", { value: "share" }, "share of the samples"),
      el("option", { value: "energy" }, "energy (ε is distortion over signal)"),
      el("option", { value: "count" }, "number of samples, as printed"),
    );
    this.searchSeed = /** @type {HTMLInputElement} */ (
      el("input", { id: "search-seed", type: "number", min: 0, step: 1, value: 0, onchange: () => this.setSeed() })
    );
    this.channel = el("p", { class: "note" });
    host.append(
      row("preset", "Load a set-up", preset),
      el("div", { class: "sliders" }, ...SLIDERS.map((slider) => this.slider(slider))),
      row("weights", "Weights φ", this.weights),
      el(
        "div",
        { class: "row" },
        el("label", { for: "draw-seed" }, "Seed of the devices"),
        el(
          "span",
          { class: "pair" },
          this.seed,
          el("button", { type: "button", id: "redraw", onclick: () => this.redraw() }, "Draw"),
          el("button", { type: "button", id: "redraw-next", title: "Draw with the next seed", onclick: () => this.redraw(1) }, "Next"),
        ),
      ),
      row("search-seed", "Seed of searches", this.searchSeed),
      this.channel,
      el("h3", {}, "Marked device"),
    );
    this.device = el("div", { id: "device-editor" });
    host.append(this.device);
    for (const topic of /** @type {const} */ (["state", "answer", "turn"])) store.subscribe(topic, () => this.refresh());
    for (const topic of /** @type {const} */ (["marked", "answer", "turn"])) store.subscribe(topic, () => this.refreshDevice());
    this.refresh();
    this.refreshDevice();
  }

  /** @param {Slider} slider @returns {HTMLElement} */
  slider(slider) {
    const to = (/** @type {number} */ value) => (slider.log ? Math.log10(value) : value);
    const from = (/** @type {number} */ value) => (slider.log ? Number((10 ** value).toPrecision(3)) : value);
    const set = (/** @type {number} */ value) => {
      if (slider.log && value <= 0) store.fail(`${slider.label}: must be > 0`);
      else if (Number.isFinite(value)) slider.set(slider.step === 1 ? Math.max(1, Math.round(value)) : value);
    };
    const range = /** @type {HTMLInputElement} */ (
      el("input", {
        type: "range",
        id: `slider-${slider.name}`,
        min: to(slider.range[0]),
        max: to(slider.range[1]),
        step: slider.log ? 0.01 : slider.step,
        oninput: () => set(from(Number(range.value))),
        onpointerup: () => store.endSeries(),
        onblur: () => store.endSeries(),
      })
    );
    const field = /** @type {HTMLInputElement} */ (
      el("input", {
        type: "number",
        id: `field-${slider.name}`,
        "aria-label": `${slider.label}${slider.unit === "" ? "" : `, ${slider.unit}`}`,
        step: "any",
        onchange: () => {
          if (field.value.trim() === "") this.refresh(true);
          else set(Number(field.value));
          store.endSeries();
        },
      })
    );
    const label = el("label", { for: range.id }, slider.label);
    const unit = el("span", { class: "unit" }, slider.unit);
    this.inputs.set(slider.name, { range, field, unit, label });
    return el("div", { class: "slider" }, label, range, field, unit);
  }

  /** @param {boolean} [typed]  whether a field that has the focus is set too */
  refresh(typed = false) {
    if (store.state === null) return;
    noteRanges();
    const room = store.shown()?.room;
    for (const slider of SLIDERS) {
      const { range, field, unit, label } = /** @type {any} */ (this.inputs.get(slider.name));
      const value = slider.get();
      range.disabled = field.disabled = value === null || (room?.devices_move === false && PLACED.includes(slider.name));
      if (slider.name === "snr") {
        const physical = "power_dbm" in radio();
        label.textContent = physical ? "Transmit power" : "SNR";
        unit.textContent = physical ? "dBm" : "dB";
      }
      if (value === null) {
        field.value = "";
        field.placeholder = "several";
        continue;
      }
      const scaled = (/** @type {number} */ one) => (slider.log ? Math.log10(one) : one);
      const at = scaled(value);
      if (Number.isFinite(at) && store.error === "") {
        range.min = String(Math.min(scaled(slider.range[0]), at));
        range.max = String(Math.max(scaled(slider.range[1]), at));
      }
      range.value = String(at);
      if (typed || document.activeElement !== field) field.value = String(Number(value.toPrecision(5)));
      range.setAttribute("aria-valuetext", `${fmt(value)} ${unit.textContent}`);
    }
    this.weights.value = store.state.scenario.weights?.normalisation ?? "share";
    if (document.activeElement !== this.searchSeed) this.searchSeed.value = String(store.state.seed);
    const drawn = /** @type {any} */ (store.state.scenario.devices).seed;
    if (typeof drawn === "number" && document.activeElement !== this.seed) this.seed.value = String(drawn);
    const words = room?.channel ?? [];
    this.channel.textContent = words.length === 0 ? "" : `Channel: ${words.join("; ")}.`;
    for (const id of ["redraw", "redraw-next"]) byId(id).disabled = room?.devices_move === false;
  }

  /** @param {number} [more] */
  redraw(more = 0) {
    const seed = Math.max(0, Math.round(Number(this.seed.value)) + more);
    this.seed.value = String(seed);
    const count = store.devices()?.x_m.length ?? 10;
    const scenario = { ...store.base().scenario, devices: { ...fitted(drawRanges(), count), count, seed } };
    store.mark(null);
    store.change({ ...store.base(), scenario, seed, found: null });
  }

  setSeed() {
    const seed = Math.max(0, Math.round(Number(this.searchSeed.value)));
    store.change({ ...store.base(), seed });
  }

  /** @param {string} name */
  async loadPreset(name) {
    this.preset.value = "";
    if (name === "") return;
    store.mark(null);
    const state = name === "opened" ? store.hello.state : (await store.connection.request("preset", { name })).state;
    lastRanges = null;
    store.change(state);
    this.room.fit();
  }

  refreshDevice() {
    const k = store.marked;
    const devices = store.devices();
    if (k === null || devices === null || k >= devices.x_m.length) {
      this.device.replaceChildren(el("p", { class: "note" }, "Click a device, or press n in the room."));
      return;
    }
    if (this.device.dataset.device === String(k) && this.device.contains(document.activeElement)) {
      const text = this.device.querySelector(".described");
      if (text !== null) text.textContent = describe(k);
      return;
    }
    this.device.dataset.device = String(k);
    const fixedPlace = store.answer?.room.devices_move === false;
    const field = (/** @type {keyof import("./types.js").Devices} */ name, /** @type {string} */ label, /** @type {boolean} */ off) => {
      const input = /** @type {HTMLInputElement} */ (
        el("input", {
          id: `device-${name}`,
          type: "number",
          step: "any",
          disabled: off,
          value: Number(devices[name][k].toPrecision(6)),
          onchange: () =>
            store.editDevices((lists) => {
              lists[name][k] = Number(input.value);
            }),
        })
      );
      return row(input.id, label, input);
    };
    this.device.replaceChildren(
      el("p", { class: "described" }, describe(k)),
      field("x_m", "x, m", fixedPlace),
      field("y_m", "y, m", fixedPlace),
      field("z_m", "z, m", fixedPlace),
      field("gain", "Gain γ", fixedPlace),
      field("samples", "Samples |D|", false),
      field("priority", "Priority v", false),
      el("button", { type: "button", disabled: fixedPlace, onclick: () => this.room.removeDevice(k) }, "Remove"),
    );
  }
}

/** A labelled input. @param {string} id @param {string} text @param {HTMLElement} input */
export function row(id, text, input) {
  return el("div", { class: "row" }, el("label", { for: id }, text), input);
}
