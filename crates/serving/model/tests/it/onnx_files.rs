//! ONNX files: totals and errors.

use cudock_model::{FormatStats, NumberFormat, inspect, onnx};

use crate::write::{Dim, Message, external, model, node, tensor, value};

#[test]
fn weights_are_counted_by_their_format() {
    let graph = Message::default()
        .message(5, &tensor("w", 1, &[4, 3], &[0; 48]))
        .message(5, &tensor("half", 10, &[5], &[0; 10]))
        .message(5, &tensor("axes", 7, &[2], &[0; 16]))
        .message(5, &tensor("scalar", 1, &[], &[0; 4]))
        .message(5, &tensor("none", 1, &[0, 7], &[]));
    let read = onnx::read(&model(&graph)).unwrap();
    assert_eq!(read.tensors.tensors, 5);
    assert_eq!(read.tensors.by_format[&NumberFormat::F32], FormatStats { elements: 13, bytes: 52 });
    assert_eq!(read.tensors.by_format[&NumberFormat::F16], FormatStats { elements: 5, bytes: 10 });
    // Shapes and axes are not parameters.
    assert_eq!(read.tensors.parameters(), 18);
    assert_eq!(read.tensors.bytes(), 78);
    assert_eq!(read.tensors.main_format(), Some(NumberFormat::F32));
    assert_eq!(read.tensors.largest.unwrap().name, "w");
}

#[test]
fn packed_shapes_and_typed_numbers_are_read_too() {
    let packed = Message::default().bytes(1, &[2, 3]).number(2, 1).text(8, "p").bytes(4, &[0; 24]);
    let one_by_one = Message::default().number(1, 2).number(2, 6).text(8, "i").number(5, 1).number(5, 300);
    let four_bits = tensor("q", 22, &[5], &[0; 3]);
    let graph = Message::default().message(5, &packed).message(5, &one_by_one).message(5, &four_bits);
    let read = onnx::read(&model(&graph)).unwrap();
    assert_eq!(read.tensors.by_format[&NumberFormat::F32], FormatStats { elements: 6, bytes: 24 });
    assert_eq!(read.tensors.by_format[&NumberFormat::I32], FormatStats { elements: 2, bytes: 8 });
    assert_eq!(read.tensors.by_format[&NumberFormat::I4], FormatStats { elements: 5, bytes: 3 });
}

#[test]
fn constants_of_nodes_and_nested_graphs_are_counted() {
    let constant = |name: &str| {
        let attribute = Message::default().text(1, "value").message(5, &tensor(name, 1, &[2], &[0; 8]));
        node("Constant", &[], &["c"]).message(5, &attribute)
    };
    let body = Message::default().message(1, &constant("inner")).message(5, &tensor("w", 1, &[1], &[0; 4]));
    let with_body =
        node("Loop", &[], &["y"]).message(5, &Message::default().text(1, "body").message(6, &body));
    let sparse = Message::default()
        .message(1, &tensor("v", 1, &[3], &[0; 12]))
        .message(2, &tensor("i", 7, &[3], &[0; 24]));
    let graph = Message::default().message(1, &constant("outer")).message(1, &with_body).message(15, &sparse);
    let read = onnx::read(&model(&graph)).unwrap();
    assert_eq!(read.tensors.tensors, 5);
    assert_eq!(read.tensors.by_format[&NumberFormat::F32], FormatStats { elements: 8, bytes: 32 });
}

#[test]
fn reductions_over_the_last_axes_are_distinguished_from_others() {
    // In two's complement, as protobuf has negative numbers.
    let (last, before) = (u64::MAX, u64::MAX - 1);
    let axes = |numbers: &[u64]| {
        let attribute = Message::default().text(1, "axes");
        numbers.iter().fold(attribute, |attribute, number| attribute.number(8, *number))
    };
    let single = |number: u64| Message::default().text(1, "axis").number(3, number);
    let computed = node("ReduceMean", &["x", "axes"], &["y"]);
    let plain = |operator: &str| node(operator, &["x"], &["y"]);
    let with = |operator: &str, attribute: &Message| plain(operator).message(5, attribute);
    for (node, is_inner) in [
        (plain("ReduceMean"), false),
        (with("ReduceMean", &axes(&[last])), false),
        (with("ReduceMean", &axes(&[last, before])), false),
        (with("ReduceMean", &axes(&[0, 1])), false),
        (with("ReduceMean", &axes(&[before])), true),
        (with("ReduceMean", &axes(&[2])), true),
        (computed, true),
        (with("ArgMax", &single(last)), false),
        (with("ArgMax", &single(1)), true),
        (plain("ArgMax"), true),
        (with("Softmax", &single(1)), false),
    ] {
        let read = onnx::read(&model(&Message::default().message(1, &node))).unwrap();
        assert_eq!(
            read.operators.iter().any(|name| name.ends_with("(inner)")),
            is_inner,
            "{:?}",
            read.operators
        );
    }
}

#[test]
fn external_weights_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.onnx");
    let graph = Message::default()
        .message(5, &external("a", 1, &[100], "m.data", 0))
        .message(5, &external("b", 16, &[50], "m.data", 4096));
    std::fs::write(&path, model(&graph)).unwrap();
    let error = inspect(&path).unwrap_err().to_string();
    assert!(error.ends_with("m.onnx: file m.data with its weights not found"), "{error}");
    std::fs::write(directory.path().join("m.data"), vec![0; 4195]).unwrap();
    let error = inspect(&path).unwrap_err().to_string();
    assert!(error.ends_with("m.data has 4195 bytes, but weights end at 4196"), "{error}");
    std::fs::write(directory.path().join("m.data"), vec![0; 4196]).unwrap();
    let read = inspect(&path).unwrap();
    assert_eq!((read.tensors.bytes(), read.files.len()), (500, 2));
    assert_eq!(read.on_disk, 4196 + path.metadata().unwrap().len());
}

#[test]
fn weights_outside_the_directory_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    for location in ["../secret", "/etc/passwd", ""] {
        let path = directory.path().join("m.onnx");
        let graph = Message::default().message(5, &external("a", 1, &[1], location, 0));
        std::fs::write(&path, model(&graph)).unwrap();
        let error = inspect(&path).unwrap_err().to_string();
        assert!(error.contains("outside "), "{location}: {error}");
    }
}

#[test]
fn false_claims_of_tensors_are_rejected() {
    let endless =
        |name: &str| Message::default().number(1, 1 << 40).number(1, 1 << 40).number(2, 1).text(8, name);
    let cases: Vec<(Message, &str)> = vec![
        (tensor("w", 1, &[4], &[0; 15]), "tensor `w` has 15 bytes, which does not match its shape"),
        (endless("w"), "tensor `w` has too many elements"),
        (tensor("w", 1, &[1 << 62], &[]), "tensor `w` has too many bytes"),
        (
            Message::default().number(1, 1 << 40).number(2, 1).text(8, "w"),
            "tensor `w` claims 1099511627776 elements without data",
        ),
        (Message::default().number(1, u64::MAX).number(2, 1), "a dimension is negative"),
        (Message::default().number(1, 3), "tensor `` has no number format"),
        (Message::default().number(2, 1).number(14, 1), "tensor `` has no file for its external data"),
    ];
    for (tensor, expected) in cases {
        let read = onnx::read(&model(&Message::default().message(5, &tensor)));
        assert_eq!(read.unwrap_err(), expected);
    }
}

#[test]
fn invalid_messages_are_rejected() {
    for (bytes, expected) in [
        (vec![], "not an ONNX model: it has no graph"),
        (
            vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f],
            "field claims 4294967295 bytes, but 0 are left (field 7 at byte 0)",
        ),
        (vec![0x3b], "unsupported wire type 3 (field 7 at byte 0)"),
        (vec![0xff; 11], "number has more than ten bytes (at byte 0)"),
        (vec![0x08], "unexpected end in a number (field 1 at byte 0)"),
        (vec![0x02, 0x00], "invalid field number 0 (at byte 0)"),
        (vec![0x38, 0x01], "expected a string or message, found a number (field 7 at byte 0)"),
    ] {
        assert_eq!(onnx::read(&bytes).unwrap_err(), expected, "{bytes:?}");
    }
}

#[test]
fn deeply_nested_graphs_are_rejected() {
    let mut graph = Message::default();
    for _ in 0..40 {
        let attribute = Message::default().text(1, "body").message(6, &graph);
        graph = Message::default().message(1, &node("If", &[], &[]).message(5, &attribute));
    }
    assert_eq!(onnx::read(&model(&graph)).unwrap_err(), "graphs are nested more than 32 levels deep");
}

/// x[rows, 10] to a[rows, 100] to b[rows, 100] to y[rows, 5], all 32-bit.
fn layers(with_shapes: bool) -> Vec<u8> {
    let rows = || Dim::Named("rows");
    let graph = Message::default()
        .message(1, &node("MatMul", &["x", "w1"], &["a"]))
        .message(1, &node("Relu", &["a"], &["b"]))
        .message(1, &node("MatMul", &["b", "w2"], &["y"]))
        .message(5, &tensor("w1", 1, &[10, 100], &[0; 4000]))
        .message(5, &tensor("w2", 1, &[100, 5], &[0; 2000]))
        .message(11, &value("x", &[rows(), Dim::Size(10)]))
        .message(11, &value("w1", &[Dim::Size(10), Dim::Size(100)]))
        .message(12, &value("y", &[rows(), Dim::Size(5)]));
    let graph = if with_shapes {
        graph
            .message(13, &value("a", &[rows(), Dim::Size(100)]))
            .message(13, &value("b", &[rows(), Dim::Size(100)]))
    } else {
        graph
    };
    model(&graph)
}

#[test]
fn values_are_live_from_producer_to_last_consumer() {
    let activations = onnx::read(&layers(true)).unwrap().activations;
    assert!(activations.is_complete());
    // x, a, b and y; weights do not count. The peak is a and b: x is dead, y not yet produced.
    assert_eq!(activations.values, 4);
    assert_eq!(activations.peak(1), 4 * (100 + 100));
    assert_eq!(activations.peak(8), 8 * 4 * (100 + 100));
    // Training keeps all of them.
    assert_eq!(activations.all(2), 2 * 4 * (10 + 100 + 100 + 5));
}

#[test]
fn values_without_a_shape_are_counted_as_unknown() {
    let activations = onnx::read(&layers(false)).unwrap().activations;
    assert_eq!((activations.known, activations.values), (2, 4));
    assert!(!activations.is_complete());
}

#[test]
fn only_the_batch_dimension_scales_with_rows() {
    let graph = Message::default()
        .message(1, &node("Reshape", &["x"], &["a"]))
        .message(11, &value("x", &[Dim::Named("rows"), Dim::Size(10)]))
        .message(12, &value("a", &[Dim::Named("rows*12"), Dim::Size(10)]));
    let activations = onnx::read(&model(&graph)).unwrap().activations;
    assert_eq!((activations.known, activations.values), (1, 2));
    let graph = Message::default()
        .message(1, &node("Tokens", &["x"], &["a"]))
        .message(11, &value("x", &[Dim::Named("rows"), Dim::Named("length")]))
        .message(12, &value("a", &[Dim::Named("rows"), Dim::Size(768)]));
    let activations = onnx::read(&model(&graph)).unwrap().activations;
    assert_eq!((activations.known, activations.values), (1, 2));
}
