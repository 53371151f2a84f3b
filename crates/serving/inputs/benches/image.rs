//! Time from a JPEG file of 500x375 pixels to a normalized row of 3x224x224, compared with Pillow and numpy.
//!
//! `PYTHON=venv/bin/python cargo bench -p cudock-inputs --bench image`, with pillow and numpy in that environment.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that cannot run should stop")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cudock_inputs::{ImageInput, InputFile};
use cudock_tensor::{DType, Signature, TensorSpec};

const SIDE: usize = 224;
/// Measurements of each, in turn.
const ROUNDS: usize = 5;
/// Images of one measurement.
const IMAGES: u32 = 200;

fn main() {
    // Tests of all targets start this, too, and have no use for figures of an unoptimized build.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("skipped: not started by `cargo bench`");
        return;
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = directory.join("tests/data/photo.jpg");
    let bytes = Bytes::from(std::fs::read(&file).expect("the image is there"));
    for (name, dtype, options) in [
        ("FP32", DType::F32, "mean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]"),
        ("UINT8", DType::U8, ""),
    ] {
        let input = input(dtype, options);
        let best = (0..ROUNDS).map(|_| measure(&input, &bytes, dtype)).min().expect("several rounds");
        println!("{name}: {best:.0?} an image, {:.0} images/s on one core", 1.0 / best.as_secs_f64());
    }
    let input = input(DType::F32, "mean = [0.485, 0.456, 0.406]\nstd = [0.229, 0.224, 0.225]");
    for round in 1..=ROUNDS {
        let ours = measure(&input, &bytes, DType::F32);
        let Some(pillow) = pillow(&directory.join("benches/pillow.py"), &file) else {
            println!("Pillow is not measured: PYTHON does not name a Python with pillow and numpy");
            return;
        };
        let ratio = pillow.as_secs_f64() / ours.as_secs_f64();
        println!("round {round}: {ours:.0?}, Pillow and numpy {pillow:.0?}: {ratio:.2} times as long");
    }
}

fn input(dtype: DType, options: &str) -> ImageInput {
    let inputs = vec![TensorSpec::new("image", dtype, [None, Some(3), Some(SIDE), Some(SIDE)])];
    let signature = Signature { inputs, outputs: Vec::new(), batched: true };
    let text = format!("[serve.image]\nresize = 256\ncrop = {SIDE}\n{options}");
    let options = cudock_project::parse(Path::new("cudock.toml"), &text).expect("it is valid").serve.image;
    ImageInput::new(&options.expect("it is there"), &signature).expect("it fits")
}

/// Time of one image.
fn measure(input: &ImageInput, bytes: &Bytes, dtype: DType) -> Duration {
    let mut row = vec![0; 3 * SIDE * SIDE * dtype.size().expect("numbers have a size")];
    let begun = Instant::now();
    for _ in 0..IMAGES {
        let file = InputFile { name: String::new(), bytes: black_box(bytes).clone() };
        for file in input.open(vec![file]).expect("it is sound") {
            input.decode(&file, &mut row).expect("it is sound");
        }
        black_box(&row);
    }
    begun.elapsed() / IMAGES
}

/// Time of one image in Python, if it can be measured.
fn pillow(script: &Path, file: &Path) -> Option<Duration> {
    let python = std::env::var_os("PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
    let output = Command::new(python).arg(script).arg(file).arg(IMAGES.to_string()).output().ok()?;
    let seconds = String::from_utf8_lossy(&output.stdout).trim().parse().ok()?;
    Some(Duration::from_secs_f64(seconds))
}
