//! Who may ask.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use hyper::header::{self, HeaderMap};

use crate::model::Stamp;
use crate::reply::lock;

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// It cannot be read.
    #[error("cannot read the keys in {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It has no key in it.
    #[error("{} holds no key", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
}

/// Keys that open the server; without a file of keys it is open to everybody.
///
/// Only keyed hashes of them are kept, with a key of this process, so comparing tells nothing by its duration and a
/// dump of the memory tells nobody a key.
#[derive(Clone, Default)]
pub struct ApiKeys {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    file: PathBuf,
    stamp: Mutex<Option<Stamp>>,
    hashes: RwLock<Vec<[u64; 2]>>,
    secrets: [RandomState; 2],
}

impl ApiKeys {
    /// The keys in a file: one a line; blank lines and lines that begin with `#` are not keys.
    pub fn from_file(file: impl Into<PathBuf>) -> Result<Self, KeysError> {
        let shared = Shared {
            file: file.into(),
            stamp: Mutex::new(None),
            hashes: RwLock::default(),
            secrets: [RandomState::new(), RandomState::new()],
        };
        shared.read()?;
        Ok(Self { shared: Some(Arc::new(shared)) })
    }

    /// Reads the file again if it has changed; whether it had. The keys before stay if it cannot be used.
    pub(crate) fn refresh(&self) -> Result<bool, KeysError> {
        let Some(shared) = &self.shared else { return Ok(false) };
        if *lock(&shared.stamp) == Stamp::of(&shared.file) {
            return Ok(false);
        }
        shared.read().map(|()| true)
    }

    /// Whether a request with these headers may be answered.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let Some(shared) = &self.shared else { return true };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let value = value.as_bytes();
            let (scheme, key) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
        });
        let plain = headers.get("x-api-key").map(hyper::header::HeaderValue::as_bytes);
        let hashes = shared.hashes.read().unwrap_or_else(PoisonError::into_inner);
        [bearer, plain]
            .into_iter()
            .flatten()
            .any(|key| hashes.contains(&hash(&shared.secrets, key.trim_ascii())))
    }
}

impl Shared {
    fn read(&self) -> Result<(), KeysError> {
        // Noted first, and whatever comes of it: a file that changes meanwhile is read again, a bad one is not reported
        // each second.
        *lock(&self.stamp) = Stamp::of(&self.file);
        let text = std::fs::read_to_string(&self.file)
            .map_err(|source| KeysError::Unreadable { file: self.file.clone(), source })?;
        let hashes: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(|key| hash(&self.secrets, key.as_bytes()))
            .collect();
        if hashes.is_empty() {
            return Err(KeysError::Empty { file: self.file.clone() });
        }
        *self.hashes.write().unwrap_or_else(PoisonError::into_inner) = hashes;
        Ok(())
    }
}

fn hash(secrets: &[RandomState; 2], key: &[u8]) -> [u64; 2] {
    secrets.each_ref().map(|secret| secret.hash_one(key))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderValue::from_str(value)
            .map(|value| HeaderMap::from_iter([(header::HeaderName::from_static(name), value)]))
            .unwrap_or_default()
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn only_a_known_key_opens() {
        let secret = format!("{:x}", std::process::id());
        let file = file(&format!("# who: the tests\n\n  {secret}  \n#{secret}1\n"));
        let keys = ApiKeys::from_file(file.path()).unwrap();
        assert!(keys.allow(&headers("authorization", &format!("Bearer {secret}"))));
        assert!(keys.allow(&headers("authorization", &format!("bearer  {secret} "))));
        assert!(keys.allow(&headers("x-api-key", &secret)));
        for wrong in
            [format!("{secret}0"), "# who: the tests".to_owned(), format!("#{secret}1"), String::new()]
        {
            assert!(!keys.allow(&headers("x-api-key", &wrong)), "{wrong}");
        }
        assert!(!keys.allow(&headers("authorization", &secret)));
        assert!(!keys.allow(&HeaderMap::new()));
    }

    #[test]
    fn keys_change_with_their_file_and_stay_if_it_is_no_good() {
        let (old, new) = (format!("old-{:x}", std::process::id()), format!("new-{:x}", std::process::id()));
        let file = file(&old);
        let keys = ApiKeys::from_file(file.path()).unwrap();
        assert!(matches!(keys.refresh(), Ok(false)));
        std::fs::write(file.path(), format!("{new}\n# {old}\n")).unwrap();
        assert!(matches!(keys.refresh(), Ok(true)));
        assert!(keys.allow(&headers("x-api-key", &new)) && !keys.allow(&headers("x-api-key", &old)));
        std::fs::write(file.path(), "# none\n").unwrap();
        assert!(matches!(keys.refresh(), Err(KeysError::Empty { .. })));
        assert!(matches!(keys.refresh(), Ok(false)), "reported once");
        assert!(keys.allow(&headers("x-api-key", &new)));
    }

    #[test]
    fn without_keys_everybody_may_ask() {
        assert!(ApiKeys::default().allow(&HeaderMap::new()));
    }

    #[test]
    fn a_file_of_comments_holds_no_key() {
        let empty = ApiKeys::from_file(file("# one\n \n#two\n").path());
        assert!(matches!(empty, Err(KeysError::Empty { .. })));
    }
}
