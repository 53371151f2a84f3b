//! What cudock has to say about something it looked at, in the form every verb reports it.

use serde::Serialize;

/// A statement with its code, its evidence and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `CD` and four digits; `cudock explain` has a page for it.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub fix: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// May fail.
    Warning,
    /// Will fail.
    Error,
}

/// A file and what was read in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The file, or the name of another source.
    pub path: String,
    /// What it says.
    pub detail: String,
}

impl Evidence {
    /// Evidence from a path.
    pub fn new(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), detail: detail.into() }
    }
}

/// Names the codes that a crate reports, and lists them in `ALL`. What each means stands on its page.
#[macro_export]
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)+) => {
        $(
            $(#[$doc])*
            #[allow(missing_docs, reason = "its page says what it means")]
            pub const $name: &str = $code;
        )+

        /// Every code this crate can report.
        pub const ALL: &[&str] = &[$($code),+];
    };
}
