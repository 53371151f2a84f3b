//! Points in time as logs, engines and price lists write them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Date;
use crate::text::is_digits;

const MILLIS_PER_DAY: i64 = 86_400_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A point in time in UTC, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    millis: i64,
}

impl Timestamp {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { millis: i64::try_from(since.as_millis()).unwrap_or(i64::MAX) }
    }

    /// Converts from milliseconds since 1970.
    pub fn from_millis(millis: u64) -> Self {
        Self { millis: i64::try_from(millis).unwrap_or(i64::MAX) }
    }

    /// The first instant of a day.
    pub fn start_of(day: Date) -> Self {
        Self { millis: i64::from(day.days_since_epoch()) * MILLIS_PER_DAY }
    }

    /// Milliseconds since 1970; `None` before that.
    pub fn millis(self) -> Option<u64> {
        u64::try_from(self.millis).ok()
    }

    /// This time after it.
    #[must_use]
    pub fn plus(self, time: Duration) -> Self {
        Self { millis: self.millis.saturating_add(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)) }
    }

    /// The time since an earlier one; zero if that is later.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.millis.saturating_sub(earlier.millis);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    pub fn day(self) -> Date {
        Date::from_days_since_epoch(i32::try_from(self.millis.div_euclid(MILLIS_PER_DAY)).unwrap_or(i32::MAX))
    }

    /// Parses RFC 3339: `2026-11-15T12:30:05.123Z`, with an offset such as `+01:00`, or shorter,
    /// down to the date alone. A time without a zone is UTC, as in logs.
    pub fn parse(text: &str) -> Option<Self> {
        let day: Date = text.get(..10)?.parse().ok()?;
        let rest = text.get(10..)?;
        let time = match rest {
            "" => "00:00",
            _ => rest.strip_prefix(['T', 't', ' '])?,
        };
        let (time, offset) = match time.strip_suffix(['Z', 'z']) {
            Some(time) => (time, 0),
            None => match time.rfind(['+', '-']) {
                Some(at) => (time.get(..at)?, offset_minutes(time.get(at..)?)?),
                None => (time, 0),
            },
        };
        let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
        if fraction.is_empty() || !is_digits(fraction) {
            return None;
        }
        let mut fields = clock.split(':');
        let hour = two_digits(fields.next()?, 23)?;
        let minute = two_digits(fields.next()?, 59)?;
        let second = fields.next().map_or(Some(0), |field| two_digits(field, 60))?;
        if fields.next().is_some() {
            return None;
        }
        let fraction: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        let millis = ((hour * 60 + minute - offset) * 60 + second) * 1000 + fraction;
        Some(Self { millis: Self::start_of(day).millis.checked_add(millis)? })
    }

    /// Parses the date of an HTTP header, such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7). Its obsolete
    /// forms are not read.
    pub fn parse_http(text: &str) -> Option<Self> {
        let mut fields = text.trim().split(' ').skip(1);
        let (day, month, year) = (fields.next()?, fields.next()?, fields.next()?);
        let (clock, zone) = (fields.next()?, fields.next()?);
        if zone != "GMT" || fields.next().is_some() || clock.len() != 8 || year.len() != 4 {
            return None;
        }
        let month = MONTHS.iter().zip(1..).find(|(name, _)| **name == month)?.1;
        let day = i32::try_from(two_digits(day, 31)?).ok()?;
        Self::parse(&format!("{}T{clock}Z", Date::new(year.parse().ok()?, month, day)?))
    }
}

fn two_digits(text: &str, max: i64) -> Option<i64> {
    text.parse().ok().filter(|value| text.len() == 2 && is_digits(text) && *value <= max)
}

/// Minutes east of UTC: `+01:00`, `-0730`.
fn offset_minutes(text: &str) -> Option<i64> {
    let digits = text.get(1..)?.replacen(':', "", 1);
    let minutes = two_digits(digits.get(..2)?, 23)? * 60 + two_digits(digits.get(2..)?, 59)?;
    Some(if text.starts_with('-') { -minutes } else { minutes })
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_day = self.millis.rem_euclid(MILLIS_PER_DAY);
        let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (second, millis) = (of_day / 1000 % 60, of_day % 1000);
        write!(f, "{}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", self.day())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn millis(text: &str) -> Option<u64> {
        Timestamp::parse(text)?.millis()
    }

    #[test]
    fn every_common_form_is_parsed() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T00:00:00.123Z", 951_782_400_123),
            ("2026-11-15T12:30:05.123456789Z", 1_794_745_805_123),
            ("2026-11-15T13:30:05+01:00", 1_794_745_805_000),
            ("2026-11-15T05:00:05-0730", 1_794_745_805_000),
            ("2026-11-15T12:30:05", 1_794_745_805_000),
            ("2026-11-15 12:30", 1_794_745_800_000),
            ("2026-11-15", 1_794_700_800_000),
            ("2100-03-01T00:00:00.5Z", 4_107_542_400_500),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn never_and_nonsense_are_not_timestamps() {
        // Container engines write the year 1 for "never".
        assert_eq!(millis("0001-01-01T00:00:00Z"), None);
        for text in [
            "",
            "T",
            "now",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "2026-1-1",
            "2026-11-15T",
            "2026-11-15T25:00",
            "2026-11-15T1:2:3",
            "2026-11-15T01:02:03:04",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+é",
            "99999999999-01-01T00:00:00Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    #[test]
    fn dates_of_http_headers_are_parsed() {
        let parse = |text| Timestamp::parse_http(text).map(|time| time.to_string());
        assert_eq!(parse("Fri, 10 May 2024 07:51:58 GMT").as_deref(), Some("2024-05-10T07:51:58.000Z"));
        for text in [
            "",
            "Fri, 10 May 2024 07:51:58",
            "Fri, 10 May 2024 07:51:58 CET",
            "Fri, 31 Feb 2024 07:51:58 GMT",
            "Fri, 10 Mai 2024 07:51:58 GMT",
            "Friday, 10-May-24 07:51:58 GMT",
            "Fri, 10 May 2024 7:51:58 GMT",
            "Fri, 10 May 2024 07:51+01 GMT",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_print_as_rfc_3339() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(951_782_400_123).to_string(), "2000-02-29T00:00:00.123Z");
        assert_eq!(Timestamp::from_millis(4_107_542_400_000).to_string(), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn times_are_added_and_subtracted_within_bounds() {
        let (first, hour) = (Timestamp::from_millis(1_000), Duration::from_secs(3600));
        assert_eq!(first.plus(hour).since(first), hour);
        assert_eq!(first.since(first.plus(hour)), Duration::ZERO);
        assert_eq!(first.plus(Duration::MAX), Timestamp::from_millis(u64::MAX));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}|[0-9TZ:. +-]{0,30}") {
            let _ = Timestamp::parse(&text);
            let _ = Timestamp::parse_http(&text);
        }

        #[test]
        fn what_is_printed_is_parsed(millis in 0_u64..253_402_300_800_000) {
            let timestamp = Timestamp::from_millis(millis);
            prop_assert_eq!(Timestamp::parse(&timestamp.to_string()), Some(timestamp));
        }
    }
}
