//! Versions and targets as types, so that a driver is never compared with a toolkit.
//!
//! Each of these things is written as dotted numbers, and each has an order of its own. A type apiece makes
//! the comparison that is wrong impossible to write, and parses strictly: what is accepted here is meant.

mod capability;
mod cuda;

mod driver;
mod ptx_isa;
mod target;

pub use capability::Capability;
pub use cuda::{CudaRelease, CudaVersion};
pub use cudock_base::Date;
pub use driver::DriverVersion;
pub use ptx_isa::PtxIsa;
pub use target::{PtxArch, SmArch, Variant};

use std::fmt;

/// A text that was to be a version, a date or a target, and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    what: &'static str,
    input: String,
    example: &'static str,
}

impl ParseError {
    fn new(what: &'static str, input: &str, example: &'static str) -> Self {
        Self { what, input: input.chars().take(60).collect(), example }
    }

    /// What a right one looks like, for a hint.
    pub fn example(&self) -> &'static str {
        self.example
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a {} (such as {})", self.input, self.what, self.example)
    }
}

impl std::error::Error for ParseError {}

/// Reads `12`, `012` or `0`: digits alone, so that signs, blanks and empty parts are refused.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Reads `major.minor`, with nothing before, between or after.
fn pair<T: std::str::FromStr>(text: &str) -> Option<(T, T)> {
    let (major, minor) = text.split_once('.')?;
    Some((number(major)?, number(minor)?))
}

/// Makes a type read and write itself as text wherever serde meets it.
macro_rules! as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
use as_text;
