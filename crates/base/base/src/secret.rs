//! Values that must not be shown: passwords, tokens, keys.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A value that must not be shown. It prints as `Secret(…)` and serializes as `"…"`; code that needs the value calls
/// [`expose`](Self::expose), which a reviewer can search for.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    pub fn new(value: impl Into<T>) -> Self {
        Self(value.into())
    }

    /// The value, for the wire or the container and nothing else.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl Secret {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret: Secret = Secret::new("swordfish");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)), "Secret(…) Some(\n    Secret(…),\n)");
        assert_eq!(secret.expose(), "swordfish");
    }
}
