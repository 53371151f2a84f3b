//! Errors of containers as the user sees them.

use cudock_runtime::RuntimeError;

use crate::failure::{Failure, chain};

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        if let RuntimeError::Image(error) = error {
            return Self::from(error);
        }
        let text = chain(&error);
        let failure = match cudock_runtime::exit_code(&error) {
            2 => Self::input(text),
            126 => Self::program(text, 126),
            127 => Self::program(text, 127),
            _ => Self::outside(text),
        };
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

impl From<cudock_netns::NetnsError> for Failure {
    fn from(error: cudock_netns::NetnsError) -> Self {
        Self::from(RuntimeError::from(error))
    }
}
