//! The values of durations and points in time.

use std::time::Duration;

use cudock_base::{Timestamp, UsageError};

use super::values::decimal;

/// A duration: 90s, 5m, 1h30m, 250ms, 2d; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, UsageError> {
    parse(text).ok_or_else(|| {
        UsageError::new(format!("`{text}` is not a duration")).hint("such as 90s, 5m or 1h30m")
    })
}

fn parse(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let number: u64 = number.parse().ok()?;
        let part = match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(3600)?),
            "d" => Duration::from_secs(number.checked_mul(86_400)?),
            _ => return None,
        };
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// A point in time, in milliseconds since 1970: a date and time, seconds since 1970, or how long before `now`.
pub fn point_in_time(flag: &str, text: &str, now: u64) -> Result<u64, UsageError> {
    let seconds = || {
        // Four digits are a year, not seconds since 1970.
        let (whole, part) = decimal(text).filter(|_| text.find('.').unwrap_or(text.len()) > 4)?;
        whole.checked_mul(1000)?.checked_add(part)
    };
    let ago = || {
        let ago = u64::try_from(parse(text)?.as_millis()).ok()?;
        text.ends_with(|letter: char| letter.is_ascii_alphabetic()).then(|| now.saturating_sub(ago))
    };
    Timestamp::parse(text).and_then(Timestamp::millis).or_else(seconds).or_else(ago).ok_or_else(|| {
        UsageError::new(format!("{flag} {text} is not a time"))
            .hint("such as 10m, 1h30m, 2026-11-15T12:30:00Z or seconds since 1970")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172_800), ("0", 0)]
        {
            assert_eq!(duration(text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        assert_eq!(duration("250ms").unwrap(), Duration::from_millis(250));
        for wrong in ["", "m", "5x", "-5s", "1.5h", "5m3", "99999999999999999999", "99999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn points_in_time_are_parsed_as_in_docker() {
        let now = 1_794_745_805_000;
        for (text, expected) in [
            ("10m", now - 600_000),
            ("1h30m", now - 5_400_000),
            ("2026-11-15T12:30:05Z", now),
            ("2026-11-15", 1_794_700_800_000),
            ("1794745805", now),
            ("1794745805.5", now + 500),
        ] {
            assert_eq!(point_in_time("--since", text, now).unwrap(), expected, "{text}");
        }
        for wrong in ["", "yesterday", "10", "2026", "5x"] {
            assert!(point_in_time("--since", wrong, now).is_err(), "{wrong}");
        }
    }
}
