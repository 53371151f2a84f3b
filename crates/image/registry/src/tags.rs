//! Which digest a tag had when it was last fetched.
//!
//! ```text
//! tags/<hex>  name, digest, seconds since 1970
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cudock_base::{Digest, FileError, files};
use cudock_http::BlobStore;

use crate::documents::write_below;
use crate::reference::Reference;

/// The digest of a tag when it was last fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTag {
    /// The image's name, with its registry and its tag.
    pub reference: Reference,
    pub digest: Digest,
    /// When that was, in seconds since 1970.
    pub fetched: u64,
}

impl KeptTag {
    fn read(path: &Path) -> Option<Self> {
        let text = files::read_optional(path, 4096).ok()??;
        let mut lines = text.lines();
        let reference = lines.next()?.parse().ok()?;
        let digest = lines.next()?.parse().ok()?;
        Some(Self { reference, digest, fetched: lines.next()?.parse().ok()? })
    }
}

fn path_of(store: &BlobStore, reference: &Reference) -> PathBuf {
    store.directory().join("tags").join(Digest::sha256_of(tagged(reference).as_bytes()).hex())
}

/// The digest of a tag when it was last fetched; none for a name with a digest.
pub fn find(store: &BlobStore, reference: &Reference) -> Option<KeptTag> {
    if reference.digest.is_some() {
        return None;
    }
    KeptTag::read(&path_of(store, reference)).filter(|kept| tagged(&kept.reference) == tagged(reference))
}

/// Records the current digest of a tag.
pub(crate) fn write(store: &BlobStore, reference: &Reference, digest: &Digest) -> Result<(), FileError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let text = format!("{}\n{digest}\n{now}\n", tagged(reference));
    write_below(&path_of(store, reference), text.as_bytes())
}

/// All tags that were ever fetched, by name.
pub fn list(store: &BlobStore) -> Vec<KeptTag> {
    let entries = fs::read_dir(store.directory().join("tags")).into_iter().flatten().flatten();
    let mut all: Vec<KeptTag> = entries.filter_map(|entry| KeptTag::read(&entry.path())).collect();
    all.sort_by(|a, b| a.reference.cmp(&b.reference));
    all
}

/// A name with its tag, `latest` where none was given.
fn tagged(reference: &Reference) -> String {
    format!("{}/{}:{}", reference.registry, reference.repository, reference.tag_or_latest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_kept_under_its_whole_name_and_one_that_cannot_be_read_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlobStore::open(directory.path()).unwrap();
        let name = |text: &str| text.parse::<Reference>().unwrap();
        let digest = Digest::sha256_of(b"manifest");
        assert_eq!(list(&store), []);
        write(&store, &name("example.com/team/app:1"), &digest).unwrap();
        write(&store, &name("example.com/team/app"), &digest).unwrap();
        assert_eq!(find(&store, &name("example.com/team/app:1")).unwrap().digest, digest);
        assert_eq!(find(&store, &name("example.com/team/app:latest")).unwrap().digest, digest);
        assert_eq!(find(&store, &name("example.com/team/app:2")), None);
        assert_eq!(find(&store, &name("other.example.com/team/app:1")), None);
        let names: Vec<String> = list(&store).iter().map(|tag| tag.reference.to_string()).collect();
        assert_eq!(names, ["example.com/team/app:1", "example.com/team/app:latest"]);
        let path = path_of(&store, &name("example.com/team/app:1"));
        fs::write(path, "example.com/team/app:1\nsha256:x").unwrap();
        assert_eq!(find(&store, &name("example.com/team/app:1")), None);
        assert_eq!(list(&store).len(), 1);
    }
}
