// What a model's signature determines: what to send it, and whether the drawing pad can be used. Pure functions.

const FLOATS = ["FP16", "BF16", "FP32", "FP64"];

// Flat rows that are known to be pictures: 8x8 and 28x28. A row of 256 numbers is more often not one; a model that
// takes such pictures says so by `range` of `[serve.try]`.
const FLAT_PICTURES = [64, 784];

// Sides that a drawing makes sense for.
const [SMALLEST, LARGEST] = [6, 64];

// The dimensions of one row, with -1 where any size is taken.
export function rowShape(spec, batched) {
  return batched ? spec.shape.slice(1) : spec.shape;
}

// What the drawing pad needs to know, or null if a drawing is nothing for this model. It is something for a model
// with one input, whose row is a small square picture of one channel, and an output with a number for each of a few
// classes.
export function drawable(model) {
  if (model.inputs.length !== 1) return null;
  const [input] = model.inputs;
  const shape = rowShape(input, model.batched);
  const side = sideOf(shape, model.try_range !== null);
  if (side === null || input.dtype === "BYTES" || input.dtype === "BOOL") return null;
  const output = model.outputs.find((spec) => classesOf(rowShape(spec, model.batched), spec.dtype) !== null);
  if (!output) return null;
  const whole = !FLOATS.includes(input.dtype);
  return {
    side,
    shape,
    whole,
    range: model.try_range ?? (whole ? [0, input.dtype === "INT8" ? 127 : 255] : [0, 1]),
    output: output.name,
    classes: classesOf(rowShape(output, model.batched), output.dtype),
  };
}

function sideOf(shape, declared) {
  const real = shape.filter((size) => size !== 1);
  const allowed = (side) => (side >= SMALLEST && side <= LARGEST ? side : null);
  if (real.length === 2 && real[0] === real[1]) return allowed(real[0]);
  if (real.length === 1 && (declared || FLAT_PICTURES.includes(real[0]))) {
    const side = Math.round(Math.sqrt(real[0]));
    return side * side === real[0] ? allowed(side) : null;
  }
  return null;
}

function classesOf(shape, dtype) {
  const real = shape.filter((size) => size !== 1);
  return FLOATS.includes(dtype) && real.length === 1 && real[0] >= 2 && real[0] <= 100 ? real[0] : null;
}

// Flat values in the shape of a row.
export function nested(values, shape) {
  if (shape.length <= 1) return values;
  const step = values.length / shape[0];
  return Array.from({ length: shape[0] }, (_, at) => nested(values.slice(at * step, (at + 1) * step), shape.slice(1)));
}

// The body of a request with one row: distinct numbers, words for strings, a small size for dynamic dimensions. Null if
// the row is too large to be written into a form.
export function exampleBody(model, most = 20_000) {
  const row = (spec) => {
    const shape = rowShape(spec, model.batched).map((size) => (size < 0 ? 2 : size));
    const count = shape.reduce((product, size) => product * size, 1);
    if (count > most) return null;
    const values = Array.from({ length: count }, (_, at) => exampleValue(spec.dtype, at, model.try_range));
    return shape.length === 0 ? values[0] : nested(values, shape);
  };
  const rows = model.inputs.map((spec) => [spec.name, row(spec)]);
  if (rows.length === 0 || rows.some(([, value]) => value === null)) return null;
  return { input: rows.length === 1 ? rows[0][1] : Object.fromEntries(rows) };
}

function exampleValue(dtype, at, range) {
  if (dtype === "BYTES") return ["one", "two", "three"][at % 3];
  if (dtype === "BOOL") return at % 2 === 0;
  const [low, high] = range ?? (FLOATS.includes(dtype) ? [0, 1] : [0, 9]);
  const value = low + (((at * 7) % 10) / 9) * (high - low);
  return FLOATS.includes(dtype) ? Number(value.toPrecision(3)) : Math.round(value);
}

// JSON with a line for each innermost array, broken after every `flatEvery` items if that is given: a picture then
// looks like one.
export function written(value, flatEvery = 0, indent = "") {
  if (Array.isArray(value)) {
    if (!value.some((item) => typeof item === "object")) {
      const every = flatEvery || value.length || 1;
      const lines = [];
      for (let at = 0; at < value.length; at += every) {
        lines.push(value.slice(at, at + every).map((item) => JSON.stringify(item)).join(", "));
      }
      return `[${lines.join(`,\n ${indent}`)}]`;
    }
    return `[${value.map((item) => written(item, flatEvery, `${indent} `)).join(`,\n ${indent}`)}]`;
  }
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).map(([key, item]) => {
      const name = `${JSON.stringify(key)}: `;
      return name + written(item, flatEvery, indent + " ".repeat(name.length + 1));
    });
    return `{${members.join(`,\n ${indent}`)}}`;
  }
  return JSON.stringify(value);
}

// Scores as parts of a whole: as they are if the model has done so, by softmax if not.
export function likelihoods(values) {
  const sum = values.reduce((total, value) => total + value, 0);
  if (values.every((value) => value >= 0) && Math.abs(sum - 1) < 0.02) return values;
  const largest = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - largest));
  const whole = powers.reduce((total, value) => total + value, 0);
  return powers.map((value) => value / whole);
}
