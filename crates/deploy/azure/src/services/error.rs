//! Why a service cannot run a workload.

use cudock_base::{ErrorKind, Report};

/// A configuration that the service refuses, or accepts and then does something senseless with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TranslationError {
    message: String,
    hint: Option<String>,
}

impl TranslationError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Report for TranslationError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        self.hint.iter().cloned().collect()
    }
}
