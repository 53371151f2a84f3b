//! What is wrong with a section `[sweep]`.

/// A problem, and the key that has it: `sweep.limits.trials`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub key: String,
    pub message: String,
}

impl Problem {
    /// `key` is one of the section.
    pub(crate) fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: format!("sweep.{key}"), message: message.into() }
    }
}

/// A property of a sweep that Azure Machine Learning cannot express.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Inexpressible(String);

impl Inexpressible {
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}
