// Trying a model: the JSON form, image files and the drawing pad, all through POST /predict/{model}/{version}.

import { drawClasses, write } from "./charts.js";
import { rasterised, scaled } from "./drawing.js";
import { milliseconds } from "./figures.js";
import { makePad, paintPixels } from "./pad.js";
import { drawable, exampleBody, likelihoods, nested, written } from "./signature.js";

// Longest answer that is shown whole.
const SHOWN = 20_000;

const element = (id) => document.getElementById(id);

// Sets up both forms once. The function it gives back is called with the model that is chosen, whenever a report comes.
export function makeAttempts(ask) {
  let model = null;
  let pad = null;
  // Whether the text is ours to replace.
  let untouched = true;

  const body = element("body");
  const showExample = () => {
    const example = exampleBody(model);
    body.value = example ? written(example, pad?.side ?? 16) : "";
    body.placeholder = example ? "" : "a row of this model is too large for a form";
    untouched = true;
  };

  const draw = makeDrawing(ask, () => ({ model, pad }), (sent) => {
    if (untouched) body.value = written(sent, pad.side);
  });
  body.addEventListener("input", () => {
    untouched = false;
  });
  body.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element("request-form").requestSubmit();
  });
  element("example").addEventListener("click", showExample);
  element("image").addEventListener("change", (event) => {
    const [file] = event.target.files;
    // The answer is shown below the form.
    element("json").open = true;
    if (file) sendForm(ask, model, file, file.type);
  });
  element("request-form").addEventListener("submit", (event) => {
    event.preventDefault();
    sendForm(ask, model, body.value);
  });

  return (chosen) => {
    element("try").hidden = !chosen || chosen.inputs.length === 0;
    const same = JSON.stringify(signatureOf(chosen)) === JSON.stringify(signatureOf(model));
    model = chosen;
    if (same || !chosen) return;
    pad = drawable(chosen);
    write(element("try-name"), chosen.name);
    write(element("route"), `POST ${routeOf(chosen)}`);
    element("draw").hidden = pad === null;
    element("upload").hidden = !chosen.takes_images;
    element("json").open = pad === null;
    write(element("outcome"), "");
    element("answer").hidden = true;
    showExample();
    draw.clear();
  };
}

function signatureOf(model) {
  return model && [model.name, model.version, model.inputs, model.outputs, model.try_range];
}

function routeOf(model) {
  return `/predict/${encodeURIComponent(model.name)}/${encodeURIComponent(model.version)}`;
}

// One request: { ok, status, text, time } with the time in milliseconds. Never throws.
async function send(ask, model, body, type = "application/json") {
  const start = performance.now();
  try {
    const response = await ask(routeOf(model), {
      method: "POST",
      headers: { "Content-Type": type },
      body,
    });
    const text = await response.text();
    const status = `${response.status} ${response.statusText}`.trim();
    return { ok: response.ok, status, text, time: performance.now() - start };
  } catch (error) {
    return { ok: false, status: "no answer", text: `${error.message}`, time: performance.now() - start };
  }
}

async function sendForm(ask, model, body, type) {
  const outcome = element("outcome");
  write(outcome, "sent …");
  const { ok, status, text, time } = await send(ask, model, body, type);
  outcome.dataset.ok = ok;
  write(outcome, `${status} · ${milliseconds(time)}`);
  element("answer").hidden = false;
  const more = text.length - SHOWN;
  write(element("answer"), more > 0 ? `${text.slice(0, SHOWN)}\n… ${more} characters more` : text);
}

// The drawing pad's life: one request is on its way at most; what was drawn meanwhile goes with the next.
function makeDrawing(ask, chosen, sent) {
  let strokes = [];
  let busy = false;
  let waiting = false;

  let dark = [];

  function showSeen() {
    const { pad } = chosen();
    if (pad) paintPixels(element("seen"), dark, pad.side);
  }

  async function predict() {
    const { model, pad } = chosen();
    if (!pad) return;
    dark = rasterised(strokes, pad.side);
    showSeen();
    if (strokes.length === 0) return showNothing(pad);
    if (busy) {
      waiting = true;
      return;
    }
    busy = true;
    const body = { input: nested(scaled(dark, pad.range, pad.whole), pad.shape) };
    const answer = await send(ask, model, JSON.stringify(body));
    busy = false;
    sent(body);
    // The pad may have been cleared, or another model chosen, while the answer was on its way.
    if (strokes.length > 0 && chosen().pad === pad) showAnswer(answer, pad);
    if (waiting) {
      waiting = false;
      predict();
    }
  }

  const drawn = (changed) => {
    strokes = changed;
    predict();
  };
  return makePad(element("pad"), element("clear"), drawn, showSeen);
}

function showNothing(pad) {
  write(element("guess"), "Draw something.");
  write(element("draw-time"), "");
  drawClasses(element("classes"), new Array(pad.classes).fill(0));
  element("classes").classList.add("empty");
}

function showAnswer({ ok, status, text, time }, pad) {
  const values = ok ? valuesOf(text, pad) : null;
  if (values === null) {
    write(element("guess"), ok ? "The answer has no classes." : `${status}: ${text.slice(0, 200)}`);
    return;
  }
  const parts = likelihoods(values);
  const best = parts.indexOf(Math.max(...parts));
  write(element("guess"), `It is ${best}, ${(parts[best] * 100).toFixed(0)} % sure.`);
  write(element("draw-time"), `answered in ${milliseconds(time)}`);
  element("classes").classList.remove("empty");
  drawClasses(element("classes"), parts);
}

// The classes' numbers out of an answer; null if they are not there.
function valuesOf(text, pad) {
  try {
    const { prediction } = JSON.parse(text);
    const values = Array.isArray(prediction) ? prediction : prediction[pad.output];
    const flat = values.flat(Infinity);
    return flat.length === pad.classes && flat.every(Number.isFinite) ? flat : null;
  } catch {
    return null;
  }
}
