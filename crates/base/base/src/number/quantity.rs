//! Times, sizes and rates as people write them: `50ms`, `2h`, `4GiB`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

/// The regular expression of a number without sign and exponent, for schemas.
pub const NUMBER_PATTERN: &str = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)";

/// A text that is not a time, size or rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("invalid {what} `{text}`: expected {example}")]
    Unreadable { text: String, what: &'static str, example: &'static str },
    #[error("`{text}` has no unit; write {suggestion}")]
    NoUnit { text: String, suggestion: String },
    #[error("`{text}` is negative; {what} must not be")]
    Negative {
        text: String,
        /// The expected quantity, in the plural.
        what: &'static str,
    },
}

impl QuantityError {
    pub fn unreadable(text: &str, what: &'static str, example: &'static str) -> Self {
        Self::Unreadable { text: text.to_owned(), what, example }
    }

    /// Rejects a number without a unit, with units that may be meant.
    fn require_unit(text: &str, units: &[&str]) -> Result<(), Self> {
        let number = text.trim();
        let digits = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        if !number.bytes().all(digits) || number.parse::<f64>().is_err() {
            return Ok(());
        }
        let written: Vec<String> = units.iter().map(|unit| format!("{number}{unit}")).collect();
        Err(Self::NoUnit { text: text.to_owned(), suggestion: written.join(" or ") })
    }

    pub fn negative(text: &str, what: &'static str) -> Self {
        Self::Negative { text: text.to_owned(), what }
    }
}

/// A length of time, as `50ms`, `1.5s`, `10m`, `2h`, `7d`, or of several units, as `5h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

/// A number of bytes, as `512B`, `64KiB`, `1.5GiB`, `2GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Bytes per second, as `200MB/s`, `1.5GiB/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRate(pub u64);

const TIMES: &[(&str, f64)] =
    &[("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];

const SIZES: &[(&str, f64)] = &[
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

/// The number times the factor of its unit.
fn measured(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let end =
        text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = units.iter().find(|(name, _)| *name == unit.trim())?.1;
    let value = number.parse::<f64>().ok()? * factor;
    value.is_finite().then_some(value)
}

/// A sum of numbers with units, the largest unit first and each once: `5h30m`, `1d 12h`.
fn compound(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let mut rest = text.trim();
    let (mut sum, mut before) = (0.0, f64::INFINITY);
    while !rest.is_empty() {
        let is_number = |character: char| character.is_ascii_digit() || character == '.';
        let number = rest.find(|character| !is_number(character)).unwrap_or(rest.len());
        let unit = rest.get(number..)?.find(is_number).map_or(rest.len(), |unit| number + unit);
        let (part, more) = rest.split_at(unit);
        let factor = units.iter().find(|(name, _)| Some(*name) == part.get(number..).map(str::trim))?.1;
        if factor >= before {
            return None;
        }
        sum += measured(part, units)?;
        (rest, before) = (more.trim_start(), factor);
    }
    (sum.is_finite() && before.is_finite()).then_some(sum)
}

/// Rejects what would be a quantity, were it not for the sign before it or the missing unit.
fn reject_sign_or_bare_number(
    text: &str,
    units: &[(&str, f64)],
    plural: &'static str,
    suggested: &[&str],
) -> Result<(), QuantityError> {
    let unsigned = text.trim().strip_prefix(['-', '\u{2212}']);
    if unsigned.is_some_and(|rest| compound(rest, units).is_some()) {
        return Err(QuantityError::negative(text, plural));
    }
    QuantityError::require_unit(text, suggested)
}

impl FromStr for TimeSpan {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const EXAMPLE: &str = "a number and a unit, such as 50ms, 1.5s, 2h or 5h30m";
        reject_sign_or_bare_number(text, TIMES, "times", &["s", "m", "h"])?;
        compound(text, TIMES)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(Self)
            .ok_or_else(|| QuantityError::unreadable(text, "time", EXAMPLE))
    }
}

impl FromStr for ByteSize {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const EXAMPLE: &str = "a number and a unit, such as 512MiB or 4GiB";
        reject_sign_or_bare_number(text, SIZES, "sizes", &["GB", "GiB"])?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
        measured(text, SIZES)
            .filter(|bytes| *bytes < 1e18)
            .map(|bytes| Self(bytes as u64))
            .ok_or_else(|| QuantityError::unreadable(text, "size", EXAMPLE))
    }
}

impl FromStr for ByteRate {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wrong = || QuantityError::unreadable(text, "rate", "a size per second, such as 200MB/s");
        let bare = text.trim().strip_suffix("/s").unwrap_or(text);
        QuantityError::require_unit(bare, &["MB/s", "GB/s"])?;
        let size = text.trim().strip_suffix("/s").ok_or_else(wrong)?;
        match size.parse::<ByteSize>() {
            Ok(size) => Ok(Self(size.0)),
            Err(QuantityError::Negative { .. }) => Err(QuantityError::negative(text, "rates")),
            Err(QuantityError::Unreadable { .. } | QuantityError::NoUnit { .. }) => Err(wrong()),
        }
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", self.0)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}B", self.0)
    }
}

macro_rules! deserialize_from_text {
    ($($quantity:ty),*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor(std::marker::PhantomData))
            }
        }
    )*};
}

deserialize_from_text!(TimeSpan, ByteSize, ByteRate);

/// Parses a quantity from a string; a number gets the error about its unit, as on the command line.
struct QuantityVisitor<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = QuantityError>> de::Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

/// The regular expression of a number with a unit of bytes, from the beginning of a text.
fn size_pattern() -> String {
    format!(r"^\s*{NUMBER_PATTERN}\s*(?:B|[KMGT]iB|[kKMGT]B)\s*")
}

fn time_pattern() -> String {
    let units = ["d", "h", "m", "s", "ms", "[uµ]s"];
    let parts = units.map(|unit| format!(r"(?:{NUMBER_PATTERN}\s*{unit}\s*)?"));
    format!(r"^\s*{}$", parts.concat())
}

/// Implements [`JsonSchema`] for a quantity.
macro_rules! schemas {
    ($($quantity:ident: $schema:tt;)*) => {$(
        impl JsonSchema for $quantity {
            fn schema_name() -> Cow<'static, str> {
                stringify!($quantity).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

schemas! {
    TimeSpan: {
        "type": "string",
        "description": "A length of time: a number and a unit of us, ms, s, m, h or d, or several, the largest first.",
        "examples": ["50ms", "1.5s", "2h", "5h30m"],
        "pattern": time_pattern(),
        // Each part of the pattern is optional, but not all of them.
        "allOf": [{"pattern": "[0-9]"}],
    };
    ByteSize: {
        "type": "string",
        "description": "A number of bytes: a number and a unit of B, KB, MB, GB, TB, KiB, MiB, GiB or TiB.",
        "examples": ["512MiB", "16GB"],
        "pattern": size_pattern() + "$",
    };
    ByteRate: {
        "type": "string",
        "description": "Bytes per second.",
        "examples": ["200MB/s", "1.5GiB/s"],
        "pattern": size_pattern() + r"/s\s*$",
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_parsed_as_people_write_them() {
        for (text, seconds) in [
            ("50ms", 0.05),
            ("1.5s", 1.5),
            ("2h", 7200.0),
            ("250us", 0.000_25),
            ("3 m", 180.0),
            ("5h30m", 19_800.0),
            ("1d 12h", 129_600.0),
            ("1m1s500ms", 61.5),
        ] {
            assert_eq!(text.parse(), Ok(TimeSpan(Duration::from_secs_f64(seconds))), "{text}");
        }
        for (text, bytes) in
            [("512B", 512), ("64KiB", 65536), ("1.5GiB", 1_610_612_736), ("2GB", 2_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
    }

    #[test]
    fn a_text_without_unit_or_number_is_rejected_with_an_example() {
        for text in ["50", "", "ms", "-1s", "1e400d", "5 parsecs", "1..5s", "30m5h", "5h5h", "5h30", "h5"] {
            assert!(text.parse::<TimeSpan>().is_err(), "{text}");
        }
        let wrong = "4 gigs".parse::<ByteSize>();
        assert_eq!(
            wrong.map_err(|error| error.to_string()),
            Err("invalid size `4 gigs`: expected a number and a unit, such as 512MiB or 4GiB".to_owned())
        );
    }

    #[test]
    fn a_bare_number_is_rejected_with_the_same_number_in_units() {
        for number in ["40", "0", "1.5", " 16 ", "18446744073709551616"] {
            let bare = number.trim();
            let message = |error: QuantityError| error.to_string();
            let size = number.parse::<ByteSize>().map_err(message);
            assert_eq!(size, Err(format!("`{number}` has no unit; write {bare}GB or {bare}GiB")));
            let time = number.parse::<TimeSpan>().map_err(message);
            assert_eq!(time, Err(format!("`{number}` has no unit; write {bare}s or {bare}m or {bare}h")));
            let rate = number.parse::<ByteRate>().map_err(message);
            assert_eq!(rate, Err(format!("`{number}` has no unit; write {bare}MB/s or {bare}GB/s")));
        }
    }

    #[test]
    fn a_negative_quantity_has_an_error_of_its_own() {
        for text in ["-1s", "- 2h", "\u{2212}5m"] {
            let error = text.parse::<TimeSpan>().unwrap_err().to_string();
            assert_eq!(error, format!("`{text}` is negative; times must not be"));
        }
        let error = "-4GiB".parse::<ByteSize>().unwrap_err().to_string();
        assert_eq!(error, "`-4GiB` is negative; sizes must not be");
        let error = "-4MB/s".parse::<ByteRate>().unwrap_err().to_string();
        assert_eq!(error, "`-4MB/s` is negative; rates must not be");
        let error = "-s".parse::<TimeSpan>().unwrap_err().to_string();
        assert!(error.starts_with("invalid time `-s`"), "{error}");
    }

    #[test]
    fn a_byte_rate_is_per_second() {
        assert_eq!("200MB/s".parse(), Ok(ByteRate(200_000_000)));
        assert!("200MB".parse::<ByteRate>().is_err());
    }
}
