// Curves and bars, drawn into elements that the document has.

const SVG = "http://www.w3.org/2000/svg";

// A curve of [{ second, value }] over the last `span` seconds, from zero to its own peak, which is given back.
export function drawCurve(svg, points, span, describe) {
  const { width, height } = svg.viewBox.baseVal;
  const peak = Math.max(...points.map(({ value }) => value), 0);
  const top = peak > 0 ? peak : 1;
  const at = ({ second, value }) => {
    const x = width - (Math.min(second, span) / span) * width;
    return `${x.toFixed(1)},${(height - 2 - (value / top) * (height - 6)).toFixed(1)}`;
  };
  const line = points.map(at);
  const shapes = [];
  if (line.length > 1) {
    const first = line[0].split(",")[0];
    shapes.push(shape("path", { class: "under", d: `M${first},${height} L${line.join(" L")} L${width},${height} Z` }));
    shapes.push(shape("path", { class: "line", d: `M${line.join(" L")}` }));
  }
  shapes.push(shape("path", { class: "floor", d: `M0,${height - 0.5} L${width},${height - 0.5}` }));
  svg.replaceChildren(...shapes);
  svg.setAttribute("aria-label", describe(peak));
  return peak;
}

// Three bars laid over each other, from zero to each percentile, on a scale that ends at `most`.
export function drawRange(svg, percentiles, most) {
  const ends = percentiles ? [percentiles.p99, percentiles.p90, percentiles.p50] : [];
  svg.replaceChildren(
    ...ends.map((end, index) => {
      const width = most > 0 ? (end / most) * 100 : 0;
      return shape("rect", { class: `part-${index}`, x: 0, y: index, width: width.toFixed(2), height: 10 - 2 * index });
    }),
  );
}

// Columns for bars as from figures.js; each has a text that describes it.
export function drawColumns(list, bars) {
  const most = Math.max(...bars.map(({ part }) => part), 0);
  fill(list, bars, ["i", "span", "b"], (item, { label, count, part }) => {
    const [column, description, name] = item.children;
    column.style.height = `${most > 0 ? Math.max((part / most) * 100, 2) : 0}%`;
    write(description, `${label} rows: ${count} times, ${(part * 100).toFixed(0)} %`);
    write(name, label);
    name.setAttribute("aria-hidden", "true");
    item.title = description.textContent;
  });
}

// One row per class, with its probability as bar and text; the most probable one is marked.
export function drawClasses(list, values) {
  const best = values.indexOf(Math.max(...values));
  fill(list, values, ["b", "i", "span"], (item, value, index) => {
    const [name, bar, part] = item.children;
    item.classList.toggle("best", index === best);
    write(name, `${index}`);
    bar.style.setProperty("--part", `${(value * 100).toFixed(1)}%`);
    write(part, `${(value * 100).toFixed(value >= 0.1 ? 0 : 1)} %`);
  });
}

// A list's items brought to those of `data`, made of the named elements; items that are there are used again, so that
// what is selected or spoken is not torn away each second.
export function fill(list, data, parts, show) {
  while (list.children.length > data.length) list.lastElementChild.remove();
  while (list.children.length < data.length) {
    const item = document.createElement(list.tagName === "TBODY" ? "tr" : "li");
    item.append(...parts.map((name) => document.createElement(name)));
    list.append(item);
  }
  data.forEach((value, index) => show(list.children[index], value, index));
}

// Text is written only where it is another: a screen reader speaks what changes.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
