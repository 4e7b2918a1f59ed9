// A stored study: its figures drawn from the rows, verdicts on claims, and the scenarios behind its points.

import { LineChart } from "./charts.js";
import { el } from "./dom.js";
import { row } from "./setup.js";
import { store } from "./store.js";

export class StudyPanel {
  /** @param {HTMLElement} host @param {(tab: string) => void} showTab
   * @param {import("./designs.js").DesignPanel} designs */
  constructor(host, showTab, designs) {
    this.host = host;
    this.designs = designs;
    this.showTab = showTab;
    this.metric = el("select", { id: "metric", onchange: () => void this.showChart() });
    this.over = el(
      "select",
      { id: "over", onchange: () => void this.showChart() },
      el("option", { value: "points" }, "the axis"),
      el("option", { value: "rounds" }, "rounds"),
    );
    this.trial = el("select", { id: "trial" });
    this.status = el("p", { class: "status", role: "status", id: "study-status" });
    this.charts = el("div", { id: "study-charts" });
    this.claims = el("div", { id: "claims" });
    this.trained = false;
    void this.load();
  }

  async load() {
    const study = await store.connection.request("study");
    this.metric.append(el("option", { value: "" }, "as in the figure"));
    for (const { name, label } of study.metrics) this.metric.append(el("option", { value: name }, label));
    for (const number of study.trials) this.trial.append(el("option", { value: number }, String(number)));
    this.host.append(
      el("h3", { id: "study-title" }, study.title),
      ...study.about.map((/** @type {string} */ line) => el("p", { class: "note" }, line)),
      row("metric", "Shown", this.metric),
      row("over", "Against", this.over),
      row("trial", "Trial of a point that is opened", this.trial),
      el("p", { class: "note" }, "Click a point to open its scenario in the room. Click names to hide lines."),
      this.status,
      this.charts,
      this.claims,
    );
    this.trained = study.trained;
    this.showClaims(study.verdicts);
    await this.showChart();
  }

  async showChart() {
    const metric = this.metric.value === "" ? null : this.metric.value;
    this.over.disabled = metric === null || !this.trained;
    try {
      const chart = await store.connection.request("chart", { metric, over: this.over.value });
      this.status.textContent = chart.trials;
      this.charts.replaceChildren();
      for (const panel of chart.panels) {
        const host = el("div", { class: "chart" });
        this.charts.append(el("figure", {}, panel.title === "" ? null : el("figcaption", {}, panel.title), host));
        new LineChart(host, {
          label: `${panel.ylabel} against ${panel.xlabel}${panel.title === "" ? "" : `: ${panel.title}`}`,
          xlabel: panel.xlabel,
          ylabel: panel.ylabel,
          log: chart.log,
          ticks: panel.ticks,
          height: 280,
          onPoint: (series, place) => void this.openPoint(panel, series, place),
        }).set(
          panel.lines.map((/** @type {any} */ line) => ({
            label: line.label,
            look: chart.looks[line.key],
            x: line.x,
            y: line.value,
            half: line.half_width,
            count: line.count,
          })),
        );
      }
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
      this.charts.replaceChildren();
    }
  }

  /** @param {any} panel @param {number} series @param {number} place */
  async openPoint(panel, series, place) {
    const line = panel.lines[series];
    try {
      const found = await store.connection.request("point", {
        scheme: line.scheme,
        point: line.points[place],
        trial: Number(this.trial.value),
      });
      store.mark(null);
      store.change(found.state);
      this.status.textContent = `Opened: ${line.label}, ${line.points[place] || "the scenario"}, trial ${this.trial.value}.`;
      if (found.method !== null) this.designs.choose(found.method);
      this.showTab("setup");
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {any[]} verdicts */
  showClaims(verdicts) {
    if (verdicts.length === 0) return;
    this.claims.append(el("h3", {}, "Claims of the paper"));
    for (const found of verdicts) {
      this.claims.append(
        el(
          "details",
          { class: "claim" },
          el(
            "summary",
            {},
            `${found.claim}: ${found.text} – `,
            el("strong", {}, found.verdicts.map((/** @type {any} */ one) => `${one.comparison}: ${one.verdict}`).join("; ")),
          ),
          el(
            "ul",
            {},
            ...found.parts.map((/** @type {any} */ part) =>
              el("li", {}, `${part.what} (${part.comparison}): ${part.verdict}, ${part.effect}`),
            ),
          ),
        ),
      );
    }
  }
}
