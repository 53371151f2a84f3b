//! Files of this machine that no container may read or change.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Output;

use crate::support::shown;

/// A directory outside of every container, and its state before the attacks.
pub(super) struct Canary {
    directory: tempfile::TempDir,
    secret: String,
    before: BTreeMap<String, Seen>,
}

/// The metadata and content of one file, without its access time.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    mode: u32,
    owner: u32,
    links: u64,
    changed: (i64, i64),
    contents: Vec<u8>,
}

impl Canary {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut bytes = [0; 16];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).unwrap();
        let secret = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(directory.path().join("victim"), format!("{secret}\n")).unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        for name in ["inner/kept", "ptmx", "null", "console", "hosts", "resolv.conf", "hostname"] {
            fs::write(directory.path().join(name), "as it was\n").unwrap();
        }
        let mut canary = Self { directory, secret, before: BTreeMap::new() };
        canary.before = seen(canary.directory.path());
        canary
    }

    /// Its path on this machine.
    pub(super) fn path(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    /// The file with the secret.
    pub(super) fn victim(&self) -> String {
        format!("{}/victim", self.path())
    }

    /// A script that reads the secret and writes beside it from wherever it starts, by going up and by its full name. It
    /// succeeds, whatever it found.
    pub(super) fn raid(&self) -> String {
        let path = self.path();
        format!(
            "up=.; for step in 1 2 3 4 5 6 7 8 9 10 11 12; do
cat $up{path}/victim; echo stolen > $up{path}/new; rm $up{path}/inner/kept; up=$up/..; done 2>/dev/null
cat {path}/victim 2>/dev/null; true"
        )
    }

    /// Fails if anything was changed.
    pub(super) fn is_untouched(&self, attack: &str) {
        let now = seen(self.directory.path());
        let changed: Vec<&String> = now
            .iter()
            .filter(|(path, seen)| self.before.get(*path) != Some(seen))
            .map(|(path, _)| path)
            .collect();
        let gone: Vec<&String> = self.before.keys().filter(|path| !now.contains_key(*path)).collect();
        assert!(
            changed.is_empty() && gone.is_empty(),
            "{attack}: the canary was changed: {changed:?}, gone: {gone:?}"
        );
    }

    /// Fails if anything was changed, or if the output holds the secret.
    pub(super) fn is_safe(&self, attack: &str, output: &Output) {
        assert!(!shown(output).contains(&self.secret), "{attack}: the canary was read: {}", shown(output));
        self.is_untouched(attack);
    }
}

fn seen(directory: &Path) -> BTreeMap<String, Seen> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let about = path.symlink_metadata().unwrap();
        let contents = if about.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if about.is_file() {
            fs::read(&path).unwrap()
        } else {
            b"something made".to_vec()
        };
        let seen = Seen {
            mode: about.mode(),
            owner: about.uid(),
            links: about.nlink(),
            changed: (about.mtime(), about.mtime_nsec()),
            contents,
        };
        found.insert(path.display().to_string(), seen);
    }
    found
}
