#[test]
fn write() { std::fs::write("../../examples/onnx-model/model.onnx", cudock_testkit::onnx::sums()).unwrap(); }
