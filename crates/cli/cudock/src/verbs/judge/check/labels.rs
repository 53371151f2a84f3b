//! How verdicts and errors are written.

use anstyle::Style;
use cudock_compat::{Failure, Verdict};

use crate::output::{GREEN, RED, YELLOW};

pub(crate) fn verdict_label(verdict: Verdict) -> (Style, &'static str) {
    let style = match verdict {
        Verdict::Works | Verdict::Jit => GREEN,
        Verdict::Cpu | Verdict::Fails => RED,
        Verdict::Unknown => YELLOW,
    };
    (style, verdict.name())
}

/// An error as it will be seen: CUDA's with number and name, others in their own words.
pub(crate) fn describe_error(error: &Failure) -> String {
    match error.code {
        Some(code) => format!("error {code}, {}: {}", error.name, error.message),
        None if error.message.is_empty() => error.name.clone(),
        None => error.message.clone(),
    }
}
