use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use super::{ParseError, as_text, number};

/// An NVIDIA driver version: `535.161.08` on Linux, `552.22` on Windows, or a bare branch, `580` or `R580`.
///
/// Parts compare as numbers and missing ones count as zero, so `580` is the start of its branch and equal to `580.0`.
/// The number of parts is kept for display: NVIDIA pads the later parts to two digits. A user who names a branch means
/// its last release: see `Drivers::last_release`.
#[derive(Debug, Clone, Copy)]
pub struct DriverVersion {
    branch: u16,
    minor: u16,
    patch: u16,
    parts: u8,
}

impl DriverVersion {
    /// The start of a branch.
    pub const fn of_branch(branch: u16) -> Self {
        Self { branch, minor: 0, patch: 0, parts: 1 }
    }

    /// A release of a branch that is newer than all others, if the last one is unknown.
    pub const fn end_of_branch(branch: u16) -> Self {
        Self { branch, minor: u16::MAX, patch: u16::MAX, parts: 1 }
    }

    /// 535 of `535.161.08`.
    pub const fn branch(self) -> u16 {
        self.branch
    }

    /// Whether more than the branch is known.
    pub const fn is_exact(self) -> bool {
        self.parts > 1
    }

    fn key(self) -> (u16, u16, u16) {
        (self.branch, self.minor, self.patch)
    }
}

impl PartialEq for DriverVersion {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for DriverVersion {}

impl Ord for DriverVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for DriverVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts {
            1 => write!(f, "{}", self.branch),
            2 => write!(f, "{}.{:02}", self.branch, self.minor),
            _ => write!(f, "{}.{:02}.{:02}", self.branch, self.minor, self.patch),
        }
    }
}

impl FromStr for DriverVersion {
    type Err = ParseError;

    /// Branches have three digits since 2013; requiring them rejects CUDA versions.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("driver version", text, "535.161.08");
        let bare = text.strip_prefix(['R', 'r']).unwrap_or(text);
        let mut parts = bare.split('.').map(number::<u16>);
        let mut next = || parts.next().map(|part| part.ok_or_else(wrong));
        let branch = next().ok_or_else(wrong)??;
        let (minor, patch) = (next().transpose()?, next().transpose()?);
        if !(100..=9999).contains(&branch) || next().is_some() {
            return Err(wrong());
        }
        let parts = 1 + u8::from(minor.is_some()) + u8::from(patch.is_some());
        Ok(Self { branch, minor: minor.unwrap_or(0), patch: patch.unwrap_or(0), parts })
    }
}

as_text!(DriverVersion);
