//! Who may ask.

use std::hash::{BuildHasher, RandomState};

use hyper::header::{self, HeaderMap};

/// Keys that open the server; none at all leave it open to everybody.
///
/// Only keyed hashes of them are kept, with a key of this process, so comparing tells nothing by its duration and a
/// dump of the memory tells nobody a key.
#[derive(Clone)]
pub struct ApiKeys {
    hashes: Vec<[u64; 2]>,
    secrets: [RandomState; 2],
}

impl ApiKeys {
    /// These keys; blank ones are not keys.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        let secrets = [RandomState::new(), RandomState::new()];
        let hashes = keys
            .into_iter()
            .map(str::trim)
            .filter(|key| !key.is_empty())
            .map(|key| hash(&secrets, key.as_bytes()))
            .collect();
        Self { hashes, secrets }
    }

    /// Whether a request with these headers may be answered.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        if self.hashes.is_empty() {
            return true;
        }
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let value = value.as_bytes();
            let (scheme, key) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
        });
        let plain = headers.get("x-api-key").map(hyper::header::HeaderValue::as_bytes);
        [bearer, plain]
            .into_iter()
            .flatten()
            .any(|key| self.hashes.contains(&hash(&self.secrets, key.trim_ascii())))
    }
}

fn hash(secrets: &[RandomState; 2], key: &[u8]) -> [u64; 2] {
    secrets.each_ref().map(|secret| secret.hash_one(key))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderValue::from_str(value)
            .map(|value| HeaderMap::from_iter([(header::HeaderName::from_static(name), value)]))
            .unwrap_or_default()
    }

    #[test]
    fn only_a_known_key_opens() {
        let secret = format!("{:x}", std::process::id());
        let keys = ApiKeys::new([secret.as_str(), "  "]);
        assert!(keys.allow(&headers("authorization", &format!("Bearer {secret}"))));
        assert!(keys.allow(&headers("authorization", &format!("bearer  {secret} "))));
        assert!(keys.allow(&headers("x-api-key", &secret)));
        assert!(!keys.allow(&headers("x-api-key", &format!("{secret}0"))));
        assert!(!keys.allow(&headers("authorization", &secret)));
        assert!(!keys.allow(&headers("x-api-key", "")));
        assert!(!keys.allow(&HeaderMap::new()));
    }

    #[test]
    fn without_keys_everybody_may_ask() {
        assert!(ApiKeys::new([]).allow(&HeaderMap::new()));
    }
}
