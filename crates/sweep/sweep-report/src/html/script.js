"use strict";
// Highlights one trial in the table and in all charts, and sorts the table. Trials are classes t0, t1, … in charts.
const detail = document.getElementById("detail");
const rows = new Map([...document.querySelectorAll("tr[data-trial]")].map((row) => [row.dataset.trial, row]));
const charts = document.querySelectorAll("svg");
let kept = null;

function pick(trial) {
  for (const element of document.querySelectorAll(".on")) element.classList.remove("on");
  for (const chart of charts) chart.classList.toggle("picked", trial !== null);
  detail.textContent = trial === null ? "" : (rows.get(trial)?.dataset.detail ?? `trial ${trial}`);
  if (trial === null) return;
  rows.get(trial)?.classList.add("on");
  for (const element of document.querySelectorAll(`.trial.t${trial}`)) element.classList.add("on");
}

function keep(trial) {
  rows.get(kept)?.querySelector("button").setAttribute("aria-pressed", "false");
  kept = kept === trial ? null : trial;
  rows.get(kept)?.querySelector("button").setAttribute("aria-pressed", "true");
  pick(kept);
}

function trialOf(target) {
  const row = target.closest("tr[data-trial]");
  if (row) return row.dataset.trial;
  const drawn = target.closest(".trial");
  return drawn ? ([...drawn.classList].find((name) => /^t\d+$/.test(name))?.slice(1) ?? null) : null;
}

document.addEventListener("pointerover", (event) => pick(trialOf(event.target) ?? kept));
document.addEventListener("click", (event) => {
  const trial = trialOf(event.target);
  if (trial !== null && event.target.closest("button, .trial")) keep(trial);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && kept !== null) keep(kept);
});

const heads = [...document.querySelectorAll("th")];
heads.forEach((head, column) => {
  head.querySelector("button").addEventListener("click", () => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = document.querySelector("tbody");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [left, right] = [key(a), key(b)];
      // Empty cells are last in both directions.
      if (left === "" || right === "") return (left === "") - (right === "");
      const difference = Number(left) - Number(right);
      const order = Number.isNaN(difference) ? left.localeCompare(right) : difference;
      return descending ? -order : order;
    };
    body.append(...[...body.rows].sort(compare));
  });
});
