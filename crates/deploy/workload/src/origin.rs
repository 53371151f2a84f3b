//! Where a value was given.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Key(&'static str),
}
