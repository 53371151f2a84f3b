//! Calendar days.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::text::is_digits;

/// A calendar day. Facts age by days, so neither time of day nor time zone matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    /// Days since 1970-01-01.
    days: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{input}` is not a date (such as 2026-11-14)")]
pub struct DateError {
    input: String,
}

const DAYS_IN_400_YEARS: i32 = 146_097;

/// Days from 0000-01-01 to 1970-01-01.
const EPOCH: i32 = 719_528;

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i32, month: i32) -> i32 {
    match month {
        2 => 28 + i32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 0000-01-01 to the first of January of `year`.
fn days_before_year(year: i32) -> i32 {
    let past = year - 1;
    year * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) + 1
}

impl Date {
    /// The first and the last day of years with four digits.
    const RANGE: (i32, i32) = (-719_162, 2_932_896);

    /// The day `year-month-day`, if there is such a day between the years 1 and 9999.
    pub fn new(year: i32, month: i32, day: i32) -> Option<Self> {
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        let before: i32 = (1..month).map(|month| days_in_month(year, month)).sum();
        exists.then(|| Self { days: days_before_year(year) + before + day - 1 - EPOCH })
    }

    /// Today in UTC. A clock before 1970 or after 9999 reads as 1970-01-01.
    pub fn today() -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs());
        Self { days: i32::try_from(seconds / 86_400).ok().filter(|days| *days <= Self::RANGE.1).unwrap_or(0) }
    }

    /// How many days after `earlier` this is; negative if it is before.
    pub const fn days_since(self, earlier: Date) -> i32 {
        self.days - earlier.days
    }

    pub(crate) const fn days_since_epoch(self) -> i32 {
        self.days
    }

    /// The nearest valid day.
    pub(crate) fn from_days_since_epoch(days: i32) -> Self {
        Self { days: days.clamp(Self::RANGE.0, Self::RANGE.1) }
    }

    fn parts(self) -> (i32, i32, i32) {
        let days = self.days + EPOCH;
        let mut year = days.div_euclid(DAYS_IN_400_YEARS) * 400 + days.rem_euclid(DAYS_IN_400_YEARS) / 366;
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        let mut rest = days - days_before_year(year);
        let mut month = 1;
        while rest >= days_in_month(year, month) {
            rest -= days_in_month(year, month);
            month += 1;
        }
        (year, month, rest + 1)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let field = |range| {
            let digits: &str = text.get(range)?;
            digits.parse().ok().filter(|_| is_digits(digits))
        };
        let dashes = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        match (dashes, field(0..4), field(5..7), field(8..10)) {
            (true, Some(year), Some(month), Some(day)) => Date::new(year, month, day),
            _ => None,
        }
        .ok_or_else(|| DateError { input: text.chars().take(60).collect() })
    }
}

/// Text in human-readable formats, a number in binary ones.
impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.days.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            Ok(Self::from_days_since_epoch(i32::deserialize(deserializer)?))
        }
    }
}

impl JsonSchema for Date {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // A pattern as well, since validators need not check formats.
        json_schema!({"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_that_of_years_with_four_digits() {
        assert_eq!(Date::RANGE.0, Date::new(1, 1, 1).unwrap().days);
        assert_eq!(Date::RANGE.1, Date::new(9999, 12, 31).unwrap().days);
        assert_eq!(Date::from_days_since_epoch(i32::MAX).to_string(), "9999-12-31");
    }
}
