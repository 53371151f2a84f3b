//! Stands in for the tokenizer in a program that was built without it.

use std::convert::Infallible;

use cudock_project::TextOptions;
use cudock_tensor::{RequestLimits, Signature, Tensor};

use crate::{InputError, OptionError};

/// How texts become the inputs of a model; there are none in this build.
#[derive(Debug)]
pub struct TextInput(Infallible);

impl TextInput {
    pub fn load(_options: &TextOptions, _signature: &Signature) -> Result<Self, OptionError> {
        let problem = "this program was built without tokenizers; build it with `--features text`";
        Err(OptionError::new("serve.text", problem))
    }

    pub fn request_signature(&self) -> &Signature {
        match self.0 {}
    }

    pub fn memory(&self, _text: usize) -> usize {
        match self.0 {}
    }

    pub fn encode(&self, _texts: &Tensor, _limits: &RequestLimits) -> Result<Vec<Tensor>, InputError> {
        match self.0 {}
    }

    pub fn padding(&self) -> Vec<Vec<u8>> {
        match self.0 {}
    }
}
