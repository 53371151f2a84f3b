//! The encodings of bodies, by name.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEncoding {
    Gzip,
    /// zlib, which HTTP calls deflate.
    Deflate,
    Zstd,
}

impl ContentEncoding {
    /// All of them, as in the header `Accept-Encoding`.
    pub(crate) const NAMES: &str = "gzip, deflate, zstd";

    /// The encoding that a header names.
    pub fn from_name(name: &str) -> Option<Self> {
        let is = |known| name.eq_ignore_ascii_case(known);
        if is("gzip") || is("x-gzip") {
            return Some(Self::Gzip);
        }
        [Self::Deflate, Self::Zstd].into_iter().find(|encoding| is(encoding.name()))
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Zstd => "zstd",
        }
    }

    /// The cheapest encoding that an `Accept-Encoding` header allows.
    pub(crate) fn preferred(accepted: &str) -> Option<Self> {
        let allowed = |wanted: Self| {
            accepted.split(',').any(|item| {
                let mut parts = item.split(';').map(str::trim);
                let named = parts.next().and_then(Self::from_name) == Some(wanted);
                let excluded =
                    parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)));
                named && !excluded
            })
        };
        [Self::Zstd, Self::Gzip, Self::Deflate].into_iter().find(|&encoding| allowed(encoding))
    }
}
