//! An error in what the user typed or wrote, with what to do about it.

use crate::{ErrorKind, Report, did_you_mean};

/// Arguments or a file that cannot be used: one sentence about the problem, and hints with the next thing to try.
///
/// Crates that interpret arguments return it where callers have nothing to match on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    message: String,
    hints: Vec<String>,
}

impl UsageError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds "did you mean", if there is a candidate.
    #[must_use]
    pub fn near(self, candidates: &[impl AsRef<str>]) -> Self {
        match did_you_mean(candidates) {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
}

impl Report for UsageError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        self.hints.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_kept_in_order_and_an_empty_suggestion_adds_none() {
        let none: [&str; 0] = [];
        let error = UsageError::new("unknown GPU `T5`").near(&none).near(&["T4", "A10"]).hint("list them");
        assert_eq!(error.to_string(), "unknown GPU `T5`");
        assert_eq!(error.hints(), ["did you mean `T4` or `A10`?", "list them"]);
    }
}
