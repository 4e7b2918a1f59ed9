// Running design methods, watching them, and pinned results side by side.

import { LineChart, plainLook } from "./charts.js";
import { byId, el, fixed, fmt, svg } from "./dom.js";
import { row } from "./setup.js";
import { store } from "./store.js";

/** @typedef {import("./types.js").Answer} Answer */
/** @typedef {import("./types.js").Pin} Pin */

const FIRST = ["airpass-plus", "airpass", "mimo-mn-plus", "distributed-m"]; // in the list of methods
const PLAIN_OPTIONS = ["effort", "axis"]; // shown at once; the others on demand

/** Name of a method for people. @param {string} name @returns {string} */
export function displayName(name) {
  return store.hello.looks[name]?.name ?? name;
}

/** The method of an answer in a few words. @param {Answer} answer @returns {string} */
export function answerName(answer) {
  if (answer.source === "live") return "HRMC+ on these antennas";
  const { effort, axis } = answer.method.options;
  const extra = [effort === undefined || effort === "default" ? "" : effort, axis ?? ""].filter((word) => word !== "");
  return displayName(answer.method.name) + (extra.length === 0 ? "" : ` (${extra.join(", ")})`);
}

/** The radio of an answer with a real minus sign. @param {Answer} answer @returns {string} */
export function radioText(answer) {
  return answer.radio.replace(/-(?=\d)/g, "\u2212");
}

/** Decibels, or a dash. @param {number | null} value @returns {string} */
export function decibels(value) {
  return value === null ? "–" : `${fixed(value, 1)} dB`;
}

export class DesignPanel {
  /** @param {HTMLElement} host */
  constructor(host) {
    const methods = [...store.hello.methods].sort(
      (a, b) => rankOf(a.name) - rankOf(b.name) || a.name.localeCompare(b.name),
    );
    this.method = el("select", { id: "method", onchange: () => this.showOptions() });
    for (const one of methods) this.method.append(el("option", { value: one.name }, displayName(one.name)));
    this.summary = el("p", { class: "note" });
    this.options = el("div", { class: "options" });
    this.run = el("button", { type: "button", id: "run-design", class: "primary", onclick: () => void this.start() }, "Run");
    this.cancel = el("button", { type: "button", id: "cancel-design", onclick: () => store.cancelJob() }, "Cancel");
    this.status = el("p", { id: "design-status", class: "status", role: "status" });
    this.chartHost = el("div", { class: "chart" });
    host.append(
      row("method", "Method", this.method),
      this.summary,
      this.options,
      el(
        "div",
        { class: "buttons" },
        this.run,
        this.cancel,
        el("button", { type: "button", id: "even", onclick: () => store.setLayout(null) }, "Space antennas evenly"),
      ),
      this.status,
      this.chartHost,
      el("h3", {}, "Pinned designs"),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", id: "pin", onclick: () => this.pin() }, "Pin what is shown"),
        el("button", { type: "button", id: "stop-compare", onclick: () => store.compareWith(null) }, "Stop comparing"),
      ),
    );
    this.pins = el("div", { id: "pins" });
    host.append(this.pins);
    /** @type {LineChart | null} */
    this.chart = null;
    for (const topic of /** @type {const} */ (["pins", "compare", "answer"])) store.subscribe(topic, () => this.showPins());
    store.subscribe("job", () => this.refresh());
    this.showOptions();
    this.showPins();
    this.refresh();
  }

  refresh() {
    const running = store.job?.name === "design";
    this.run.disabled = store.job !== null;
    this.cancel.disabled = !running;
  }

  /** @returns {import("./types.js").MethodInfo} */
  info() {
    return /** @type {any} */ (store.hello.methods.find((one) => one.name === this.method.value));
  }

  showOptions() {
    const info = this.info();
    this.summary.textContent = `${info.summary}.`;
    const plain = info.options.filter((one) => PLAIN_OPTIONS.includes(one.name));
    const others = info.options.filter((one) => !PLAIN_OPTIONS.includes(one.name));
    this.options.replaceChildren(...plain.map(optionRow));
    if (others.length > 0) {
      this.options.append(el("details", {}, el("summary", {}, "More options"), ...others.map(optionRow)));
    }
  }

  /** Choose a method with options. @param {import("./types.js").MethodChoice} choice */
  choose(choice) {
    this.method.value = choice.name;
    this.showOptions();
    const set = (/** @type {Object<string, any>} */ table, /** @type {string} */ prefix) => {
      for (const [name, value] of Object.entries(table)) {
        if (typeof value === "object" && value !== null) {
          set(value, `${prefix}${name}.`);
          continue;
        }
        const input = /** @type {any} */ (document.getElementById(`option-${prefix}${name}`));
        if (input === null) continue;
        if (input.type === "checkbox") input.checked = value === true;
        else input.value = value === null ? "" : String(value);
        input.closest("details")?.setAttribute("open", "");
      }
    };
    set(choice.options, "");
  }

  /** Options that were changed, nested. @returns {Object<string, any>} */
  changes() {
    /** @type {Object<string, any>} */
    const found = {};
    for (const input of this.options.querySelectorAll("[data-option]")) {
      const field = /** @type {HTMLInputElement} */ (input);
      const { option, kind, original } = field.dataset;
      const text = field.type === "checkbox" ? String(field.checked) : field.value.trim();
      if (text === original || (text === "" && field.type !== "checkbox")) continue;
      const value = kind === "bool" ? text === "true" : kind === "str" ? text : Number(text);
      if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${option}: must be a number`);
      const keys = String(option).split(".");
      let branch = found;
      for (const key of keys.slice(0, -1)) branch = branch[key] ??= {};
      branch[keys[keys.length - 1]] = value;
    }
    return found;
  }

  async start() {
    /** @type {import("./types.js").Step[]} */
    const trace = [];
    const began = performance.now();
    let drawn = 0;
    this.chart = new LineChart(this.chartHost, {
      label: "Selected devices and weakest score during the search",
      xlabel: "time, s",
      ylabel: "selected devices",
      right: "weakest score",
      height: 180,
      table: false,
      whole: true,
    });
    store.showTurn(null);
    const before = store.state;
    try {
      const method = { name: this.method.value, options: this.changes() };
      this.status.textContent = "Searching…";
      const found = await store.runJob("design", { state: before, method }, (message) => {
        if (message.text !== undefined) this.status.textContent = message.text;
        if (message.step === undefined) return;
        trace.push(message.step);
        const { selected_count, weakest_score, layout_m, phase } = message.step;
        this.status.textContent = `${phase}: ${selected_count} devices, weakest score ${fmt(weakest_score)}`;
        if (layout_m !== null) store.setPreview(layout_m);
        if (performance.now() - drawn > 150) {
          drawn = performance.now();
          this.showTrace(trace);
        }
      });
      this.showTrace(trace);
      store.setPreview(null);
      const seconds = (performance.now() - began) / 1000;
      const { answer, state } = found;
      this.status.textContent =
        `${answerName(answer)}: ${answer.selected_count} of ${answer.scores.length} devices in ` +
        `${fmt(answer.seconds, 2)} s` + (seconds > 2 * answer.seconds + 1 ? ` (${fmt(seconds, 2)} s with start-up)` : "");
      if (store.state === before) {
        // Devices that were drawn stay a draw.
        store.change({ ...state, scenario: before.scenario });
      } else {
        store.pin(answerName(answer), state, answer);
        this.status.textContent += ". The room has changed meanwhile, so it was pinned.";
      }
    } catch (error) {
      store.setPreview(null);
      const message = error instanceof Error ? error.message : String(error);
      this.status.textContent = message === "cancelled" ? "Cancelled." : message;
    }
  }

  /** @param {import("./types.js").Step[]} steps */
  showTrace(steps) {
    const trace = steps.filter((step) => step.best); // what is found so far, whichever chain has found it
    if (trace.length < 2) return;
    const x = trace.map((step) => step.seconds);
    this.chart?.set([
      { label: "selected devices", look: { ...plainLook("", 0), marker: "" }, x, y: trace.map((step) => step.selected_count) },
      {
        label: "weakest score",
        look: { ...plainLook("", 1), marker: "" },
        x,
        y: trace.map((step) => step.weakest_score),
        scale: "right",
      },
    ]);
  }

  pin() {
    const answer = store.shown();
    if (answer !== null) store.pin(store.turn === null ? answerName(answer) : "a turn");
  }

  showPins() {
    byId("stop-compare").disabled = store.compare === null;
    if (store.pins.length === 0) {
      this.pins.replaceChildren(el("p", { class: "note" }, "Pin designs to compare methods on the same devices."));
      return;
    }
    const list = el("ul", { class: "pins" });
    for (const pin of store.pins) {
      const { answer } = pin;
      const compared = store.compare?.id === pin.id;
      list.append(
        el(
          "li",
          { class: compared ? "compared" : null, "data-pin": pin.id },
          thumbnail(answer),
          el(
            "div",
            { class: "pin-text" },
            el("strong", {}, pin.label),
            el(
              "span",
              {},
              `${answer.selected_count} of ${answer.scores.length} devices, weakest ${fmt(answer.weakest_score)}, ` +
                `SDR ${decibels(answer.sdr_db)}, ${radioText(answer)}`,
            ),
            difference(pin),
          ),
          el(
            "div",
            { class: "actions" },
            el("button", { type: "button", onclick: () => store.change(pin.state) }, "Show"),
            el(
              "button",
              { type: "button", "aria-pressed": String(compared), onclick: () => store.compareWith(compared ? null : pin) },
              "Compare",
            ),
            el("button", { type: "button", "aria-label": `Unpin ${pin.label}`, onclick: () => store.unpin(pin.id) }, "✕"),
          ),
        ),
      );
    }
    this.pins.replaceChildren(list);
  }
}

/** What differs between the room and a pin. @param {Pin} pin @returns {HTMLElement | null} */
function difference(pin) {
  const now = store.answer;
  if (store.compare?.id !== pin.id || now === null || now.selected.length !== pin.answer.selected.length) return null;
  const gained = now.selected.filter((chosen, k) => chosen && !pin.answer.selected[k]).length;
  const lost = now.selected.filter((chosen, k) => !chosen && pin.answer.selected[k]).length;
  return el("span", { class: "difference" }, `The room has ${gained} devices more and ${lost} fewer.`);
}

/** A small picture of a design. @param {Answer} answer @returns {SVGSVGElement} */
function thumbnail(answer) {
  const { devices, room } = answer;
  const xs = [...devices.x_m, 0, ...room.length_m];
  const ys = [...devices.y_m, ...room.waveguide_y_m];
  const [left, right] = [Math.min(...xs) - 1, Math.max(...xs) + 1];
  const [low, high] = [Math.min(...ys) - 1, Math.max(...ys) + 1];
  const picture = svg("svg", {
    class: "thumbnail",
    viewBox: `${left} ${-high} ${right - left} ${high - low}`,
    "aria-hidden": "true",
  });
  const size = (right - left) / 45;
  (answer.layout_m ?? []).forEach((row, m) => {
    for (const x of row) {
      picture.append(svg("rect", { class: "tick", x: x - size / 4, y: -room.waveguide_y_m[m] - size, width: size / 2, height: 2 * size }));
    }
  });
  for (const [x, y] of answer.array_m ?? []) {
    picture.append(svg("rect", { class: "tick", x: x - size / 4, y: -y - size, width: size / 2, height: 2 * size }));
  }
  devices.x_m.forEach((x, k) =>
    picture.append(
      svg("circle", { class: answer.selected[k] ? "selected" : "unselected", cx: x, cy: -devices.y_m[k], r: size }),
    ),
  );
  return picture;
}

/** @param {{name: string, value: any, kind: string, choices: string[] | null}} option */
function optionRow(option) {
  const id = `option-${option.name}`;
  const original = option.value === null ? "" : String(option.value);
  const common = { id, "data-option": option.name, "data-kind": option.kind, "data-original": original };
  let input;
  if (option.kind === "bool") {
    input = el("input", { ...common, type: "checkbox", checked: option.value === true });
  } else if (option.choices !== null) {
    input = el("select", common);
    for (const choice of option.choices) {
      input.append(el("option", { value: choice, selected: choice === option.value }, choice));
    }
  } else {
    input = el("input", { ...common, type: "text", placeholder: original === "" ? "none" : original, inputmode: option.kind === "str" ? "text" : "decimal" });
  }
  return row(id, option.name.replaceAll("_", " "), input);
}

/** @param {string} name */
function rankOf(name) {
  const place = FIRST.indexOf(name);
  return place < 0 ? FIRST.length : place;
}
