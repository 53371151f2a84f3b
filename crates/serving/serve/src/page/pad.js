// The drawing pad: strokes by mouse, pen, finger or keys, shown on a canvas. Points go from 0 to 1 along each edge.

const STEP = 0.04;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Makes a pad of a canvas. `changed` is called with the strokes whenever they change, `repainted` when only their color
// or size on the screen did.
export function makePad(canvas, clearButton, changed, repainted) {
  let strokes = [];
  let drawing = null;
  // The pen of the keyboard: shown once a key was used.
  const pen = { position: [0.5, 0.5], down: false, shown: false };

  const notify = () => {
    paint(canvas, strokes, pen);
    changed(strokes);
  };
  const clear = () => {
    strokes = [];
    drawing = null;
    pen.down = false;
    notify();
  };

  const placeOf = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height].map(inside);
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (drawing !== null || event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    drawing = event.pointerId;
    pen.shown = false;
    pen.down = false;
    strokes.push([placeOf(event)]);
    notify();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerId !== drawing) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    strokes.at(-1).push(...(passed.length > 0 ? passed : [event]).map(placeOf));
    notify();
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => {
      if (event.pointerId === drawing) drawing = null;
    });
  }

  canvas.addEventListener("keydown", (event) => {
    const arrow = ARROWS[event.key];
    if (arrow) {
      const step = event.shiftKey ? STEP / 4 : STEP;
      pen.position = pen.position.map((value, axis) => inside(value + arrow[axis] * step));
      if (pen.down) strokes.at(-1).push(pen.position);
    } else if (event.key === " ") {
      pen.down = !pen.down;
      if (pen.down) strokes.push([pen.position]);
    } else if (["Delete", "Backspace"].includes(event.key)) {
      clear();
    } else {
      return;
    }
    event.preventDefault();
    pen.shown = true;
    notify();
  });
  canvas.addEventListener("blur", () => {
    pen.down = false;
    pen.shown = false;
    paint(canvas, strokes, pen);
  });
  clearButton.addEventListener("click", clear);
  const repaint = () => {
    paint(canvas, strokes, pen);
    repainted();
  };
  new ResizeObserver(repaint).observe(canvas);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  return { clear };
}

// The pixels as gray squares, ink as dark as it is.
export function paintPixels(canvas, dark, side) {
  const context = sized(canvas);
  const line = (fraction) => Math.round((fraction * canvas.width) / side);
  context.fillStyle = color(canvas);
  dark.forEach((part, at) => {
    const [column, row] = [at % side, Math.floor(at / side)];
    context.globalAlpha = part;
    context.fillRect(line(column), line(row), line(column + 1) - line(column), line(row + 1) - line(row));
  });
  context.globalAlpha = 1;
}

function paint(canvas, strokes, pen) {
  const context = sized(canvas);
  const edge = canvas.width;
  context.strokeStyle = color(canvas);
  context.fillStyle = color(canvas);
  context.lineWidth = edge * 0.07;
  context.lineCap = "round";
  context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    stroke.forEach(([x, y], index) => {
      if (index === 0) context.moveTo(x * edge, y * edge);
      context.lineTo(x * edge, y * edge);
    });
    context.stroke();
  }
  if (!pen.shown) return;
  context.beginPath();
  context.arc(pen.position[0] * edge, pen.position[1] * edge, edge * 0.035, 0, 2 * Math.PI);
  context.lineWidth = edge * 0.01;
  context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--accent");
  context.stroke();
}

// The canvas with as many points as the screen has for it, emptied.
function sized(canvas) {
  const edge = Math.max(Math.round(canvas.clientWidth * window.devicePixelRatio), 1);
  canvas.width = edge;
  canvas.height = edge;
  return canvas.getContext("2d");
}

const color = (canvas) => getComputedStyle(canvas).color;

const inside = (value) => Math.min(Math.max(value, 0), 1);
