// What the reports say, in figures for people. Pure functions: no document, no clock.

// Seconds of reports that are kept: what the curves show.
export const KEPT = 60;

// The reports that are still needed once `report` has come. A server that was started again starts a new history.
export function remembered(history, report) {
  const now = report.server.uptime_s;
  const last = history.at(-1);
  if (last && last.server.uptime_s >= now) return [report];
  return [...history.filter((kept) => kept.server.uptime_s >= now - KEPT - 1), report];
}

// What a model is called where several versions of it may be there.
export function keyOf(model) {
  return `${model.name}/${model.version}`;
}

export function modelOf(report, key) {
  return report.models.find((model) => keyOf(model) === key);
}

// A total's growth each second between one report and the next: [{ second, value }], seconds before the last report
// counted downwards to zero.
export function rates(history, key, count) {
  const now = history.at(-1)?.server.uptime_s;
  return history.slice(1).flatMap((report, index) => {
    const before = history[index];
    const [from, to] = [modelOf(before, key), modelOf(report, key)];
    const time = report.server.uptime_s - before.server.uptime_s;
    if (!from || !to || time <= 0) return [];
    // A model that was loaded again counts from zero.
    const grown = Math.max(to.totals[count] - from.totals[count], 0);
    return [{ second: now - report.server.uptime_s, value: grown / time }];
  });
}

// How often each size of batch ran while the page was watching, or since the model was loaded if none ran meanwhile.
export function batchSizes(history, key) {
  const now = history.length > 0 ? modelOf(history.at(-1), key) : undefined;
  if (!now) return { sizes: [], live: false };
  const before = modelOf(history[0], key)?.batch_sizes ?? [];
  const known = new Map(before.map(({ rows, count }) => [rows, count]));
  const recent = now.batch_sizes
    .map(({ rows, count }) => ({ rows, count: count - (known.get(rows) ?? 0) }))
    .filter(({ count }) => count > 0);
  return recent.length > 0 ? { sizes: recent, live: true } : { sizes: now.batch_sizes, live: false };
}

// At most `most` bars: neighboring sizes are put together where there are more. Counts become parts of the whole.
export function bars(sizes, most) {
  const sorted = [...sizes].sort((one, other) => one.rows - other.rows);
  const all = sorted.reduce((sum, { count }) => sum + count, 0);
  const together = Math.max(Math.ceil(sorted.length / most), 1);
  const made = [];
  for (let at = 0; at < sorted.length; at += together) {
    const group = sorted.slice(at, at + together);
    const [first, last] = [group[0].rows, group.at(-1).rows];
    const count = group.reduce((sum, size) => sum + size.count, 0);
    made.push({ label: first === last ? `${first}` : `${first}–${last}`, count, part: count / all });
  }
  return made;
}

export function meanRows(sizes) {
  const count = sizes.reduce((sum, size) => sum + size.count, 0);
  return count === 0 ? null : sizes.reduce((sum, size) => sum + size.rows * size.count, 0) / count;
}

// Three significant digits at most, thousands apart: 0.042, 7.3, 1,204.
export function number(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(value >= 10 ? 3 : 2)).toLocaleString("en", { maximumFractionDigits: 6 });
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 1000) return `${number(value / 1000)} s`;
  return value < 0.1 ? `${number(value * 1000)} µs` : `${number(value)} ms`;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = value < 1 ? 0 : Math.min(Math.floor(Math.log2(value) / 10), units.length - 1);
  return `${number(value / 1024 ** step)} ${units[step]}`;
}

// The two largest units: 3 d 4 h, 12 min 5 s.
export function duration(seconds) {
  const whole = Math.floor(seconds);
  const parts = [
    [Math.floor(whole / 86400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const found = parts.findIndex(([count]) => count > 0);
  const first = found < 0 ? parts.length - 1 : found;
  return parts.slice(first, first + 2).map(([count, unit]) => `${count} ${unit}`).join(" ");
}
