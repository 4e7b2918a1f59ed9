// Evaluations on request: upper bounds, life, tolerance, and turns.

import { LineChart, plainLook } from "./charts.js";
import { decibels } from "./designs.js";
import { byId, el, fmt } from "./dom.js";
import { row } from "./setup.js";
import { store } from "./store.js";

const RECEIVERS = /** @type {Record<string, string>} */ ({
  "as designed": "as designed",
  rescaled: "scaling renewed",
  "re-solved": "beam re-solved",
});

export class EvaluatePanel {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
    /** The state that results belong to, by job. @type {Map<string, import("./types.js").State>} */
    this.states = new Map();
    /** @type {() => void} */
    this.onTurnClosed = () => undefined;
    this.positionMm = /** @type {HTMLInputElement} */ (
      el("input", { id: "position-mm", type: "number", min: 0.1, step: "any", value: 10 })
    );
    this.turnCount = /** @type {HTMLInputElement} */ (
      el("input", { id: "turn-count", type: "number", min: 1, max: 32, placeholder: "auto" })
    );
    this.section(
      "certificate",
      "How many devices are possible?",
      "Upper bounds: for these antennas with any beam, and for any antennas with any beam.",
      null,
      () => ({}),
      (found, out) => this.showCertificate(found, out),
    );
    this.section(
      "life",
      "When devices move",
      "Every device moves by the same distance in a random direction; antennas stay.",
      null,
      () => ({}),
      (found, out) => this.showLife(found, out),
    );
    this.section(
      "tolerance",
      "When antennas are not in place",
      "Normal errors of every antenna's position.",
      row("position-mm", "Largest standard deviation, mm", this.positionMm),
      () => ({ position_mm: Number(this.positionMm.value) }),
      (found, out) => this.showTolerance(found, out),
    );
    this.section(
      "turns",
      "Serve all devices by turns",
      "Several designs that are used in turn, so that every device is heard. Step through them in the room.",
      row("turn-count", "Number of turns", this.turnCount),
      () => ({ turns: this.turnCount.value === "" ? "auto" : Number(this.turnCount.value) }),
      (found, out) => this.showTurns(found, out),
    );
    store.subscribe("job", () => this.refresh());
    store.subscribe("state", () => this.markStale());
    store.subscribe("turn", () => {
      if (store.turn === null) this.onTurnClosed();
    });
    this.refresh();
    if (store.hello.book) void this.openBook();
  }

  /** @param {string} job @param {string} title @param {string} about @param {HTMLElement | null} input
   * @param {() => Object<string, any>} body @param {(found: any, out: HTMLElement) => void} show */
  section(job, title, about, input, body, show) {
    const out = el("div", { id: `result-${job}`, class: "result" });
    const status = el("p", { class: "status", role: "status", id: `status-${job}` });
    const run = el(
      "button",
      {
        type: "button",
        id: `run-${job}`,
        "data-run": "",
        onclick: async () => {
          store.showTurn(null);
          status.textContent = "Working…";
          out.replaceChildren();
          out.classList.remove("stale");
          this.states.delete(job);
          const { state } = store;
          try {
            const found = await store.runJob(job, { state, ...body() }, (message) => {
              status.textContent = message.text ?? "";
            });
            status.textContent = "";
            this.states.set(job, state);
            show(found, out);
            this.markStale();
          } catch (error) {
            const message = error instanceof Error ? error.message : String(error);
            status.textContent = message === "cancelled" ? "Cancelled." : message;
          }
        },
      },
      "Compute",
    );
    const cancel = el("button", { type: "button", "data-cancel": job, onclick: () => store.cancelJob() }, "Cancel");
    this.host.append(
      el("section", {}, el("h3", {}, title), el("p", { class: "note" }, about), input, el("div", { class: "buttons" }, run, cancel), status, out),
    );
  }

  refresh() {
    for (const button of this.host.querySelectorAll("[data-run]")) {
      /** @type {HTMLButtonElement} */ (button).disabled = store.job !== null;
    }
    for (const button of this.host.querySelectorAll("[data-cancel]")) {
      /** @type {HTMLButtonElement} */ (button).disabled = store.job?.name !== button.getAttribute("data-cancel");
    }
  }

  /** Say which results belong to an earlier state of the room. */
  markStale() {
    for (const [job, state] of this.states) {
      const old = state !== store.state;
      byId(`result-${job}`).classList.toggle("stale", old);
      byId(`status-${job}`).textContent = old ? "The room has changed since." : "";
      for (const button of byId(`result-${job}`).querySelectorAll("[data-turn]")) button.disabled = old;
    }
  }

  /** @param {any} found @param {HTMLElement} out */
  showCertificate(found, out) {
    const lines = [
      `Selected: ${found.selected_count} of ${found.devices}.`,
      `With these antennas at most ${found.beams}${found.beams === found.selected_count ? ": the beam is optimal" : ""}.`,
    ];
    if (found.layouts !== null) lines.push(`With any antennas on these waveguides at most ${found.layouts}.`);
    if (found.unservable.length > 0) lines.push(`Never selectable: ${found.unservable.join(", ")}.`);
    out.append(...lines.map((line) => el("p", {}, line)));
  }

  /** @param {any} found @param {HTMLElement} out */
  showLife(found, out) {
    const host = el("div", { class: "chart" });
    const kept = found.coherence_m["re-solved"];
    const none = found.means["re-solved"][0] === 0 ? "No device is selected." : null;
    const keeps = kept === null ? "With the beam re-solved it keeps its devices wherever they move." : null;
    const text =
      none ??
      keeps ??
        `With the beam re-solved half of the gain is lost after ${fmt(100 * kept, 3)} cm ` +
          `(${fmt(kept / found.wavelength_m, 2)} wavelengths).`;
    out.append(el("p", {}, text), host);
    const x = found.distances_m.slice(1).map((/** @type {number} */ value) => 100 * value);
    new LineChart(host, {
      label: "Devices against displacement",
      xlabel: "displacement, cm",
      ylabel: "aligned devices",
      log: "x",
      height: 220,
      whole: true,
    }).set(
      Object.entries(found.means).map(([name, means], place) => ({
        label: RECEIVERS[name] ?? name,
        look: plainLook(name, place),
        x,
        y: /** @type {number[]} */ (means).slice(1),
      })),
    );
    out.append(el("p", { class: "note" }, `Means over ${found.draws} draws of the directions.`));
  }

  /** @param {any} found @param {HTMLElement} out */
  showTolerance(found, out) {
    const host = el("div", { class: "chart" });
    out.append(host, el("p", { class: "note" }, `Means over ${found.draws} draws of the errors.`));
    new LineChart(host, {
      label: "Devices against position errors",
      xlabel: "position error, mm",
      ylabel: "aligned devices",
      height: 220,
      whole: true,
    }).set(
      Object.entries(found.means).map(([name, means], place) => ({
        label: RECEIVERS[name] ?? name,
        look: plainLook(name, place),
        x: found.position_mm,
        y: /** @type {number[]} */ (means),
      })),
    );
  }

  async openBook() {
    this.states.set("turns", store.state);
    this.showTurns(await store.connection.request("book"), byId("result-turns"));
  }

  /** @param {any} book @param {HTMLElement} out */
  showTurns(book, out) {
    let now = -1;
    const count = book.turns.length;
    const text = el("p", { id: "turn-text" });
    const go = (/** @type {number} */ to) => {
      now = (to + count) % count;
      const turn = book.turns[now];
      store.showTurn(turn);
      const senders = turn.answer.selected.filter((/** @type {boolean} */ chosen) => chosen).length;
      text.textContent =
        `Turn ${now + 1} of ${count}: ${senders} devices send, error ${fmt(turn.answer.mse)}, ` +
        `SDR ${decibels(turn.answer.sdr_db)}.`;
    };
    this.onTurnClosed = () => {
      now = -1;
      text.textContent = "";
    };
    const missing = book.served.map((/** @type {boolean} */ ok, /** @type {number} */ k) => (ok ? -1 : k)).filter((/** @type {number} */ k) => k >= 0);
    out.replaceChildren(
      el(
        "p",
        {},
        `${count} ${count === 1 ? "turn serves" : "turns serve"} ${book.served.length - missing.length} of ` +
          `${book.served.length} devices` + (missing.length === 0 ? "." : `; not served: ${missing.join(", ")}.`),
      ),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", id: "turn-back", "data-turn": "", onclick: () => go(now < 0 ? count - 1 : now - 1) }, "Back"),
        el("button", { type: "button", id: "turn-next", "data-turn": "", onclick: () => go(now + 1) }, "Next turn"),
        el("button", { type: "button", id: "turn-close", onclick: () => store.showTurn(null) }, "Back to the design"),
      ),
      text,
    );
    go(0);
  }
}
