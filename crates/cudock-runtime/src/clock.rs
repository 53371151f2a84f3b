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

/// A moment in milliseconds since 1970, as people write it: 2026-11-15T12:30:05.123Z, with an offset such as +01:00, or
/// shorter, down to the date alone. Without a zone it is UTC, as in logs.
pub fn milliseconds(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let (time, offset) = match time.strip_suffix(['Z', 'z']) {
        Some(time) => (time, 0),
        None => match time.rfind(['+', '-']) {
            Some(at) => (time.get(..at)?, offset_minutes(time.get(at..)?)?),
            None => (time, 0),
        },
    };
    let mut parts = date.splitn(3, '-');
    let mut part = |digits: usize| parts.next().filter(|part| part.len() == digits).and_then(digits_of);
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = clock.splitn(3, ':');
    let mut part = || parts.next().map_or(Some(0), |part| digits_of(part).filter(|_| part.len() == 2));
    let (hour, minute, second) = (part()?, part()?, part()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let seconds = (days(year, month, day) * 24 + hour) * 3600 + minute * 60 + second;
    seconds.checked_mul(1000)?.checked_add(fraction)?.checked_add_signed(-offset * 60_000)
}

fn digits_of(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Minutes east of UTC: +01:00, -0730.
fn offset_minutes(text: &str) -> Option<i64> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits = text.get(1..)?.replace(':', "");
    let number = digits_of(&digits).filter(|_| digits.len() == 4)?;
    Some(sign * i64::try_from(number / 100 * 60 + number % 100).ok()?)
}

/// Days since the first of January 1970: the other way of [`date`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_they_are_written() {
        for milliseconds in [0, 951_782_400_123, 1_794_745_805_007, 4_107_542_400_000] {
            assert_eq!(super::milliseconds(&moment(milliseconds)), Some(milliseconds));
        }
        for (text, expected) in [
            ("2026-11-15T12:30:05.123456789Z", 1_794_745_805_123),
            ("2026-11-15T13:30:05+01:00", 1_794_745_805_000),
            ("2026-11-15T05:00:05-0730", 1_794_745_805_000),
            ("2026-11-15T12:30:05", 1_794_745_805_000),
            ("2026-11-15 12:30", 1_794_745_800_000),
            ("2026-11-15", 1_794_700_800_000),
        ] {
            assert_eq!(super::milliseconds(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "now",
            "2026",
            "2026-13-01",
            "1969-12-31",
            "2026-11-15T25:00",
            "2026-1-1",
            "2026-11-15T1:2:3",
        ] {
            assert_eq!(super::milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn moments_are_written_as_dates() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(moment(1_794_745_805_007), "2026-11-15T12:30:05.007Z");
        assert_eq!(moment(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
