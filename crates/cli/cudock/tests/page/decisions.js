// Tables for the page's pure functions, run in the page itself. Gives the cases that came out otherwise.
(async () => {
  const { drawable, exampleBody, likelihoods, nested, written } = await import("/assets/signature.js");
  const { rasterised, scaled } = await import("/assets/drawing.js");
  const { bars, batchSizes, bytes, duration, meanRows, milliseconds, number, rates, remembered } = await import(
    "/assets/figures.js"
  );
  const failures = [];
  const same = (what, got, wanted) => {
    if (JSON.stringify(got) !== JSON.stringify(wanted)) {
      failures.push(`${what}: ${JSON.stringify(got)} where ${JSON.stringify(wanted)} was expected`);
    }
  };

  const spec = (dtype, ...shape) => ({ name: "x", dtype, shape });
  const model = (input, output, try_range = null, batched = true) => ({
    name: "m", version: "1", batched, inputs: [input], outputs: [output], try_range,
  });
  const ten = spec("FP32", -1, 10);
  const side = (taken) => drawable(taken)?.side ?? null;
  same("64 numbers are 8x8", side(model(spec("FP32", -1, 64), ten)), 8);
  same("784 numbers are 28x28", side(model(spec("FP32", -1, 784), ten)), 28);
  same("a channel", side(model(spec("FP32", -1, 1, 28, 28), ten)), 28);
  same("channels last", side(model(spec("UINT8", -1, 28, 28, 1), ten)), 28);
  same("no channel", side(model(spec("FP32", -1, 28, 28), ten)), 28);
  same("one picture without rows", side(model(spec("FP32", 28, 28), spec("FP32", 10), null, false)), 28);
  same("256 numbers are anything", side(model(spec("FP32", -1, 256), ten)), null);
  same("256 numbers that are said to be ink", side(model(spec("FP32", -1, 256), ten, [0, 1])), 16);
  same("512 numbers are no square", side(model(spec("FP32", -1, 512), ten, [0, 1])), null);
  same("color", side(model(spec("FP32", -1, 3, 32, 32), ten)), null);
  same("a large picture", side(model(spec("FP32", -1, 1, 224, 224), ten)), null);
  same("any size", side(model(spec("FP32", -1, 1, -1, -1), ten)), null);
  same("text", side(model(spec("BYTES", -1, 64), ten)), null);
  same("no classes", side(model(spec("FP32", -1, 64), spec("FP32", -1, 28, 28))), null);
  same("many classes", side(model(spec("FP32", -1, 64), spec("FP32", -1, 1000))), null);
  same("two inputs", drawable({ ...model(ten, ten), inputs: [ten, ten] }), null);
  same("bytes go to 255", drawable(model(spec("UINT8", -1, 28, 28), ten)).range, [0, 255]);
  same("a range that is given", drawable(model(spec("FP32", -1, 64), ten, [0, 16])).range, [0, 16]);

  same("nested", nested([1, 2, 3, 4, 5, 6], [1, 2, 3]), [[[1, 2, 3], [4, 5, 6]]]);
  same("an example of one row", exampleBody(model(spec("FP32", -1, 3), ten)), { input: [0, 0.778, 0.444] });
  same("an example of words", exampleBody(model(spec("BYTES", -1, 2), ten)), { input: ["one", "two"] });
  same("an example of any size", exampleBody(model(spec("INT64", -1, -1), ten)), { input: [0, 7] });
  same("an example too large", exampleBody(model(spec("FP32", -1, 3, 224, 224), ten)), null);
  for (const value of [{ input: [[1, 2], [3, 4]] }, { input: { a: ["x, y", "z"], b: [[[1]], [[2]]] } }, [], 3]) {
    same("written is read back", JSON.parse(written(value, 2)), value);
  }
  same("likelihoods stay", likelihoods([0.25, 0.75]), [0.25, 0.75]);
  same("scores become likelihoods", likelihoods([1000, 1000]), [0.5, 0.5]);

  same("nothing drawn is paper", scaled(rasterised([], 8), [0, 16], false), new Array(64).fill(0));
  const line = scaled(rasterised([[[3, 1], [3, 9]]], 8), [0, 16], false);
  same("a line stands in the middle", line.slice(24, 32), [0, 0, 0, 12, 12, 0, 0, 0]);
  const smaller = rasterised([[[0.3, 0.1], [0.3, 0.2]]], 8);
  same("size and place do not count", scaled(smaller, [0, 16], false), line);
  const dot = rasterised([[[5, 5]]], 28);
  same("a dot is a dot", dot.filter((part) => part > 0).length < 16 && dot[14 * 28 + 14] === 1, true);
  same("white ink", scaled([0, 0.5, 1], [255, 0], true), [255, 128, 0]);

  const report = (uptime_s, requests, batch_sizes) => ({
    server: { uptime_s },
    models: [{ name: "m", version: "1", totals: { requests }, batch_sizes }],
  });
  const [first, second] = [report(1, 10, [{ rows: 1, count: 9 }]), report(3, 30, [{ rows: 1, count: 9 }, { rows: 4, count: 5 }])];
  same("a rate", rates([first, second], "m/1", "requests"), [{ second: 0, value: 10 }]);
  same("a rate of a model loaded again", rates([second, report(4, 1, [])], "m/1", "requests"), [{ second: 0, value: 0 }]);
  same("batches meanwhile", batchSizes([first, second], "m/1"), { sizes: [{ rows: 4, count: 5 }], live: true });
  same("batches before", batchSizes([second, second], "m/1").live, false);
  same("a server started again", remembered([first, second], report(0.5, 0, [])).length, 1);
  same("what is old goes", remembered([first, second], report(63, 40, [])).length, 2);
  same("bars together", bars([1, 2, 3].map((rows) => ({ rows, count: 1 })), 2).map(({ label }) => label), ["1–2", "3"]);
  same("mean", meanRows([{ rows: 1, count: 1 }, { rows: 4, count: 2 }]), 3);

  same("numbers", [0, 0.04213, 7.31, 12.34, 1204.4, null].map(number), ["0", "0.042", "7.3", "12.3", "1,204", "–"]);
  same("times", [0.0421, 0.5, 12.34, 1500].map(milliseconds), ["42.1 µs", "0.5 ms", "12.3 ms", "1.5 s"]);
  same("sizes", [0, 1023, 1024, 3 * 2 ** 30].map(bytes), ["0 B", "1,023 B", "1 KiB", "3 GiB"]);
  same("durations", [0, 59, 61, 3600, 90061].map(duration), ["0 s", "59 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]);
  return failures;
})()
