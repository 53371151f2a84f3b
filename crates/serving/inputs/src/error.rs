//! Errors of inputs and of the options that describe them.

/// An input that cannot be used. The message is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    TooLarge(String),
    /// The type of the file is not supported.
    #[error("{0}")]
    Unsupported(String),
}

impl InputError {
    /// The same error, with the name of the input in front.
    #[must_use]
    pub fn of(self, name: &str) -> Self {
        let with_name = |message| format!("{name}: {message}");
        match self {
            Self::Invalid(message) => Self::Invalid(with_name(message)),
            Self::TooLarge(message) => Self::TooLarge(with_name(message)),
            Self::Unsupported(message) => Self::Unsupported(with_name(message)),
        }
    }
}

/// A key of `cudock.toml` that does not fit the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` in cudock.toml: {problem}")]
pub struct OptionError {
    pub key: &'static str,
    pub problem: String,
}

impl OptionError {
    pub(crate) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self { key, problem: problem.into() }
    }
}

/// Runs a decoder. Fuzzers find panics in image decoders every year; one must not end the server.
pub(crate) fn contain_panic<T>(decode: impl FnOnce() -> Result<T, InputError>) -> Result<T, InputError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(InputError::Invalid("the decoder failed on it".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_that_panics_is_an_error_of_its_input() {
        let error = contain_panic::<()>(|| panic!("on purpose")).unwrap_err();
        assert_eq!(error.of("file 2").to_string(), "file 2: the decoder failed on it");
    }
}
