//! Images and labels at `/predict`.

use std::io::Write;
use std::path::Path;

use cudock_tensor::DType;
use cudock_testkit::onnx::{Attribute, OnnxModel};
use serde_json::{Value, json};

use crate::serve_support::client::{Ask, Reply};
use crate::serve_support::server::{Server, Stage, eventually};

/// Gives the mean of each color: `image` F32 [rows, 3, 24, 24], `means` F32 [rows, 3], `pixels` F32 [rows, 1728].
fn means() -> Vec<u8> {
    OnnxModel::new("means")
        .input("image", DType::F32, &[None, Some(3), Some(24), Some(24)])
        .node("GlobalAveragePool", &["image"], &["pooled"], &[])
        .node("Flatten", &["pooled"], &["means"], &[Attribute::Int("axis", 1)])
        .node("Flatten", &["image"], &["pixels"], &[Attribute::Int("axis", 1)])
        .output("means", DType::F32, &[None, Some(3)])
        .output("pixels", DType::F32, &[None, Some(3 * 24 * 24)])
        .bytes()
}

const SETTINGS: &str = "[serve]\nlabels = \"labels.txt\"\ntop = 1\n\
    [serve.image]\nresize = 32\ncrop = 24\nmax_pixels = 250_000\n";

fn serve(stage: &Stage) -> Server {
    stage.write("models/means/model.onnx", &means());
    stage.write("models/means/labels.txt", b"red\ngreen\nblue\n");
    stage.write("models/means/cudock.toml", SETTINGS.as_bytes());
    stage.serve("models", &[])
}

/// A file of the tests of `cudock-inputs`.
fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../serving/inputs/tests/data").join(name))
        .unwrap()
}

/// A PNG file of one color.
fn png(width: u32, height: u32, color: [u8; 3]) -> Vec<u8> {
    drawn(width, height, |_, _| color)
}

/// A PNG file with a color at each place.
fn drawn(width: u32, height: u32, color: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let chunk = |name: &[u8; 4], content: &[u8]| {
        let mut sum = flate2::Crc::new();
        sum.update(name);
        sum.update(content);
        let length = u32::try_from(content.len()).unwrap();
        [&length.to_be_bytes(), &name[..], content, &sum.sum().to_be_bytes()].concat()
    };
    let mut pixels = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for y in 0..height {
        // Each row begins with its filter.
        pixels.write_all(&[0]).unwrap();
        (0..width).for_each(|x| pixels.write_all(&color(x, y)).unwrap());
    }
    let header = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat();
    let chunks = [chunk(b"IHDR", &header), chunk(b"IDAT", &pixels.finish().unwrap()), chunk(b"IEND", b"")];
    [&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()
}

fn form(files: &[(&str, Vec<u8>)]) -> Ask {
    let mut body = Vec::new();
    for (name, bytes) in files {
        write!(body, "--xyz\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n")
            .unwrap();
        body.extend([bytes, &b"\r\n"[..]].concat());
    }
    body.extend(b"--xyz--\r\n");
    Ask::post("/predict", body).with("content-type", "multipart/form-data; boundary=xyz")
}

fn image(kind: &str, bytes: Vec<u8>) -> Ask {
    Ask::post("/predict", bytes).with("content-type", kind)
}

fn error(reply: &Reply) -> (u16, String) {
    (reply.status, reply.json()["error"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_jpeg_file_is_a_row_as_pillow_reads_it() {
    let Some(stage) = Stage::new() else { return };
    let server = serve(&stage);
    let reply = server.ask(&image("image/jpeg", data("photo.jpg"))).ok().json();
    let pixels = reply["prediction"]["pixels"].as_array().unwrap();
    let expected = data("photo.expected");
    for (index, value) in pixels.iter().enumerate() {
        let (channel, pixel) = (index / (24 * 24), index % (24 * 24));
        let expected = f64::from(expected[pixel * 3 + channel]) / 255.0;
        let found = value.as_f64().unwrap();
        assert!((found - expected).abs() < 1.1 / 255.0, "element {index}: {found}, not {expected}");
    }
    assert_eq!((pixels.len(), reply["labels"].as_array().unwrap().len()), (3 * 24 * 24, 1));
    for name in ["small.png", "lossy.webp", "lossless.webp", "rotated.jpg", "gray.jpg"] {
        let reply = server.ask(&image("image/png", data(name))).ok().json();
        assert_eq!(reply["prediction"]["means"].as_array().unwrap().len(), 3, "{name}");
    }
}

#[test]
fn the_files_of_a_form_are_rows_in_order_and_get_labels() {
    let Some(stage) = Stage::new() else { return };
    let server = serve(&stage);
    let files = [
        ("b.png", png(40, 40, [0, 0, 255])),
        ("r.png", png(33, 90, [255, 0, 0])),
        ("g.png", png(90, 33, [0, 255, 0])),
    ];
    let reply = server.ask(&form(&files)).ok().json();
    assert_eq!(reply["prediction"]["means"], json!([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]));
    let label = |label: &str| json!([{"label": label, "score": 1.0}]);
    assert_eq!(reply["labels"], json!([label("blue"), label("red"), label("green")]));
    // A file that is the body has no row dimension.
    let one = server.ask(&image("image/png", files[1].1.clone())).ok().json();
    assert_eq!((&one["prediction"]["means"], &one["labels"]), (&json!([1.0, 0.0, 0.0]), &label("red")));
    let infer = json!({"inputs": [{"name": "image", "shape": [1, 3, 24, 24], "datatype": "FP32", "data": vec![0.5; 1728]}]});
    let raw = server.ask(&Ask::post("/v2/models/means/infer", infer.to_string())).ok().json();
    assert_eq!(raw.get("labels"), None, "the protocol has no labels");
}

#[test]
fn json_may_hold_files_as_base64_or_numbers() {
    let Some(stage) = Stage::new() else { return };
    let server = serve(&stage);
    // A white pixel, as browsers write it.
    let white = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";
    let ask = Ask::predict(&json!([white, white]).to_string());
    let means = |reply: &Value| reply["prediction"]["means"].clone();
    assert_eq!(means(&server.ask(&ask).ok().json()), json!([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]));
    let one = Ask::post(
        "/predict",
        json!({"id": "7", "inputs": {"image": white}, "outputs": ["means"]}).to_string(),
    );
    let one = server.ask(&one).ok().json();
    assert_eq!((&one["prediction"], &one["id"]), (&json!([1.0, 1.0, 1.0]), &json!("7")));
    let numbers = Ask::predict(&json!([vec![vec![vec![0.5; 24]; 24]; 3]]).to_string());
    assert_eq!(means(&server.ask(&numbers).ok().json()), json!([[0.5, 0.5, 0.5]]));
    let (status, message) = error(&server.ask(&Ask::predict("[\"AAAA\", \"!\"]")));
    assert_eq!((status, message.starts_with("input[1]: invalid base64")), (400, true), "{message}");
}

#[test]
fn a_bad_file_among_good_ones_is_named() {
    let Some(stage) = Stage::new() else { return };
    let server = serve(&stage);
    let good = || ("good.png", png(40, 40, [1, 2, 3]));
    let truncated = || data("photo.jpg")[..9000].to_vec();
    for (file, status, message) in [
        (("bad.jpg", truncated()), 400, "file 2 (bad.jpg): not a valid JPEG file: "),
        (("cat.gif", b"GIF89a".to_vec()), 415, "file 2 (cat.gif): not a JPEG, PNG or WebP file"),
        (("empty", Vec::new()), 400, "file 2 (empty): the file is empty"),
        (
            ("wide.png", png(501, 500, [0; 3])),
            413,
            "file 2 (wide.png): 501x500 pixels are more than the 250000",
        ),
    ] {
        let (found, text) = error(&server.ask(&form(&[good(), file, good()])));
        assert_eq!((found, text.starts_with(message)), (status, true), "{text}");
    }
    let (status, text) = error(&server.ask(&image("image/gif", b"GIF89a".to_vec())));
    assert_eq!((status, text.as_str()), (415, "image: not a JPEG, PNG or WebP file"));
    let (status, text) = error(&server.ask(&form(&[])));
    assert_eq!((status, text.as_str()), (400, "the form has no files"));
    // Where one file is refused, others may still be decoded on their threads.
    eventually("all memory is given back", || server.metric("cudock_held_bytes") == 0);
    server.ask(&form(&[good()])).ok();
}

#[test]
fn settings_that_do_not_fit_the_model_are_an_error_that_names_their_key() {
    let Some(stage) = Stage::new() else { return };
    stage.write("m/model.onnx", &means());
    stage.write("m/labels.txt", b"red\ngreen\n");
    for (settings, message) in [
        (
            "[serve.image]\ninput = \"imgae\"\n",
            "`serve.image.input` in cudock.toml: the model has no input `imgae`; did you mean `image`?",
        ),
        ("[serve]\nlabels = \"labels.txt\"\n", "has 2 lines, and no output has a score for each of them"),
        ("[serve]\ntop = 3\n", "`serve.top` in cudock.toml: it has no effect without `serve.labels`"),
    ] {
        stage.write("m/cudock.toml", format!("[workload]\nmodel = \"model.onnx\"\n{settings}").as_bytes());
        let output =
            stage.command(&["serve", "m", "--device", "cpu", "--offline", "--port", "0"]).output().unwrap();
        let text = crate::support::shown(&output);
        assert!(crate::support::code(&output) == 2 && text.contains(message), "{settings}: {text}");
    }
}

#[test]
fn a_model_without_settings_takes_no_images() {
    let Some(stage) = Stage::new() else { return };
    stage.write("means.onnx", &means());
    let server = stage.serve("means.onnx", &[]);
    let (status, text) = error(&server.ask(&image("image/png", png(1, 1, [0; 3]))));
    let message = "model `means` takes no images; `[serve.image]` in its cudock.toml enables them";
    assert_eq!((status, text.as_str()), (415, message));
}

#[test]
fn the_example_recognizes_shapes() {
    let Some(stage) = Stage::new() else { return };
    let server = stage.serve(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/image-classifier"), &[]);
    let paint = |is_inside: bool| if is_inside { [200, 40, 30] } else { [20, 60, 120] };
    let circle = drawn(120, 100, |x, y| paint(x.abs_diff(60).pow(2) + y.abs_diff(50).pow(2) < 1300));
    let square = drawn(120, 100, |x, y| paint(x.abs_diff(60).max(y.abs_diff(50)) < 26));
    let reply = server.ask(&form(&[("circle.png", circle), ("square.png", square)])).ok().json();
    let best: Vec<&str> = [0, 1].map(|row| reply["labels"][row][0]["label"].as_str().unwrap()).into();
    assert_eq!(best, ["circle", "square"], "{reply}");
}
