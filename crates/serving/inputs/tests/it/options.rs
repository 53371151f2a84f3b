//! Options that do not fit the model are errors that name their key.

use cudock_inputs::InputFile;
use cudock_tensor::{DType, RequestLimits, Signature, TensorSpec};

use crate::support::{data, image_input, model};

const NCHW: [Option<usize>; 4] = [None, Some(3), Some(24), Some(32)];

#[test]
fn layout_color_and_size_follow_from_the_signature() {
    for (options, shape, expected) in [
        ("", &NCHW, [1, 3, 24, 32]),
        ("", &[None, Some(24), Some(32), Some(3)], [1, 24, 32, 3]),
        ("", &[None, Some(1), Some(28), Some(28)], [1, 1, 28, 28]),
        ("resize = 24\ncolor = 'gray'", &[None, Some(1), None, None], [1, 1, 24, 31]),
        ("layout = 'nchw'", &[None; 4], [1, 3, 76, 101]),
    ] {
        let input = image_input(options, &model(DType::F32, shape)).unwrap();
        let file = InputFile { name: String::new(), bytes: data("small.png").into() };
        let files = input.open(vec![file]).unwrap();
        assert_eq!(input.shape(&files, &RequestLimits::default()).unwrap(), expected, "{options} {shape:?}");
    }
}

#[test]
fn options_that_do_not_fit_the_model_are_rejected() {
    let any = [None, Some(3), None, None];
    for (options, dtype, shape, message) in [
        (
            "input = 'X'",
            DType::F32,
            &NCHW[..],
            "`serve.image.input` in cudock.toml: the model has no input `X`; did you mean `x`?",
        ),
        ("", DType::F32, &[None, Some(64)], "`serve.image.input` in cudock.toml: input `x` has 2 dimensions"),
        ("", DType::I64, &NCHW, "`serve.image.input` in cudock.toml: input `x` is INT64"),
        (
            "",
            DType::F32,
            &[None; 4],
            "`serve.image.layout` in cudock.toml: the shape [-1, -1, -1, -1] of input `x` does not tell",
        ),
        ("layout = 'nhwc'", DType::F32, &NCHW, "`serve.image.color` in cudock.toml: "),
        (
            "crop = 224",
            DType::F32,
            &NCHW,
            "`serve.image.crop` in cudock.toml: input `x` takes a width of 32 and a height of 24",
        ),
        ("resize = [24, 32]", DType::F32, &NCHW, "`serve.image.resize` in cudock.toml: input `x` takes"),
        ("resize = 24", DType::F32, &NCHW, "`serve.image.crop` in cudock.toml: input `x` takes"),
        ("resize = 24\ncrop = 25", DType::F32, &any, "`serve.image.crop` in cudock.toml: it is larger than"),
        (
            "resize = [24, 9]\ncrop = [8, 10]",
            DType::F32,
            &any,
            "`serve.image.crop` in cudock.toml: it is larger than",
        ),
        ("mean = [1, 2]", DType::F32, &NCHW, "`serve.image.mean` in cudock.toml: 2 values for 3 channels"),
        (
            "std = [0]",
            DType::F32,
            &NCHW,
            "`serve.image.std` in cudock.toml: a channel cannot be divided by zero",
        ),
        ("scale = 2", DType::U8, &NCHW, "`serve.image.scale` in cudock.toml: input `x` takes bytes"),
    ] {
        let error = image_input(options, &model(dtype, shape)).unwrap_err();
        assert!(error.starts_with(message), "{options}: {error}");
    }
}

#[test]
fn one_of_several_inputs_must_be_named() {
    let mut signature = model(DType::F32, &NCHW);
    signature.inputs.push(TensorSpec::new("threshold", DType::F32, [None]));
    let error = image_input("", &signature).unwrap_err();
    assert_eq!(error, "`serve.image.input` in cudock.toml: name one of the model's inputs: x, threshold");
    let input = image_input("input = 'x'", &signature).unwrap();
    let Signature { inputs, .. } = input.request_signature();
    assert_eq!(inputs[0], TensorSpec::new("x", DType::String, [None]));
    assert_eq!(inputs[1], signature.inputs[1]);
}

#[test]
fn files_of_one_request_must_have_one_shape() {
    let input = image_input("", &model(DType::U8, &[None, Some(3), None, None])).unwrap();
    let open = |names: [&str; 2]| {
        let file = |name: &str| InputFile { name: name.to_owned(), bytes: data(name).into() };
        input.open(names.map(file).into()).unwrap()
    };
    let limits = RequestLimits::default();
    let error = input.shape(&open(["small.png", "photo.jpg"]), &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "photo.jpg: 500x375 after resizing, but small.png is 101x76; set `serve.image.crop`, or send images of one shape"
    );
    assert_eq!(input.shape(&open(["small.png", "gray.png"]), &limits).unwrap(), [2, 3, 76, 101]);
    let limits = RequestLimits { elements: 3 * 76 * 101, ..limits };
    let error = input.shape(&open(["small.png", "gray.png"]), &limits).unwrap_err();
    assert_eq!(error.to_string(), "small.png: [2, 3, 76, 101] are more than the 23028 elements allowed");
}
