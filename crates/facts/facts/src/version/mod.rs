//! Types for versions and targets, so that a driver is never compared with a toolkit. Parsing is strict.

mod capability;
mod cuda;
mod driver;
mod target;

pub use capability::Capability;
pub use cuda::{CudaRelease, CudaVersion, PtxIsa};
pub use cudock_base::Date;
pub use driver::DriverVersion;
pub use target::{PtxArch, SmArch, Variant};

use std::fmt;

/// A text that is not a valid version or target.
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
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a {} (such as {})", self.input, self.what, self.example)
    }
}

impl std::error::Error for ParseError {}

/// Parses digits only, without signs or spaces.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Implements serde and its schema with the type's text form.
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

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                String::json_schema(generator)
            }
        }
    };
}
use as_text;

/// Implements the text form of a version with the fields `major` and `minor`, as far as they are valid.
macro_rules! as_major_minor {
    ($type:ident, $what:literal, $example:literal, $valid:pat) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}.{}", self.major, self.minor)
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::version::ParseError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text.split_once('.').map(|(major, minor)| (number(major), number(minor))) {
                    Some((Some(major), Some(minor))) if matches!((major, minor), $valid) => {
                        Ok(Self { major, minor })
                    }
                    _ => Err(Self::Err::new($what, text, $example)),
                }
            }
        }

        as_text!($type);
    };
}
use as_major_minor;
