//! Why a request cannot be read.

use crate::Limits;

/// Why a request cannot be read. The message is for the one who sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A byte of the body is not what has to be there.
    #[error("{place}{}{problem} (at byte {offset})", if place.is_empty() { "" } else { ": " })]
    Body {
        /// The part of the request, as `input[3][17]`; empty for the whole of it.
        place: String,
        /// Where in the body.
        offset: usize,
        /// What is wrong.
        problem: String,
    },
    /// It can be read, but is not what the model takes.
    #[error("{0}")]
    Unfit(String),
    /// It is larger than the server allows.
    #[error("{place}{}more than the {most} {what} allowed", if place.is_empty() { "" } else { ": " })]
    TooLarge {
        /// The part of the request; empty for the whole of it.
        place: String,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        most: usize,
    },
}

impl Malformed {
    /// Where in the body it is, if it is at one place.
    pub fn offset(&self) -> Option<usize> {
        match self {
            Self::Body { offset, .. } => Some(*offset),
            Self::Unfit(_) | Self::TooLarge { .. } => None,
        }
    }

    /// Whether it is a matter of size, which a server may allow more of.
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::TooLarge { .. })
    }

    /// The error for a body that is too long.
    pub fn body_too_large(limits: &Limits) -> Self {
        Self::TooLarge { place: String::new(), what: "bytes", most: limits.body }
    }
}
