//! The cache: blobs by their digest, each complete and verified or not there at all.
//!
//! ```text
//! blobs/sha256/<hex>        complete, verified
//! media-types/sha256/<hex>  what the registry called a document
//! tags/<hex>                what a tag stood for when it was last fetched: name, digest, seconds since 1970
//! partial/<hex>             being written, by whoever holds its lock
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::digest::{Digest, Hasher};
use crate::env::{CUDOCK_CACHE, Environment};
use crate::error::RegistryError;
use crate::reference::Reference;

/// A folder of blobs that any number of processes may share.
///
/// A blob is written under an exclusive lock, hashed on the way, synced and then renamed into place, so that it is
/// never seen half. Who is killed leaves a part behind that the next writer goes on with.
#[derive(Debug, Clone)]
pub struct BlobStore {
    folder: PathBuf,
}

impl BlobStore {
    /// Opens a store, making its folders where they are missing.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, RegistryError> {
        let folder = folder.into();
        let folders =
            ["blobs/sha256", "blobs/sha512", "media-types/sha256", "media-types/sha512", "tags", "partial"];
        for below in folders {
            let path = folder.join(below);
            fs::create_dir_all(&path).map_err(failed("make folder", &path))?;
        }
        Ok(Self { folder })
    }

    /// The user's own: `$CUDOCK_CACHE`, else `$XDG_CACHE_HOME/cudock`, else `~/.cache/cudock`.
    pub fn user_cache() -> Result<Self, RegistryError> {
        Self::user_cache_in(&Environment::of_process())
    }

    /// The same in a given environment.
    pub fn user_cache_in(environment: &Environment) -> Result<Self, RegistryError> {
        Self::open(Self::user_cache_path(environment).ok_or(RegistryError::NoCache)?)
    }

    /// Where the user's own is, or would be; nothing is made.
    pub fn user_cache_path(environment: &Environment) -> Option<PathBuf> {
        environment.path(CUDOCK_CACHE).or_else(|| Some(environment.cache_home()?.join("cudock")))
    }

    /// Where the store lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a blob lies, if it is complete.
    pub fn path_of(&self, digest: &Digest) -> Option<PathBuf> {
        let path = self.blob_path(digest);
        path.is_file().then_some(path)
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.folder.join("blobs").join(digest.algorithm().name()).join(digest.hex())
    }

    fn media_type_path(&self, digest: &Digest) -> PathBuf {
        self.folder.join("media-types").join(digest.algorithm().name()).join(digest.hex())
    }

    /// Waits until nobody else writes this blob, and then either finds it complete or hands out the right to write.
    /// Calls `waiting` before it waits.
    pub fn begin(&self, digest: &Digest, size: u64, waiting: &dyn Fn()) -> Result<Begun, RegistryError> {
        let path = self.folder.join("partial").join(digest.hex());
        loop {
            if let Some(complete) = self.path_of(digest) {
                return Ok(Begun::Complete(complete));
            }
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(failed("write", &path))?;
            lock(&file, waiting).map_err(failed("lock", &path))?;
            if is_still_there(&file, &path) {
                let partial = Partial {
                    file,
                    path,
                    complete: self.blob_path(digest),
                    wanted: digest.clone(),
                    size,
                    hasher: Hasher::new(digest.algorithm()),
                    written: 0,
                };
                return partial.take_up().map(|partial| Begun::Partial(Box::new(partial)));
            }
            // Whoever held the lock has renamed or removed this very file: look again.
        }
    }

    /// A document kept by [`keep_document`](Self::keep_document): its media type and bytes, verified anew.
    pub(crate) fn document(&self, digest: &Digest, most: u64) -> Option<(String, Vec<u8>)> {
        let media_type = fs::read_to_string(self.media_type_path(digest)).ok()?;
        let mut bytes = Vec::new();
        File::open(self.blob_path(digest)).ok()?.take(most + 1).read_to_end(&mut bytes).ok()?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= most);
        (fits && Digest::of(digest.algorithm(), &bytes) == *digest).then_some((media_type, bytes))
    }

    /// Keeps a document whose digest has been verified.
    pub(crate) fn keep_document(
        &self,
        digest: &Digest,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), RegistryError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        // First its type: a type without its document is not looked at, a document without a type is fetched anew.
        let media_type_path = self.media_type_path(digest);
        write_whole(&media_type_path, media_type.as_bytes()).map_err(failed("write", &media_type_path))?;
        let mut partial = match self.begin(digest, size, &|| {})? {
            Begun::Partial(partial) => partial,
            Begun::Complete(_) if self.document(digest, size).is_some() => return Ok(()),
            Begun::Complete(path) => {
                // Damaged on disk.
                fs::remove_file(&path).map_err(failed("remove", &path))?;
                match self.begin(digest, size, &|| {})? {
                    Begun::Partial(partial) => partial,
                    Begun::Complete(_) => return Ok(()),
                }
            }
        };
        partial.restart()?;
        if !partial.append(bytes)? {
            return Err(failed("write", &partial.path)(io::Error::other(
                "the document is larger than it was",
            )));
        }
        match partial.finish()? {
            Finished::Complete(_) => Ok(()),
            Finished::WrongDigest { .. } => {
                Err(failed("write", &media_type_path)(io::Error::other("the document is not the one it was")))
            }
        }
    }
}

/// What a tag stood for when it was last fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTag {
    /// The image's name, with its registry and its tag.
    pub reference: Reference,
    /// The document it stood for.
    pub digest: Digest,
    /// When that was, in seconds since 1970.
    pub fetched: u64,
}

impl KeptTag {
    fn read(path: &Path) -> Option<Self> {
        let mut text = String::new();
        File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        let reference = lines.next()?.parse().ok()?;
        let digest = lines.next()?.parse().ok()?;
        Some(Self { reference, digest, fetched: lines.next()?.parse().ok()? })
    }
}

impl BlobStore {
    fn tag_path(&self, reference: &Reference) -> PathBuf {
        self.folder.join("tags").join(Digest::sha256_of(tagged(reference).as_bytes()).hex())
    }

    /// What a tag stood for when it was last fetched; none for a name with a digest, which needs no asking.
    pub fn tag(&self, reference: &Reference) -> Option<KeptTag> {
        if reference.digest.is_some() {
            return None;
        }
        KeptTag::read(&self.tag_path(reference)).filter(|kept| tagged(&kept.reference) == tagged(reference))
    }

    /// Keeps what a tag stands for now.
    pub(crate) fn keep_tag(&self, reference: &Reference, digest: &Digest) -> Result<(), RegistryError> {
        let path = self.tag_path(reference);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text = format!("{}\n{digest}\n{now}\n", tagged(reference));
        write_whole(&path, text.as_bytes()).map_err(failed("write", &path))
    }

    /// All tags that were ever fetched, by name.
    pub fn tags(&self) -> Vec<KeptTag> {
        let entries = fs::read_dir(self.folder.join("tags")).into_iter().flatten().flatten();
        let mut all: Vec<KeptTag> = entries.filter_map(|entry| KeptTag::read(&entry.path())).collect();
        all.sort_by(|a, b| a.reference.cmp(&b.reference));
        all
    }
}

/// A name with its tag, `latest` where none was given.
fn tagged(reference: &Reference) -> String {
    format!("{}/{}:{}", reference.registry, reference.repository, reference.tag_or_latest())
}

/// What [`BlobStore::begin`] found.
pub enum Begun {
    /// Somebody has it already.
    Complete(PathBuf),
    /// It is ours to write.
    Partial(Box<Partial>),
}

/// How [`Partial::finish`] ended.
pub enum Finished {
    /// Verified and in place.
    Complete(PathBuf),
    /// Emptied, since its digest is `got`.
    WrongDigest {
        /// The digest of what was written.
        got: Digest,
    },
}

/// A blob being written. The lock is held as long as this lives; dropping it leaves what is written for the next.
pub struct Partial {
    file: File,
    path: PathBuf,
    complete: PathBuf,
    wanted: Digest,
    size: u64,
    hasher: Hasher,
    written: u64,
}

impl Partial {
    pub(crate) fn digest(&self) -> &Digest {
        &self.wanted
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes are there.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether all bytes are there, right or wrong.
    pub fn is_full(&self) -> bool {
        self.written == self.size
    }

    /// Hashes what an earlier run left. A part longer than the blob cannot be one of it and is dropped.
    fn take_up(mut self) -> Result<Self, RegistryError> {
        let length = self.file.metadata().map_err(failed("read", &self.path))?.len();
        if length > self.size {
            self.restart()?;
            return Ok(self);
        }
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let count = match self.file.read(&mut buffer) {
                Ok(0) => return Ok(self),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed("read", &self.path)(error)),
            };
            self.hasher.update(buffer.get(..count).unwrap_or_default());
            self.written += u64::try_from(count).unwrap_or_default();
        }
    }

    /// Drops all that is written.
    pub fn restart(&mut self) -> Result<(), RegistryError> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .map_err(failed("write", &self.path))?;
        self.hasher = Hasher::new(self.wanted.algorithm());
        self.written = 0;
        Ok(())
    }

    /// Writes the next bytes; `false`, and nothing is written, if they go beyond the blob's size.
    pub fn append(&mut self, bytes: &[u8]) -> Result<bool, RegistryError> {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.written.checked_add(count).is_none_or(|end| end > self.size) {
            return Ok(false);
        }
        self.file.write_all(bytes).map_err(failed("write", &self.path))?;
        self.hasher.update(bytes);
        self.written += count;
        Ok(true)
    }

    /// Verifies, syncs and puts the blob in its place; or empties it. The lock ends with `self`.
    pub fn finish(&mut self) -> Result<Finished, RegistryError> {
        let got = self.hasher.digest();
        if got != self.wanted {
            // Emptied rather than unlinked: the lock stays good for a second try.
            self.restart()?;
            return Ok(Finished::WrongDigest { got });
        }
        self.file.sync_all().map_err(failed("sync", &self.path))?;
        fs::rename(&self.path, &self.complete).map_err(failed("write", &self.complete))?;
        if let Some(folder) = self.complete.parent() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))?;
        }
        Ok(Finished::Complete(self.complete.clone()))
    }
}

impl Drop for Partial {
    /// A part of no bytes is no use to the next run. The lock is still held, so it is nobody else's.
    fn drop(&mut self) {
        if self.written == 0 && is_still_there(&self.file, &self.path) {
            // One that stays is taken up by the next run.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits until nobody else holds this file. Calls `waiting` before it waits; the lock ends when the file is closed.
pub fn lock(file: &File, waiting: &dyn Fn()) -> io::Result<()> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(()),
        Err(Errno::WOULDBLOCK) => waiting(),
        // Some file systems lock only with waiting; what else is wrong shows there, too.
        Err(_) => {}
    }
    loop {
        match flock(file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_still_there(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(theirs)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let own = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let beside = path.with_extension(format!("{}-{}.new", own.0, own.1));
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RegistryError + use<> {
    let path = path.to_owned();
    move |source| RegistryError::Store { doing, path, source }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
