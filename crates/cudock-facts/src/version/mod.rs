//! Types for versions and targets, so that a driver is never compared with a toolkit. Parsing is strict.

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

    /// A valid example, for a hint.
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

/// Parses digits only, without signs or spaces.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Parses `major.minor`.
fn pair<T: std::str::FromStr>(text: &str) -> Option<(T, T)> {
    let (major, minor) = text.split_once('.')?;
    Some((number(major)?, number(minor)?))
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
