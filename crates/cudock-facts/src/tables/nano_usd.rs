use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// US dollars in billionths: a second of memory costs three millionths, which leaves [`super::Usd`] one digit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NanoUsd {
    nanos: u64,
}

/// A text that is not an amount of dollars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAnAmount {
    input: String,
}

impl NotAnAmount {
    fn new(input: &str) -> Self {
        Self { input: input.chars().take(60).collect() }
    }
}

impl fmt::Display for NotAnAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let input = &self.input;
        write!(f, "`{input}` is not an amount such as 0.000024 (at most nine decimal places)")
    }
}

impl std::error::Error for NotAnAmount {}

impl NanoUsd {
    /// From billionths of a dollar.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self { nanos }
    }

    /// Billionths of a dollar.
    pub const fn nanos(self) -> u64 {
        self.nanos
    }

    /// The nearest amount to a float; `None` if it is negative, not finite or above a billion dollars.
    pub fn nearest(usd: f64) -> Option<Self> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range is checked, and billionths of a billion fit"
        )]
        (0.0..=1e9).contains(&usd).then(|| Self { nanos: (usd * 1e9).round() as u64 })
    }
}

impl FromStr for NanoUsd {
    type Err = NotAnAmount;

    fn from_str(text: &str) -> Result<Self, NotAnAmount> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = (1..=9).contains(&whole.len()) && fraction.len() <= 9 && !text.ends_with('.');
        if !fits || !digits(whole) || !digits(fraction) {
            return Err(NotAnAmount::new(text));
        }
        let nanos = format!("{whole}{fraction:0<9}").parse().map_err(|_| NotAnAmount::new(text))?;
        Ok(Self { nanos })
    }
}

/// At least two decimal places, and no trailing zeros beyond them.
impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.nanos / 1_000_000_000, self.nanos % 1_000_000_000);
        let fraction = format!("{fraction:09}");
        let shown = fraction.trim_end_matches('0');
        write!(f, "{whole}.{shown:0<2}")
    }
}

/// A decimal text in human-readable formats, so that no digit is lost; billionths in the embedded table.
impl Serialize for NanoUsd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.nanos.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for NanoUsd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
        } else {
            Ok(Self { nanos: u64::deserialize(deserializer)? })
        }
    }
}
