//! Converts an ONNX file to fp16: `to_fp16 IN OUT`. For `tests/fp16/make.py`.

use std::path::PathBuf;

use cudock_model::onnx::fp16::{Weights, to_fp16};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let (source, target) = paths.next().zip(paths.next()).ok_or("usage: to_fp16 IN OUT")?;
    let converted = to_fp16(&std::fs::read(&source)?, source.parent(), Weights::Inline)?;
    println!("{}: {:?}", source.display(), converted.stats);
    Ok(std::fs::write(target, converted.bytes)?)
}
