// The state of the page: what is shown, undo and redo, pinned designs. Parts of the page subscribe to it.

import { Connection, Newest } from "./connection.js";
import { settled } from "./dom.js";

/** @typedef {import("./types.js").State} State */
/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Devices} Devices */
/** @typedef {import("./types.js").Hello} Hello */
/** @typedef {import("./types.js").Pin} Pin */
/** @typedef {import("./types.js").Turn} Turn */
/** @typedef {"state" | "answer" | "pins" | "compare" | "error" | "job" | "marked" | "turn" | "theme"} Topic */

const LONGEST_HISTORY = 200;
const SAVE_MS = 400; // after the last change, before it is saved for a reload
const COLUMNS = /** @type {(keyof Devices)[]} */ (["x_m", "y_m", "z_m", "gain", "samples", "priority"]);

export class Store {
  constructor() {
    this.connection = new Connection();
    /** @type {Hello} */
    this.hello = /** @type {any} */ (null);
    /** @type {State} */
    this.state = /** @type {any} */ (null);
    /** The newest answer; while dragging it may belong to a state a few milliseconds old.
     * @type {Answer | null} */
    this.answer = null;
    /** @type {Pin[]} */
    this.pins = [];
    /** Pin that the room is compared with. @type {Pin | null} */
    this.compare = null;
    /** Number of the marked device. @type {number | null} */
    this.marked = null;
    /** The turn of a book that is shown instead of the state. @type {Turn | null} */
    this.turn = null;
    /** Layout of a search that is running. @type {number[][] | null} */
    this.preview = null;
    /** The long job that is running. @type {{id: number, name: string} | null} */
    this.job = null;
    /** Message of the last refusal; "" if the last request went well. */
    this.error = "";
    /** @type {State[]} */
    this.past = [];
    /** @type {State[]} */
    this.future = [];
    this.lastLabel = "";
    /** @type {Map<Topic, Set<() => void>>} */
    this.listeners = new Map();
    /** Milliseconds from request to answer of the last live requests. @type {number[]} */
    this.roundTrips = [];
    this.live = new Newest((/** @type {State} */ state) => this.ask(state));
    /** The state that `answer` belongs to. @type {State | null} */
    this.answered = null;
    this.nextPin = 1;
    this.save = settled(() => this.keep(), SAVE_MS);
  }

  /** Connect and load the first state: that of a link, or the one before a reload, or what was opened.
   * @param {State | null} linked */
  async start(linked) {
    await this.connection.open();
    this.hello = await this.connection.request("hello");
    const kept = this.kept();
    this.state = linked ?? kept?.state ?? this.hello.state;
    for (const pin of kept?.pins ?? []) this.pin(pin.label, pin.state, pin.answer);
    this.subscribe("state", this.save);
    this.subscribe("pins", this.save);
    this.publish("state");
    this.live.put(this.state);
  }

  /** Keep state and pins for a reload of this tab. */
  keep() {
    try {
      const { state, pins } = this;
      sessionStorage.setItem("airpass", JSON.stringify({ start: this.hello.start, state, pins }));
    } catch {
      sessionStorage.removeItem("airpass"); // too large
    }
  }

  /** What was kept, if it is of the same start of the server. @returns {{state: State, pins: Pin[]} | null} */
  kept() {
    try {
      const kept = JSON.parse(sessionStorage.getItem("airpass") ?? "null");
      return kept?.start === this.hello.start ? kept : null;
    } catch {
      return null;
    }
  }

  /** What is shown: the state of a turn of a book, or the state. Changes begin from it. @returns {State} */
  base() {
    return this.turn?.state ?? this.state;
  }

  /** @param {Topic} topic @param {() => void} listener */
  subscribe(topic, listener) {
    const known = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, known.add(listener));
  }

  /** Call the listeners of some topics, each once. @param {Topic[]} topics */
  publish(...topics) {
    const called = new Set();
    for (const topic of topics) {
      for (const listener of this.listeners.get(topic) ?? []) {
        if (!called.has(listener)) listener();
        called.add(listener);
      }
    }
  }

  /** What is shown: a turn of a book, or the newest answer. @returns {Answer | null} */
  shown() {
    return this.turn?.answer ?? this.answer;
  }

  /** The devices as lists. @returns {Devices | null} */
  devices() {
    if (this.state === null) return null;
    const given = /** @type {any} */ (this.base().scenario.devices);
    if (!Array.isArray(given.x_m)) return this.answer?.devices ?? null;
    const count = given.x_m.length;
    const spread = (/** @type {any} */ value, /** @type {number} */ other) =>
      Array.isArray(value) ? value : Array(count).fill(value ?? other);
    return {
      x_m: given.x_m,
      y_m: spread(given.y_m, 0),
      z_m: spread(given.z_m, 0),
      gain: spread(given.gain, 1),
      samples: spread(given.samples, 1),
      priority: spread(given.priority, 1),
    };
  }

  /** Antenna positions; null for an array. @returns {number[][] | null} */
  layout() {
    if (this.state === null) return null;
    if (this.turn !== null) return this.turn.answer.layout_m;
    if (this.state.array !== null) return null;
    // The server fits a layout to a changed receiver; the state keeps what was wanted.
    const fitted = this.answer?.layout_m ?? null;
    return this.answered === this.state ? fitted : (this.state.layout_m ?? fitted);
  }

  /** Replace the state, and ask for its answer. States are never modified in place: give a new object.
   * @param {State} state
   * @param {string} [label]  changes with the same label that follow each other are undone together, such as the
   *   moves of one drag; "" for none */
  change(state, label = "") {
    if (label === "" || label !== this.lastLabel) {
      this.past.push(this.state);
      if (this.past.length > LONGEST_HISTORY) this.past.shift();
    }
    this.lastLabel = label;
    this.future = [];
    this.show(state);
  }

  /** @param {State} state */
  show(state) {
    this.state = state;
    this.turn = null;
    this.publish("state", "turn");
    this.live.put(state);
  }

  /** End a series of changes that are undone together. */
  endSeries() {
    this.lastLabel = "";
  }

  /** A change of the scenario's tables, such as patch({radio: {snr_db: 3}}, "snr"). A value undefined removes a key.
   * @param {Object<string, Object<string, any>>} tables @param {string} [label] */
  patch(tables, label = "") {
    const scenario = /** @type {any} */ ({ ...this.base().scenario });
    for (const [name, table] of Object.entries(tables)) scenario[name] = { ...scenario[name], ...table };
    this.change({ ...this.base(), scenario, found: null }, label);
  }

  /** Change the devices. `edit` gets lists of its own.
   * @param {(devices: Devices) => void} edit @param {string} [label] */
  editDevices(edit, label = "") {
    const now = this.devices();
    if (now === null) return;
    const lists = /** @type {Devices} */ (Object.fromEntries(COLUMNS.map((name) => [name, [...now[name]]])));
    edit(lists);
    const base = this.base();
    this.change({ ...base, scenario: { ...base.scenario, devices: lists }, found: null }, label);
  }

  /** @param {number[][] | null} layout @param {string} [label] */
  setLayout(layout, label = "") {
    this.change({ ...this.base(), layout_m: layout, array: null, found: null }, label);
  }

  undo() {
    this.back(this.past, this.future);
  }

  redo() {
    this.back(this.future, this.past);
  }

  /** @param {State[]} from @param {State[]} to */
  back(from, to) {
    const state = from.pop();
    if (state === undefined) return;
    to.push(this.state);
    this.lastLabel = "";
    this.show(state);
  }

  /** @param {Answer} answer */
  setAnswer(answer) {
    this.answer = answer;
    this.error = "";
    if (this.marked !== null && this.marked >= answer.scores.length) this.marked = null;
    this.publish("answer", "error");
  }

  /** @param {string} label @param {State} [state] @param {Answer} [answer] @returns {Pin | null} */
  pin(label, state = this.base(), answer = this.shown() ?? undefined) {
    if (answer === undefined) return null;
    const known = new Set(this.pins.map((one) => one.label));
    let name = label;
    for (let number = 2; known.has(name); number++) name = `${label} ${number}`;
    const pin = { id: this.nextPin++, label: name, state, answer };
    this.pins = [...this.pins, pin];
    this.publish("pins");
    return pin;
  }

  /** @param {number} id */
  unpin(id) {
    this.pins = this.pins.filter((pin) => pin.id !== id);
    if (this.compare?.id === id) this.compare = null;
    this.publish("pins", "compare");
  }

  /** @param {Pin | null} pin */
  compareWith(pin) {
    this.compare = pin;
    this.publish("compare");
  }

  /** @param {number | null} device */
  mark(device) {
    if (device === this.marked) return;
    this.marked = device;
    this.publish("marked");
  }

  /** @param {Turn | null} turn */
  showTurn(turn) {
    this.turn = turn;
    this.publish("turn");
  }

  /** @param {number[][] | null} layout */
  setPreview(layout) {
    this.preview = layout;
    this.publish("turn");
  }

  /** @param {string} message */
  fail(message) {
    this.error = message;
    this.publish("error");
  }

  /** Run a long job. Only one runs at a time.
   * @param {string} name @param {Object<string, any>} body @param {(message: any) => void} progress
   * @returns {Promise<any>} */
  async runJob(name, body, progress) {
    if (this.job !== null) throw new Error(`cancel ${this.job.name} first`);
    const sent = this.connection.send(name, body, progress);
    this.job = { id: sent.id, name };
    this.publish("job");
    try {
      return await sent.answer;
    } finally {
      this.job = null;
      this.publish("job");
    }
  }

  cancelJob() {
    if (this.job !== null) this.connection.cancel(this.job.id);
  }

  /** @param {State} state */
  async ask(state) {
    const began = performance.now();
    try {
      const answer = await this.connection.request("live", { state });
      this.roundTrips.push(performance.now() - began);
      if (this.roundTrips.length > 500) this.roundTrips.shift();
      if (this.state !== state && this.live.waiting === null) return; // of a state that is no longer shown
      this.answered = state;
      this.setAnswer(answer);
    } catch (error) {
      if (this.state === state) this.fail(error instanceof Error ? error.message : String(error));
    }
  }
}

export const store = new Store();
