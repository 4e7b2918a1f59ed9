// Training on mnist-mini over the present link and over pinned designs, next to ideal FedAvg.

import { LineChart, plainLook } from "./charts.js";
import { answerName } from "./designs.js";
import { el, fixed } from "./dom.js";
import { row } from "./setup.js";
import { store } from "./store.js";

const MOST_LINKS = 8;

export class LearningPanel {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.rounds = /** @type {HTMLInputElement} */ (
      el("input", { id: "rounds", type: "number", min: 1, max: 2000, value: 100 })
    );
    this.choices = el("fieldset", { id: "train-choices" }, el("legend", {}, "Links"));
    this.run = el("button", { type: "button", id: "run-train", class: "primary", onclick: () => void this.start() }, "Train");
    this.cancel = el("button", { type: "button", id: "cancel-train", onclick: () => store.cancelJob() }, "Cancel");
    this.status = el("p", { id: "train-status", class: "status", role: "status" });
    this.chartHost = el("div", { class: "chart" });
    this.table = el("div", { id: "train-table" });
    host.append(
      el(
        "p",
        { class: "note" },
        "Digits (mnist-mini), three of ten classes per device. Devices that are not selected do not train, and " +
          "the error of the link is simulated.",
      ),
      row("rounds", "Rounds", this.rounds),
      this.choices,
      el(
        "div",
        { class: "buttons" },
        this.run,
        this.cancel,
        el(
          "button",
          { type: "button", id: "use-samples", title: "Weights then follow the data", onclick: () => void this.useSamples() },
          "Take the samples of the data",
        ),
      ),
      this.status,
      this.chartHost,
      this.table,
    );
    store.subscribe("pins", () => this.refreshChoices());
    store.subscribe("answer", () => this.refreshChoices());
    this.choicesKey = "";
    store.subscribe("job", () => this.refresh());
    this.refreshChoices();
    this.refresh();
  }

  refresh() {
    this.run.disabled = store.job !== null;
    this.cancel.disabled = store.job?.name !== "train";
  }

  refreshChoices() {
    const count = store.answer?.scores.length ?? 0;
    const key = JSON.stringify([count, store.pins.map((pin) => [pin.id, pin.label])]);
    if (key === this.choicesKey) return;
    this.choicesKey = key;
    const off = new Set(
      [.../** @type {NodeListOf<HTMLInputElement>} */ (this.choices.querySelectorAll("input"))]
        .filter((box) => !box.checked && !box.disabled)
        .map((box) => box.value),
    );
    const box = (/** @type {string} */ value, /** @type {string} */ text, /** @type {number} */ devices) =>
      el(
        "label",
        { class: "choice" },
        el("input", { type: "checkbox", value, checked: !off.has(value) && devices === count, disabled: devices !== count }),
        ` ${text}${devices === count ? "" : ` (${devices} devices; the room has ${count})`}`,
      );
    this.choices.replaceChildren(
      el("legend", {}, "Links"),
      box("now", "what the room shows", count),
      ...store.pins.map((pin) => box(String(pin.id), `pinned: ${pin.label}`, pin.answer.scores.length)),
    );
  }

  async useSamples() {
    try {
      const { samples } = await store.runJob("samples", { state: store.state, seed: store.state.seed }, () => undefined);
      store.editDevices((lists) => {
        lists.samples = samples;
      });
      this.status.textContent = "Weights follow the data now.";
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  async start() {
    const chosen = [.../** @type {NodeListOf<HTMLInputElement>} */ (this.choices.querySelectorAll("input:checked"))].map(
      (input) => input.value,
    );
    const links = chosen.slice(0, MOST_LINKS).map((value) => {
      const pin = store.pins.find((one) => String(one.id) === value);
      if (pin !== undefined) return { label: pin.label, state: pin.state };
      return { label: store.answer === null ? "room" : answerName(store.answer), state: store.base() };
    });
    if (links.length === 0) {
      this.status.textContent = "Choose at least one link.";
      return;
    }
    const rounds = Number(this.rounds.value);
    /** @type {Map<number, {x: number[], y: number[]}>} */
    const curves = new Map();
    const chart = new LineChart(this.chartHost, {
      label: "Test accuracy against rounds",
      xlabel: "round",
      ylabel: "test accuracy, %",
      height: 240,
    });
    let labels = ["FedAvg (ideal)", ...links.map((link) => link.label)];
    const show = () =>
      chart.set(
        [...curves.entries()].map(([run, { x, y }]) => ({
          label: labels[run],
          look: run === 0 ? store.hello.looks.fedavg : { ...plainLook(labels[run], run - 1), marker: "" },
          x,
          y,
        })),
      );
    this.table.replaceChildren();
    this.status.textContent = "Loading…";
    try {
      const found = await store.runJob("train", { links, rounds, seed: store.state.seed }, (message) => {
        if (message.labels !== undefined) labels = message.labels;
        if (message.text !== undefined) this.status.textContent = message.text;
        if (message.run === undefined) return;
        this.status.textContent = `${labels[message.run]}: round ${message.round} of ${rounds}`;
        if (message.accuracy === null) return;
        const curve = curves.get(message.run) ?? { x: [], y: [] };
        curves.set(message.run, curve);
        curve.x.push(message.round);
        curve.y.push(100 * message.accuracy);
        show();
      });
      curves.clear();
      for (const run of found.runs) {
        curves.set(run.run, { x: run.rounds, y: run.accuracy.map((/** @type {number} */ value) => 100 * value) });
      }
      show();
      this.showTable(found, labels);
      this.status.textContent = found.interrupted ? "Cancelled; the rounds so far are shown." : "Done.";
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.status.textContent = message === "cancelled" ? "Cancelled." : message;
    }
  }

  /** @param {any} found @param {string[]} labels */
  showTable(found, labels) {
    const head = ["link", "accuracy, %", "devices", "SDR, dB", "rounds"].map((text) => el("th", { scope: "col" }, text));
    const rows = found.runs.map((/** @type {any} */ run) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, labels[run.run]),
        el("td", {}, fixed(100 * run.accuracy[run.accuracy.length - 1], 1)),
        el("td", {}, String(run.selected_count)),
        el("td", {}, fixed(run.measured_sdr_db, 1)),
        el("td", {}, String(run.rounds[run.rounds.length - 1])),
      ),
    );
    this.table.replaceChildren(
      el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows))),
    );
  }
}
