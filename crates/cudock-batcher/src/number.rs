//! Counting and measuring in one unit.

/// A count as a number to reckon with. Beyond 2⁵³ the last digits are lost, which no estimate notices.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn real(count: usize) -> f64 {
    count as f64
}

/// Nanoseconds as a number to reckon with.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn span(nanos: u64) -> f64 {
    nanos as f64
}

/// Back to nanoseconds: not less than nothing, not more than 64 bits hold, and nothing for what is no number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
pub(crate) fn whole(nanos: f64) -> u64 {
    nanos as u64
}
