use std::fmt;
use std::str::FromStr;

use super::{ParseError, as_text, pair};

/// The version of the PTX language. The toolkit determines it, not the target; a driver rejects PTX newer than itself
/// (error 222).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PtxIsa {
    major: u8,
    minor: u8,
}

impl PtxIsa {
    /// PTX ISA `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for PtxIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for PtxIsa {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (major, minor) =
            pair::<u8>(text).ok_or_else(|| ParseError::new("PTX ISA version", text, "8.4"))?;
        Ok(Self { major, minor })
    }
}

as_text!(PtxIsa);
