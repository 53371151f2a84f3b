// From strokes of a pen to the pixels a model takes. Pure functions: no document, no canvas.
//
// A stroke is a list of points [x, y] in any unit, y downwards. Data sets of digits do not hold drawings as they were
// made: each was cut out, brought to one size and centered. So is what people draw here, or a model would not know it.

// Points counted along each edge of a pixel: sixteen in a pixel, as the 8x8 data set of the example was made.
const FINE = 4;

// How a drawing sits in a picture of that many pixels a side. Pictures of 8x8 are filled from edge to edge; larger
// ones follow MNIST: 20 of 28 pixels, by the center of the ink.
export function frameOf(side) {
  return side <= 16
    ? { box: side, pen: side * 0.17, center: "box" }
    : { box: (side * 20) / 28, pen: side * 0.095, center: "ink" };
}

// The strokes brought to the size of the picture, in pixels, centered; `frame` as from frameOf.
export function fitted(strokes, side, frame) {
  const points = strokes.flat();
  if (points.length === 0) return [];
  const [left, top] = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])));
  const [right, bottom] = [0, 1].map((axis) => Math.max(...points.map((point) => point[axis])));
  const room = Math.max(frame.box - frame.pen, 1);
  const extent = Math.max(right - left, bottom - top);
  // A dot has no size to bring to another.
  const scale = extent > 0 ? room / extent : 0;
  const toPixels = ([x, y]) => [
    side / 2 + (x - (left + right) / 2) * scale,
    side / 2 + (y - (top + bottom) / 2) * scale,
  ];
  return strokes.map((stroke) => stroke.map(toPixels));
}

// How dark each pixel is, 0 to 1, row by row.
export function rasterised(strokes, side, frame = frameOf(side)) {
  const placed = fitted(strokes, side, frame);
  const dark = inked(placed, side, frame.pen / 2);
  if (frame.center !== "ink" || placed.length === 0) return dark;
  const [x, y] = centerOfInk(dark, side);
  const moved = placed.map((stroke) => stroke.map((point) => [point[0] + side / 2 - x, point[1] + side / 2 - y]));
  return inked(moved, side, frame.pen / 2);
}

// The pixels in the range the model takes: paper is the first number, ink the second.
export function scaled(dark, [paper, ink], whole) {
  return dark.map((part) => {
    const value = paper + part * (ink - paper);
    return whole ? Math.round(value) : Number(value.toPrecision(6));
  });
}

function inked(strokes, side, radius) {
  const edge = side * FINE;
  const bitmap = new Uint8Array(edge * edge);
  for (const stroke of strokes) {
    stroke.forEach((to, index) => mark(bitmap, edge, stroke[Math.max(index - 1, 0)], to, radius));
  }
  const dark = new Array(side * side).fill(0);
  bitmap.forEach((set, at) => {
    const row = Math.floor(at / edge / FINE);
    const column = Math.floor((at % edge) / FINE);
    dark[row * side + column] += set / (FINE * FINE);
  });
  return dark;
}

// Sets the points of the bitmap that are within the pen's radius of a line.
function mark(bitmap, edge, from, to, radius) {
  const reach = radius * FINE;
  const [ax, ay, bx, by] = [from[0], from[1], to[0], to[1]].map((value) => value * FINE);
  const first = (value) => Math.max(Math.floor(value - reach), 0);
  const last = (value) => Math.min(Math.ceil(value + reach), edge - 1);
  for (let y = first(Math.min(ay, by)); y <= last(Math.max(ay, by)); y += 1) {
    for (let x = first(Math.min(ax, bx)); x <= last(Math.max(ax, bx)); x += 1) {
      if (distance(x + 0.5, y + 0.5, ax, ay, bx, by) <= reach) bitmap[y * edge + x] = 1;
    }
  }
}

function distance(x, y, ax, ay, bx, by) {
  const long = (bx - ax) ** 2 + (by - ay) ** 2;
  const along = long === 0 ? 0 : ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / long;
  const near = Math.min(Math.max(along, 0), 1);
  return Math.hypot(x - ax - near * (bx - ax), y - ay - near * (by - ay));
}

function centerOfInk(dark, side) {
  let [sum, x, y] = [0, 0, 0];
  dark.forEach((part, at) => {
    sum += part;
    x += part * ((at % side) + 0.5);
    y += part * (Math.floor(at / side) + 0.5);
  });
  return sum === 0 ? [side / 2, side / 2] : [x / sum, y / sum];
}
