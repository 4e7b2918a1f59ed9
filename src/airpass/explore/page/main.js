// Starts the page and connects its parts.

import { CutView } from "./cut.js";
import { DesignPanel, answerName, decibels, radioText } from "./designs.js";
import { byId, fixed, fmt } from "./dom.js";
import { EvaluatePanel } from "./evaluate.js";
import { ExportPanel } from "./exports.js";
import { LearningPanel } from "./learning.js";
import { linkedState } from "./link.js";
import { RoomView } from "./room.js";
import { ScoresView } from "./scores.js";
import { SetupPanel } from "./setup.js";
import { store } from "./store.js";
import { StudyPanel } from "./study.js";

const TABS = ["setup", "design", "evaluate", "learn", "study", "export"];
const THEMES = ["auto", "light", "dark"];

/** @type {ExportPanel | null} */
let exportPanel = null;

/** @param {string} name */
function showTab(name) {
  for (const tab of TABS) {
    const chosen = tab === name;
    const button = byId(`tab-${tab}`);
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
    byId(`panel-${tab}`).hidden = !chosen;
  }
  exportPanel?.show(name === "export");
  document.body.classList.toggle("wide-side", name === "study");
}

function listenToTabs() {
  for (const tab of TABS) {
    byId(`tab-${tab}`).addEventListener("click", () => showTab(tab));
  }
  byId("tabs").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const shown = TABS.filter((tab) => !byId(`tab-${tab}`).hidden);
    const now = shown.findIndex((tab) => byId(`tab-${tab}`).getAttribute("aria-selected") === "true");
    const steps = /** @type {Record<string, number>} */ ({ ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: -1 });
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = shown[(steps[event.key] + shown.length) % shown.length];
    showTab(next);
    byId(`tab-${next}`).focus();
  });
}

/** @param {string} theme */
function setTheme(theme) {
  const dark = theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = `Theme: ${theme}`;
  store.publish("theme");
}

function listenToTheme() {
  let theme = localStorage.getItem("airpass-theme") ?? "auto";
  if (!THEMES.includes(theme)) theme = "auto";
  setTheme(theme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(theme));
  byId("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    localStorage.setItem("airpass-theme", theme);
    setTheme(theme);
  });
}

function showSummary() {
  const answer = store.shown();
  if (answer === null) return;
  const count = answer.selected_count;
  byId("count").textContent = String(count);
  byId("of").textContent = `of ${answer.scores.length} devices`;
  byId("weakest").textContent = fmt(count > 0 ? answer.weakest_score : answer.strongest_score);
  byId("weakest-name").textContent = count > 0 ? "weakest selected score" : "strongest score";
  byId("mse").textContent = `${fmt(answer.mse)} (limit ${fmt(answer.mse_threshold)})`;
  byId("sdr").textContent = decibels(answer.sdr_db);
  byId("radio").textContent = radioText(answer);
  byId("by").textContent = store.turn === null ? answerName(answer) : "a turn of a book";
  const trips = [...store.roundTrips].sort((a, b) => a - b);
  byId("latency").textContent = trips.length === 0 ? "" : `${fixed(trips[Math.floor(trips.length / 2)], 1)} ms`;
}

let announced = "";
function announce() {
  const answer = store.answer;
  if (answer === null) return;
  const text = `${answer.selected_count} of ${answer.scores.length} devices selected`;
  if (text !== announced) byId("said").textContent = text;
  announced = text;
}

function showError() {
  const line = byId("error");
  line.textContent = store.error;
  line.hidden = store.error === "";
}

/** @param {RoomView} room */
function listenToHeader(room) {
  byId("undo").addEventListener("click", () => store.undo());
  byId("redo").addEventListener("click", () => store.redo());
  byId("help").addEventListener("click", () => byId("help-dialog").showModal());
  byId("help-close").addEventListener("click", () => byId("help-dialog").close());
  byId("zoom-in").addEventListener("click", () => room.zoom(1.3));
  byId("zoom-out").addEventListener("click", () => room.zoom(1 / 1.3));
  byId("fit").addEventListener("click", () => room.fit());
  byId("add-device").addEventListener("click", () => room.setAdding(!room.adding));
  byId("remove-device").addEventListener("click", () => {
    if (store.marked !== null) room.removeDevice(store.marked);
  });
  const refresh = () => {
    byId("undo").disabled = store.past.length === 0;
    byId("redo").disabled = store.future.length === 0;
    byId("remove-device").disabled = store.marked === null || store.answer?.room.devices_move === false;
    byId("add-device").disabled = store.answer?.room.devices_move === false;
  };
  for (const topic of /** @type {const} */ (["state", "answer", "marked"])) store.subscribe(topic, refresh);
  refresh();
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    if (event.target instanceof HTMLInputElement && ["number", "text"].includes(event.target.type)) return; // undo typing
    event.preventDefault();
    if (event.shiftKey) store.redo();
    else store.undo();
  });
}

/** @param {RoomView} room @param {CutView} cut */
function listenToMap(room, cut) {
  const box = byId("map-on");
  const apply = () => {
    room.map.switch(box.checked);
    cut.map.switch(box.checked && cut.open);
  };
  box.addEventListener("change", apply);
  byId("cut-on").addEventListener("change", () => cut.show(byId("cut-on").checked));
  room.map.onRange = (low, high) => {
    byId("map-range").hidden = low === null;
    byId("map-low").textContent = low === null ? "" : `${fixed(low, 0)} dB`;
    byId("map-high").textContent = high === null ? "" : `${fixed(high, 0)} dB`;
  };
}

async function start() {
  listenToTheme();
  listenToTabs();
  let damaged = "";
  const linked = await linkedState().catch((error) => {
    damaged = error.message;
    return null;
  });
  addEventListener("hashchange", () => void openLink());
  if (location.search !== "") history.replaceState(null, "", location.pathname + location.hash); // hide the token
  byId("busy").textContent = "Starting; the first start compiles for a minute…";
  store.connection.watchers.add((open) => {
    byId("lost").hidden = open;
  });
  const room = new RoomView(byId("room"), byId("tip"));
  const cut = new CutView(byId("cut"), room);
  new ScoresView(byId("scores"));
  for (const topic of /** @type {const} */ (["answer", "turn"])) store.subscribe(topic, showSummary);
  store.subscribe("answer", announce);
  store.subscribe("error", showError);
  store.subscribe("compare", () => {
    for (const part of document.querySelectorAll(".comparing")) part.toggleAttribute("hidden", store.compare === null);
  });
  store.subscribe("answer", () => (byId("busy").textContent = ""));
  await store.start(linked);
  if (damaged !== "") store.fail(damaged);
  byId("opened").textContent = store.hello.title;
  byId("version").textContent = store.hello.version;
  listenToHeader(room);
  listenToMap(room, cut);
  new SetupPanel(byId("panel-setup"), room);
  const designs = new DesignPanel(byId("panel-design"));
  new EvaluatePanel(byId("panel-evaluate"));
  new LearningPanel(byId("panel-learn"));
  exportPanel = new ExportPanel(byId("panel-export"));
  byId("tab-study").hidden = !store.hello.study;
  if (store.hello.study) new StudyPanel(byId("panel-study"), showTab, designs);
  showTab(store.hello.study ? "study" : store.hello.book ? "evaluate" : "setup");
}

/** Show the state of a link that was pasted into the address. */
async function openLink() {
  try {
    const state = await linkedState();
    if (state !== null) store.change(state);
  } catch (error) {
    store.fail(error instanceof Error ? error.message : String(error));
  }
}

/** After the connection was lost, try again every second; the state of the page is kept. */
function reconnect() {
  const timer = setInterval(async () => {
    try {
      await store.connection.open();
      clearInterval(timer);
      store.live.put(store.state);
    } catch {
      // still away
    }
  }, 1000);
}

store.connection.onLost = reconnect;
start().catch((error) => {
  byId("busy").textContent = "";
  byId("lost").hidden = false;
  byId("lost").textContent = `The page could not start: ${error instanceof Error ? error.message : error}`;
});
