//! ONNX files: what is counted, what is refused.

use cudock_model::{NumberFormat, Share, inspect, onnx};

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
    assert_eq!(read.tensors.by_format[&NumberFormat::F32], Share { elements: 13, bytes: 52 });
    assert_eq!(read.tensors.by_format[&NumberFormat::F16], Share { elements: 5, bytes: 10 });
    // Shapes and axes are numbers, but nothing that was learnt.
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
    assert_eq!(read.tensors.by_format[&NumberFormat::F32], Share { elements: 6, bytes: 24 });
    assert_eq!(read.tensors.by_format[&NumberFormat::I32], Share { elements: 2, bytes: 8 });
    assert_eq!(read.tensors.by_format[&NumberFormat::I4], Share { elements: 5, bytes: 3 });
}

#[test]
fn constants_of_nodes_and_of_bodies_within_them_count() {
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
    assert_eq!(read.tensors.by_format[&NumberFormat::F32], Share { elements: 8, bytes: 32 });
}

#[test]
fn weights_in_another_file_are_held_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    let graph = Message::default()
        .message(5, &external("a", 1, &[100], "m.data", 0))
        .message(5, &external("b", 16, &[50], "m.data", 4096));
    std::fs::write(&path, model(&graph)).unwrap();
    let wrong = inspect(&path).unwrap_err().to_string();
    assert!(wrong.ends_with("m.onnx: its weights are in m.data, which is not there"), "{wrong}");
    std::fs::write(folder.path().join("m.data"), vec![0; 4195]).unwrap();
    let wrong = inspect(&path).unwrap_err().to_string();
    assert!(wrong.ends_with("m.data has 4195 bytes and its weights reach to 4196"), "{wrong}");
    std::fs::write(folder.path().join("m.data"), vec![0; 4196]).unwrap();
    let read = inspect(&path).unwrap();
    assert_eq!((read.tensors.bytes(), read.files.len()), (500, 2));
    assert_eq!(read.on_disk, 4196 + path.metadata().unwrap().len());
}

#[test]
fn weights_are_not_looked_for_outside_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for location in ["../secret", "/etc/passwd", ""] {
        let path = folder.path().join("m.onnx");
        let graph = Message::default().message(5, &external("a", 1, &[1], location, 0));
        std::fs::write(&path, model(&graph)).unwrap();
        let wrong = inspect(&path).unwrap_err().to_string();
        assert!(wrong.contains("which is not beside it"), "{location}: {wrong}");
    }
}

#[test]
fn what_a_tensor_claims_and_does_not_hold_is_refused() {
    let endless =
        |name: &str| Message::default().number(1, 1 << 40).number(1, 1 << 40).number(2, 1).text(8, name);
    let cases: Vec<(Message, &str)> = vec![
        (tensor("w", 1, &[4], &[0; 15]), "tensor `w` has 15 bytes, which its shape does not"),
        (endless("w"), "tensor `w` has more numbers than can be counted"),
        (tensor("w", 1, &[1 << 62], &[]), "tensor `w` has more bytes than can be counted"),
        (
            Message::default().number(1, 1 << 40).number(2, 1).text(8, "w"),
            "tensor `w` claims 1099511627776 numbers and does not hold them",
        ),
        (Message::default().number(1, u64::MAX).number(2, 1), "a dimension is negative"),
        (Message::default().number(1, 3), "tensor `` has no number format"),
        (Message::default().number(2, 1).number(14, 1), "tensor `` names no file for its data"),
    ];
    for (tensor, expected) in cases {
        let read = onnx::read(&model(&Message::default().message(5, &tensor)));
        assert_eq!(read.unwrap_err(), expected);
    }
}

#[test]
fn broken_messages_are_refused_in_words() {
    for (bytes, expected) in [
        (vec![], "it has no graph, so it is no ONNX model"),
        (vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f], "a field claims 4294967295 bytes, and 0 are left"),
        (vec![0x3b], "wire type 3 is not used by ONNX"),
        (vec![0xff; 11], "a number has more than ten bytes"),
        (vec![0x08], "it ends within a number"),
        (vec![0x02, 0x00], "a field has the number 0"),
        (vec![0x38, 0x01], "a number stands where a text or message belongs"),
    ] {
        assert_eq!(onnx::read(&bytes).unwrap_err(), expected, "{bytes:?}");
    }
}

#[test]
fn graphs_that_lie_in_each_other_without_end_are_refused() {
    let mut graph = Message::default();
    for _ in 0..40 {
        let attribute = Message::default().text(1, "body").message(6, &graph);
        graph = Message::default().message(1, &node("If", &[], &[]).message(5, &attribute));
    }
    assert_eq!(onnx::read(&model(&graph)).unwrap_err(), "its graphs lie more than 32 deep in each other");
}

/// x[rows, 10] goes through a[rows, 100] and b[rows, 100] to y[rows, 5]; all in 32 bits.
fn layers(described: bool) -> Vec<u8> {
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
    let graph = if described {
        graph
            .message(13, &value("a", &[rows(), Dim::Size(100)]))
            .message(13, &value("b", &[rows(), Dim::Size(100)]))
    } else {
        graph
    };
    model(&graph)
}

#[test]
fn values_are_there_from_the_node_that_makes_them_to_the_last_that_takes_them() {
    let activations = onnx::read(&layers(true)).unwrap().activations;
    assert!(activations.is_complete());
    // x, a, b and y; weights are none of them. At the most a and b are there: x is gone, y not yet made.
    assert_eq!(activations.values, 4);
    assert_eq!(activations.peak(1), 4 * (100 + 100));
    assert_eq!(activations.peak(8), 8 * 4 * (100 + 100));
    // Training keeps all of them.
    assert_eq!(activations.all(2), 2 * 4 * (10 + 100 + 100 + 5));
}

#[test]
fn values_without_a_shape_are_told() {
    let activations = onnx::read(&layers(false)).unwrap().activations;
    assert_eq!((activations.known, activations.values), (2, 4));
    assert!(!activations.is_complete());
}

#[test]
fn an_open_size_that_is_not_the_batch_is_not_taken_for_it() {
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
