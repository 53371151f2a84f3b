//! Conversions between integers and `f64`, in which all estimates are computed.

/// Converts a count. Precision is lost beyond 2⁵³, which does not matter to an estimate.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn to_f64(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss, reason = "an estimate")]
pub(crate) fn ns_to_f64(nanos: u64) -> f64 {
    nanos as f64
}

/// Converts back to nanoseconds, saturating at both ends; NaN becomes 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
pub(crate) fn f64_to_ns(nanos: f64) -> u64 {
    nanos as u64
}
