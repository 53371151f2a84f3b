//! Stands in for the image decoders in a program that was built without them.

use std::convert::Infallible;

use cudock_project::ImageOptions;
use cudock_tensor::{RequestLimits, Signature};

use crate::{InputError, InputFile, OptionError};

/// How images become one input of a model; there are none in this build.
#[derive(Clone, Debug)]
pub struct ImageInput(Infallible);

/// A file whose header fits the limits; there are none in this build.
#[derive(Clone, Debug)]
pub struct ImageFile(Infallible);

/// Whether a file is an image that can be decoded.
pub fn is_image(_bytes: &[u8]) -> bool {
    false
}

impl ImageFile {
    pub fn memory(&self) -> usize {
        match self.0 {}
    }
}

impl ImageInput {
    pub fn new(_options: &ImageOptions, _signature: &Signature) -> Result<Self, OptionError> {
        let problem = "this program was built without image decoders; build it with `--features images`";
        Err(OptionError::new("serve.image", problem))
    }

    pub fn index(&self) -> usize {
        match self.0 {}
    }

    pub fn request_signature(&self) -> &Signature {
        match self.0 {}
    }

    pub fn open(&self, _files: Vec<InputFile>) -> Result<Vec<ImageFile>, InputError> {
        match self.0 {}
    }

    pub fn shape(&self, _files: &[ImageFile], _limits: &RequestLimits) -> Result<Vec<usize>, InputError> {
        match self.0 {}
    }

    pub fn decode(&self, _file: &ImageFile, _row: &mut [u8]) -> Result<(), InputError> {
        match self.0 {}
    }
}
