//! Models and images for tests.

use std::path::PathBuf;

use bytes::Bytes;
use cudock_inputs::{ImageInput, InputError, InputFile};
use cudock_project::ServeOptions;
use cudock_tensor::{DType, RequestLimits, Signature, TensorSpec, elements};

/// A batched model of one input.
pub(crate) fn model(dtype: DType, shape: &[Option<usize>]) -> Signature {
    let outputs = vec![TensorSpec::new("y", DType::F32, [None, Some(2)])];
    Signature { inputs: vec![TensorSpec::new("x", dtype, shape)], outputs, batched: true }
}

/// The `[serve]` table of a `cudock.toml`.
pub(crate) fn options(toml: &str) -> ServeOptions {
    cudock_project::parse("cudock.toml".as_ref(), toml).unwrap().serve
}

/// How images become the input of a model; the text is that of `[serve.image]`.
pub(crate) fn image_input(toml: &str, signature: &Signature) -> Result<ImageInput, String> {
    let options = options(&format!("[serve.image]\n{toml}")).image.unwrap();
    ImageInput::new(&options, signature).map_err(|error| error.to_string())
}

pub(crate) fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Decodes one image into a row of bytes.
pub(crate) fn decode(input: &ImageInput, bytes: impl Into<Bytes>) -> Result<Vec<u8>, InputError> {
    let files = input.open(vec![InputFile { name: "image".to_owned(), bytes: bytes.into() }])?;
    let shape = input.shape(&files, &RequestLimits::default())?;
    let mut row = vec![0; elements(&shape).unwrap()];
    input.decode(&files[0], &mut row)?;
    Ok(row)
}
