//! Percentiles.

/// The value below which a share of the values lies, with linear interpolation as in numpy; none without values.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a list"
)]
pub(super) fn percentile(values: &mut [f64], share: f64) -> Option<f64> {
    let position = share * values.len().checked_sub(1)? as f64;
    let (index, fraction) = (position.floor() as usize, position.fract());
    let (_, low, above) = values.select_nth_unstable_by(index, f64::total_cmp);
    let low = *low;
    let next = above.iter().copied().reduce(f64::min).unwrap_or(low);
    Some(if fraction > 0.0 { low + (next - low) * fraction } else { low })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_numpy() {
        let percentile = |values: &[f64], share| percentile(&mut values.to_vec(), share);
        assert_eq!(percentile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(percentile(&[4.0, 1.0, 2.0, 3.0], 0.5), Some(2.5));
        assert_eq!(percentile(&[4.0, 1.0, 2.0, 3.0], 0.75), Some(3.25));
        assert_eq!(percentile(&[7.0], 0.75), Some(7.0));
        assert_eq!(percentile(&[], 0.5), None);
    }
}
