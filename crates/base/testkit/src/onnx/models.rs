//! Models for tests and benchmarks.

use cudock_tensor::DType;

use super::{Attribute, OnnxModel};

/// Deterministic weights, spread evenly around zero, so that sums over `inputs` of them stay around one.
fn weights(seed: u64, count: usize, inputs: u16) -> Vec<f32> {
    let scale = (3.0 / f32::from(inputs)).sqrt();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let sixteen = u16::try_from(state >> 48).unwrap_or(0);
        (f32::from(sixteen) / 32768.0 - 1.0) * scale
    };
    (0..count).map(|_| next()).collect()
}

/// Three layers, 512 to 1024 to 1024 to 10, with `Relu` between them: `input` `F32[rows, 512]`, `output` `F32[rows, 10]`.
pub fn mlp() -> Vec<u8> {
    let dense = |model: OnnxModel, number: u64, from: u16, to: u16| {
        let (weight, bias) = (format!("w{number}"), format!("b{number}"));
        let (from, to, inputs) = (usize::from(from), usize::from(to), from);
        let model = model.floats(&weight, &[from, to], &weights(number, from * to, inputs));
        model.floats(&bias, &[to], &weights(number + 100, to, inputs))
    };
    let model = OnnxModel::new("mlp").input("input", DType::F32, &[None, Some(512)]);
    let model = dense(dense(dense(model, 1, 512, 1024), 2, 1024, 1024), 3, 1024, 10);
    model
        .node("Gemm", &["input", "w1", "b1"], &["h1"], &[])
        .node("Relu", &["h1"], &["a1"], &[])
        .node("Gemm", &["a1", "w2", "b2"], &["h2"], &[])
        .node("Relu", &["h2"], &["a2"], &[])
        .node("Gemm", &["a2", "w3", "b3"], &["output"], &[])
        .output("output", DType::F32, &[None, Some(10)])
        .bytes()
}

/// One product with a 64×64 matrix, to measure overhead: `input` and `output` `F32[rows, 64]`.
pub fn tiny() -> Vec<u8> {
    OnnxModel::new("tiny")
        .input("input", DType::F32, &[None, Some(64)])
        .floats("w", &[64, 64], &weights(7, 64 * 64, 64))
        .node("MatMul", &["input", "w"], &["output"], &[])
        .output("output", DType::F32, &[None, Some(64)])
        .bytes()
}

/// A small convolutional net: `image` `F32[rows, 3, 32, 32]`, `scores` `F32[rows, 10]`.
pub fn conv() -> Vec<u8> {
    let same = || [Attribute::Ints("kernel_shape", vec![3, 3]), Attribute::Ints("pads", vec![1, 1, 1, 1])];
    let half = [Attribute::Ints("kernel_shape", vec![2, 2]), Attribute::Ints("strides", vec![2, 2])];
    OnnxModel::new("conv")
        .input("image", DType::F32, &[None, Some(3), Some(32), Some(32)])
        .floats("k1", &[16, 3, 3, 3], &weights(11, 16 * 27, 27))
        .floats("k2", &[32, 16, 3, 3], &weights(12, 32 * 144, 144))
        .floats("w", &[32, 10], &weights(13, 320, 32))
        .floats("b", &[10], &weights(14, 10, 32))
        .node("Conv", &["image", "k1"], &["c1"], &same())
        .node("Relu", &["c1"], &["r1"], &[])
        .node("MaxPool", &["r1"], &["p1"], &half)
        .node("Conv", &["p1", "k2"], &["c2"], &same())
        .node("Relu", &["c2"], &["r2"], &[])
        .node("GlobalAveragePool", &["r2"], &["g"], &[])
        .node("Flatten", &["g"], &["f"], &[Attribute::Int("axis", 1)])
        .node("Gemm", &["f", "w", "b"], &["scores"], &[])
        .output("scores", DType::F32, &[None, Some(10)])
        .bytes()
}

/// Returns its input, of any type: `x` and `y`, `[rows, any size]`.
pub fn identity(dtype: DType) -> Vec<u8> {
    OnnxModel::new("identity")
        .input("x", dtype, &[None, None])
        .node("Identity", &["x"], &["y"], &[])
        .output("y", dtype, &[None, None])
        .bytes()
}

/// Looks up rows of a table of eight by index: `index` `I64[rows]`, `row` `F32[rows, 4]`. An index out of bounds makes
/// the whole batch fail at run time.
pub fn gather() -> Vec<u8> {
    OnnxModel::new("gather")
        .input("index", DType::I64, &[None])
        .floats("table", &[8, 4], &weights(21, 32, 3))
        .node("Gather", &["table", "index"], &["row"], &[Attribute::Int("axis", 0)])
        .output("row", DType::F32, &[None, Some(4)])
        .bytes()
}

/// Returns its input after as many iterations of a loop as the largest number in the batch, so that one request can
/// keep the engine busy forever: `turns` and `done` `I64[rows, 1]`.
pub fn spin() -> Vec<u8> {
    let body = OnnxModel::new("turn")
        .input("turn", DType::I64, &[])
        .input("go_on", DType::Bool, &[])
        .input("count", DType::I64, &[Some(1)])
        .integers("one", &[1], &[1])
        .node("Identity", &["go_on"], &["go_on_still"], &[])
        .node("Add", &["count", "one"], &["count_after"], &[])
        .output("go_on_still", DType::Bool, &[])
        .output("count_after", DType::I64, &[Some(1)]);
    OnnxModel::new("spin")
        .input("turns", DType::I64, &[None, Some(1)])
        .constant("true", DType::Bool, &[], vec![1])
        .integers("zero", &[1], &[0])
        .node("ReduceMax", &["turns"], &["most"], &[Attribute::Int("keepdims", 0)])
        .node("Loop", &["most", "true", "zero"], &["counted"], &[Attribute::Graph("body", body)])
        .node("Mul", &["counted", "zero"], &["nothing"], &[])
        .node("Add", &["turns", "nothing"], &["done"], &[])
        .output("done", DType::I64, &[None, Some(1)])
        .bytes()
}

/// Two inputs and two outputs: `a` and `b` `F32[rows, 4]`; `sum` `F32[rows, 4]`, `total` `F32[rows, 1]`.
pub fn sums() -> Vec<u8> {
    OnnxModel::new("sums")
        .input("a", DType::F32, &[None, Some(4)])
        .input("b", DType::F32, &[None, Some(4)])
        .integers("across", &[1], &[1])
        .node("Add", &["a", "b"], &["sum"], &[])
        .node("ReduceSum", &["sum", "across"], &["total"], &[Attribute::Int("keepdims", 1)])
        .output("sum", DType::F32, &[None, Some(4)])
        .output("total", DType::F32, &[None, Some(1)])
        .bytes()
}

/// Indices of the nonzero elements, so that the output's shape depends on the values: `x` `F32[3, any size]`, `positions`
/// `I64[2, any size]`.
pub fn nonzero() -> Vec<u8> {
    OnnxModel::new("nonzero")
        .input("x", DType::F32, &[Some(3), None])
        .node("NonZero", &["x"], &["positions"], &[])
        .output("positions", DType::I64, &[Some(2), None])
        .bytes()
}
