// Asks for the report each second and shows it.

import { makeAttempts } from "./attempt.js";
import { drawColumns, drawCurve, drawRange, fill, write } from "./charts.js";
import {
  KEPT,
  bars,
  batchSizes,
  bytes,
  duration,
  keyOf,
  meanRows,
  milliseconds,
  modelOf,
  number,
  rates,
  remembered,
} from "./figures.js";

const EVERY = 1000;
const PATIENCE = 5000;
const COLUMNS = 16;

const element = (id) => document.getElementById(id);

let history = [];
let chosenKey = null;
let key = sessionStorage.getItem("key");

// fetch with the API key, if there is one. An answer of 401 asks the reader for it.
async function ask(path, options = {}) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const response = await fetch(path, { cache: "no-store", ...options, headers });
  if (response.status === 401) element("key-form").hidden = false;
  return response;
}

element("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = element("key").value;
  sessionStorage.setItem("key", key);
  element("key-form").hidden = true;
  refresh();
});

const showAttempt = makeAttempts(ask);

async function refresh() {
  try {
    const response = await ask("/status", { signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok) return showSilence(`the server answers ${response.status}`);
    history = remembered(history, await response.json());
    showReport();
  } catch {
    showSilence("no answer from the server");
  }
}

function showSilence(message) {
  element("state").dataset.state = "silent";
  write(element("state-word"), message);
  document.body.classList.add("stale");
}

function showReport() {
  const report = history.at(-1);
  document.body.classList.remove("stale");
  showServer(report.server);
  if (!modelOf(report, chosenKey)) {
    const first = report.models.find(({ state }) => state === "ready") ?? report.models[0];
    chosenKey = first ? keyOf(first) : null;
  }
  showModels(report.models);
  const model = modelOf(report, chosenKey);
  element("figures").hidden = !model;
  if (model) {
    showRates("requests");
    showRates("rows");
    showQueue(model);
    showLatency(model.latency_ms);
    showBatches(model);
  }
  showDevices(report.devices);
  showAttempt(model);
}

function showServer({ version, uptime_s, state, reason }) {
  element("state").dataset.state = state;
  write(element("state-word"), state);
  write(element("about"), `version ${version} · up ${duration(uptime_s)}`);
  element("reason").hidden = !reason;
  write(element("reason"), reason ?? "");
}

function showModels(models) {
  element("no-models").hidden = models.length > 0;
  element("models").hidden = models.length === 0;
  const cells = ["th", "td", "td", "td", "td", "td", "td"];
  fill(element("models").tBodies[0], models, cells, (row, model) => {
    const [name, ...others] = row.children;
    name.scope = "row";
    let button = name.firstElementChild;
    if (!button) {
      button = document.createElement("button");
      button.type = "button";
      button.addEventListener("click", () => {
        chosenKey = button.dataset.key;
        showReport();
      });
      name.append(button);
    }
    button.dataset.key = keyOf(model);
    button.setAttribute("aria-pressed", String(keyOf(model) === chosenKey));
    write(button, model.name);
    const tensors = (specs) => specs.map(tensorWords).join(", ");
    const lessThanAsked = model.state === "ready" && model.degraded;
    row.dataset.state = lessThanAsked ? "degraded" : model.state;
    const state = lessThanAsked ? "ready, degraded" : model.state;
    const texts = [model.version, state, model.device, model.provider, tensors(model.inputs), tensors(model.outputs)];
    texts.forEach((text, index) => write(others[index], text || "–"));
  });
  const chosen = models.find((model) => keyOf(model) === chosenKey);
  element("model-reason").hidden = !chosen?.degraded;
  write(element("model-reason"), chosen?.degraded ? `${chosen.name}: ${chosen.degraded}` : "");
}

function tensorWords({ name, dtype, shape }) {
  return `${name} ${dtype}[${shape.map((size) => (size < 0 ? "·" : size)).join(", ")}]`;
}

function showRates(count) {
  const points = rates(history, chosenKey, count);
  const latest = points.at(-1)?.value;
  write(element(count), number(latest));
  const peak = drawCurve(element(`${count}-curve`), points, KEPT, (most) =>
    `${count} each second over the last minute: ${number(latest)} now, ${number(most)} at most`,
  );
  write(element(`${count}-peak`), peak > 0 ? `peak ${number(peak)}` : "");
}

function showQueue({ queue, totals }) {
  write(element("queue-rows"), number(queue.rows));
  write(element("queue-requests"), `rows in ${number(queue.requests)} requests`);
  for (const cell of element("totals").querySelectorAll("[data-total]")) {
    const count = totals[cell.dataset.total];
    write(cell, count.toLocaleString("en"));
    cell.classList.toggle("alarm", count > 0 && ["refused", "failed"].includes(cell.dataset.total));
  }
}

function showLatency(latency) {
  const most = Math.max(...Object.values(latency).map((stage) => stage?.p99 ?? 0));
  for (const row of element("latency").tBodies[0].rows) {
    const stage = latency[row.dataset.stage];
    const cells = row.querySelectorAll("td");
    ["p50", "p90", "p99"].forEach((name, index) => write(cells[index], milliseconds(stage?.[name])));
    drawRange(row.querySelector("svg"), stage, most);
  }
}

function showBatches(model) {
  const { sizes, live } = batchSizes(history, chosenKey);
  write(element("batches-span"), sizes.length === 0 ? "" : live ? "last minute" : "since it was loaded");
  write(element("batches-mean"), number(meanRows(sizes)));
  write(element("batches-most"), `on average, ${model.max_batch} at most`);
  drawColumns(element("batches"), bars(sizes, COLUMNS));
}

function showDevices(devices) {
  fill(element("devices"), devices, ["b", "div", "div"], (item, device) => {
    const [name, memory, work] = item.children;
    write(name, device.name);
    const known = device.memory_used !== null && device.memory_total > 0;
    const usage = known ? `${bytes(device.memory_used)} of ${bytes(device.memory_total)}` : "not known";
    showMeter(memory, "memory", usage, known ? device.memory_used / device.memory_total : null);
    const busy = device.utilization;
    showMeter(work, "busy", busy === null ? "not known" : `${(busy * 100).toFixed(0)} %`, busy);
  });
}

function showMeter(container, title, text, part) {
  if (container.children.length === 0) container.append(...["span", "i", "span"].map((name) => document.createElement(name)));
  const [label, bar, value] = container.children;
  write(label, title);
  write(value, text);
  bar.classList.toggle("unknown", part === null);
  bar.style.setProperty("--part", `${Math.min(Math.max(part ?? 0, 0), 1) * 100}%`);
}

async function watch() {
  if (!document.hidden) await refresh();
  setTimeout(watch, EVERY);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
watch();
