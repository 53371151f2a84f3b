//! API keys.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cudock_base::{ErrorKind, FileStamp, Report, lock};
use hyper::header::{self, HeaderMap};

/// An error of the key file.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot read the keys in {}: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("no key found in {}", file.display())]
    Empty { file: PathBuf },
}

impl Report for KeysError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Input
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreadable { .. } => Vec::new(),
            Self::Empty { .. } => {
                vec!["write one key per line, or omit --api-keys to serve everybody".to_owned()]
            }
        }
    }
}

/// The accepted API keys; without a key file, every request is authorized.
///
/// Only keyed hashes are stored, keyed per process, so that neither comparison times nor a memory dump reveal a key.
#[derive(Clone, Default)]
pub struct ApiKeys {
    store: Option<Arc<KeyStore>>,
}

/// Identifies a key without revealing it, within this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct KeyId([u64; 2]);

struct KeyStore {
    file: PathBuf,
    stamp: Mutex<Option<FileStamp>>,
    hashes: RwLock<Vec<KeyId>>,
    secrets: [RandomState; 2],
}

impl ApiKeys {
    /// Reads the keys of a file, one per line; blank lines and lines that start with `#` are ignored.
    pub fn from_file(file: impl Into<PathBuf>) -> Result<Self, KeysError> {
        let store = KeyStore {
            file: file.into(),
            stamp: Mutex::new(None),
            hashes: RwLock::default(),
            secrets: [RandomState::new(), RandomState::new()],
        };
        store.read()?;
        Ok(Self { store: Some(Arc::new(store)) })
    }

    /// Reloads the file if it has changed, and returns whether it had. The previous keys stay if it cannot be used.
    pub(crate) fn refresh(&self) -> Result<bool, KeysError> {
        let Some(store) = &self.store else { return Ok(false) };
        if *lock(&store.stamp) == FileStamp::of(&store.file) {
            return Ok(false);
        }
        store.read().map(|()| true)
    }

    /// Whether requests need a key.
    pub fn are_required(&self) -> bool {
        self.store.is_some()
    }

    pub fn is_authorized(&self, headers: &HeaderMap) -> bool {
        !self.are_required() || self.identify(headers).is_some()
    }

    /// The valid key in a request; `None` if it has none or none is required.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Option<KeyId> {
        let store = self.store.as_ref()?;
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
            let value = value.as_bytes();
            let (scheme, key) = value.split_at_checked(7)?;
            scheme.eq_ignore_ascii_case(b"bearer ").then_some(key)
        });
        let plain = headers.get("x-api-key").map(hyper::header::HeaderValue::as_bytes);
        let hashes = store.hashes.read().unwrap_or_else(PoisonError::into_inner);
        let mut given =
            [bearer, plain].into_iter().flatten().map(|key| hash(&store.secrets, key.trim_ascii()));
        given.find(|key| hashes.contains(key))
    }
}

impl KeyStore {
    fn read(&self) -> Result<(), KeysError> {
        // Stored first, whatever the result: a file that changes meanwhile is read again, and a bad one is not reported
        // every second.
        *lock(&self.stamp) = FileStamp::of(&self.file);
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

fn hash(secrets: &[RandomState; 2], key: &[u8]) -> KeyId {
    KeyId(secrets.each_ref().map(|secret| secret.hash_one(key)))
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

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn only_a_known_key_is_authorized() {
        let secret = format!("{:x}", std::process::id());
        let file = file(&format!("# who: the tests\n\n  {secret}  \n#{secret}1\n"));
        let keys = ApiKeys::from_file(file.path()).unwrap();
        for (name, value, authorized) in [
            ("authorization", format!("Bearer {secret}"), true),
            ("authorization", format!("bearer  {secret} "), true),
            ("authorization", secret.clone(), false),
            ("x-api-key", secret.clone(), true),
            ("x-api-key", format!("{secret}0"), false),
            ("x-api-key", "# who: the tests".to_owned(), false),
            ("x-api-key", format!("#{secret}1"), false),
            ("x-api-key", String::new(), false),
        ] {
            assert_eq!(keys.is_authorized(&headers(name, &value)), authorized, "{name}: {value}");
        }
        assert!(!keys.is_authorized(&HeaderMap::new()));
        assert!(ApiKeys::default().is_authorized(&HeaderMap::new()), "there are no keys");
    }

    #[test]
    fn keys_change_with_their_file_and_stay_if_it_is_invalid() {
        let (old, new) = (format!("old-{:x}", std::process::id()), format!("new-{:x}", std::process::id()));
        let file = file(&old);
        let keys = ApiKeys::from_file(file.path()).unwrap();
        assert!(matches!(keys.refresh(), Ok(false)));
        std::fs::write(file.path(), format!("{new}\n# {old}\n")).unwrap();
        assert!(matches!(keys.refresh(), Ok(true)));
        assert!(keys.is_authorized(&headers("x-api-key", &new)));
        assert!(!keys.is_authorized(&headers("x-api-key", &old)));
        std::fs::write(file.path(), "# none\n").unwrap();
        assert!(matches!(keys.refresh(), Err(KeysError::Empty { .. })));
        assert!(matches!(keys.refresh(), Ok(false)), "reported once");
        assert!(keys.is_authorized(&headers("x-api-key", &new)));
    }

    #[test]
    fn a_file_of_comments_contains_no_key() {
        let empty = ApiKeys::from_file(file("# one\n \n#two\n").path());
        assert!(matches!(empty, Err(KeysError::Empty { .. })));
    }
}
