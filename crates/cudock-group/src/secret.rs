//! What must not be seen: passwords, keys, secure values.

use std::fmt;

use serde::{Serialize, Serializer};

/// Something that must not be shown. It prints as `Secret(…)` and is written to JSON as `"…"`; whoever needs it has to
/// say [`expose`](Self::expose), which a reviewer can search for.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Wraps what must not be shown.
    pub fn new(hidden: T) -> Self {
        Self(hidden)
    }

    /// The thing itself, for the container and nothing else.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<T> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}
