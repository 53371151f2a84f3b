//! What is attached to an image and could not be read.

use cudock_base::text::format;
use schemars::JsonSchema;
use serde::Serialize;

/// Something attached to an image that could not be read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SkippedReferrer {
    pub referrer: String,
    pub reason: String,
}

/// A short description of the skipped referrers.
pub(crate) fn skipped_text(skipped: &[SkippedReferrer]) -> Option<String> {
    let first = skipped.first()?;
    let what = format::count(skipped.len(), "referrer");
    Some(format!("{what} could not be read; the first is {}: {}", first.referrer, first.reason))
}
