//! Times and sizes as people write them: `50ms`, `2h`, `4GiB`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

/// A text that is no time or size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}; write {example}")]
pub struct QuantityError {
    text: String,
    what: &'static str,
    example: &'static str,
}

/// A length of time, as `50ms`, `1.5s`, `10m`, `2h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A number of bytes, as `512`, `64KiB`, `1.5GiB`, `2GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

const TIMES: &[(&str, f64)] =
    &[("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];

const SIZES: &[(&str, f64)] = &[
    ("", 1.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];

/// The number and the factor of its unit.
fn measured(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let value = number.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(value)
}

impl FromStr for Span {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        measured(text, TIMES)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Self)
            .ok_or_else(|| QuantityError {
                text: text.to_owned(),
                what: "time",
                example: "a number and a unit, as 50ms, 1.5s or 2h",
            })
    }
}

impl FromStr for ByteSize {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        measured(text, SIZES).filter(|bytes| *bytes < 1e18).map(|bytes| Self(bytes as u64)).ok_or_else(|| {
            QuantityError {
                text: text.to_owned(),
                what: "size",
                example: "a number and a unit, as 512MiB or 4GiB",
            }
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.0)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}B", self.0)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_people_write_them() {
        for (text, seconds) in
            [("50ms", 0.05), ("1.5s", 1.5), ("2h", 7200.0), ("250us", 0.000_25), ("3 m", 180.0)]
        {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs_f64(seconds))), "{text}");
        }
        for (text, bytes) in
            [("512", 512), ("64KiB", 65536), ("1.5GiB", 1_610_612_736), ("2GB", 2_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn what_has_no_unit_or_no_number_is_refused_with_an_example() {
        for text in ["50", "", "ms", "-1s", "1e400d", "5 parsecs", "1..5s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
        let wrong = "4 gigs".parse::<ByteSize>();
        assert_eq!(
            wrong.map_err(|error| error.to_string()),
            Err("`4 gigs` is no size; write a number and a unit, as 512MiB or 4GiB".to_owned())
        );
    }
}
