//! Moments as people and other tools write them.

use std::time::{SystemTime, UNIX_EPOCH};

/// This moment, as in 2026-11-15T12:30:05.123456789Z.
pub(crate) fn stamp() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    written(since.as_secs(), since.subsec_nanos())
}

/// A moment in milliseconds since 1970, as in 2026-11-15T12:30:05.123Z.
pub fn moment(milliseconds: u64) -> String {
    let nanos = u32::try_from(milliseconds % 1000 * 1_000_000).unwrap_or_default();
    let text = written(milliseconds / 1000, nanos);
    format!("{}Z", text.get(..23).unwrap_or(&text))
}

fn written(seconds: u64, nanos: u32) -> String {
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// The date so many days after the first of January 1970, counted in years that begin in March, so that the odd day of
/// a leap year is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(moment(1_794_745_805_007), "2026-11-15T12:30:05.007Z");
        assert_eq!(moment(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
