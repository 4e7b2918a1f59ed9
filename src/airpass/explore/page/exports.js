// The design for use elsewhere: files, pictures, commands, and a link.

import { byId, copyText, download, el } from "./dom.js";
import { linkTo } from "./link.js";
import { store } from "./store.js";

const TYPES = /** @type {Record<string, string>} */ ({
  toml: "application/toml",
  json: "application/json",
  png: "image/png",
  svg: "image/svg+xml",
  pdf: "application/pdf",
});
const NAMES = /** @type {Record<string, string>} */ ({
  toml: "scenario.toml",
  json: "design.json",
  png: "design.png",
  svg: "design.svg",
  pdf: "design.pdf",
});

export class ExportPanel {
  /** @param {HTMLElement} host */
  constructor(host) {
    this.status = el("p", { class: "status", role: "status", id: "export-status" });
    this.note = el("p", { class: "note" });
    host.append(
      el("h3", {}, "Files"),
      el(
        "div",
        { class: "buttons" },
        ...Object.keys(NAMES).map((kind) =>
          el("button", { type: "button", id: `export-${kind}`, onclick: () => void this.save(kind) }, NAMES[kind]),
        ),
      ),
      this.status,
      el("h3", {}, "Command line"),
      this.block("command"),
      el("h3", {}, "Python"),
      this.block("python"),
      this.note,
      el("h3", {}, "Link"),
      el(
        "div",
        { class: "buttons" },
        el("button", { type: "button", id: "make-link", onclick: () => void this.makeLink() }, "Make a link to this state"),
      ),
      this.block("link"),
      el("p", { class: "note" }, "It works in this browser while the server runs; later: airpass explore 'LINK'."),
    );
    this.open = false;
    store.subscribe("answer", () => {
      if (this.open) void this.refresh();
    });
    for (const topic of /** @type {const} */ (["state", "turn"])) {
      store.subscribe(topic, () => (byId("text-link").textContent = ""));
    }
  }

  /** @param {string} name @returns {HTMLElement} */
  block(name) {
    const text = el("pre", { id: `text-${name}`, tabindex: "0" });
    const button = el(
      "button",
      {
        type: "button",
        id: `copy-${name}`,
        onclick: async () => {
          const done = await copyText(text.textContent ?? "");
          if (!done) getSelection()?.selectAllChildren(text);
          button.textContent = done ? "Copied" : "Press Ctrl-C";
          setTimeout(() => (button.textContent = "Copy"), 1500);
        },
      },
      "Copy",
    );
    return el("div", { class: "copied" }, text, button);
  }

  /** Called when the panel is shown or hidden. @param {boolean} open */
  show(open) {
    this.open = open;
    if (open) void this.refresh();
  }

  async refresh() {
    try {
      const found = await store.connection.request("commands", { state: store.base() });
      byId("text-command").textContent = found.command;
      byId("text-python").textContent = found.python;
      this.note.textContent = found.note;
    } catch (error) {
      this.note.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {string} kind */
  async save(kind) {
    this.status.textContent = "Writing…";
    try {
      const found = await store.connection.request("export", { state: store.base(), kind });
      const content =
        found.text ?? Uint8Array.from(atob(found.base64), (letter) => letter.charCodeAt(0));
      download(NAMES[kind], content, TYPES[kind]);
      this.status.textContent = `${NAMES[kind]} saved.`;
    } catch (error) {
      this.status.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  async makeLink() {
    byId("text-link").textContent = await linkTo(store.base());
  }
}
