//! The file system below a root directory, as a program inside it would see it.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use cudock_base::Arch;

use crate::files::Files;

/// The largest file to read.
const MAX_TEXT: u64 = 8 << 20;

/// The most entries to list in a directory.
const MAX_ENTRIES: usize = 100_000;

/// The number of symlinks that the kernel follows.
const MAX_LINKS: usize = 40;

#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct RootError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// A directory that represents `/`: all links inside it, even absolute ones, stay inside.
#[derive(Debug, Clone)]
pub struct Root {
    base: PathBuf,
    live: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) size: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) is_char_device: bool,
}

impl Root {
    /// The machine itself.
    pub fn live() -> Self {
        Self { base: PathBuf::from("/"), live: true }
    }

    /// A directory tree, as given by `--root`.
    pub fn tree(directory: &Path) -> Result<Self, RootError> {
        let error = |source| RootError { path: directory.to_owned(), source };
        let base = fs::canonicalize(directory).map_err(error)?;
        fs::read_dir(&base).map_err(error)?;
        Ok(Self { base, live: false })
    }

    /// Whether this is the machine itself, whose environment, devices and processes can be read too.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The directory on this machine.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// This machine's architecture, or that of the tree's program loader.
    pub fn cpu_arch(&self) -> Arch {
        if self.live {
            return Arch::CURRENT;
        }
        let arm = ["/lib/ld-linux-aarch64.so.1", "/usr/lib/aarch64-linux-gnu"];
        if arm.iter().any(|path| self.exists(path)) { Arch::Aarch64 } else { Arch::X86_64 }
    }

    /// Resolves all symlinks of a path; none if a component does not exist.
    fn real_path(&self, path: &str) -> Option<PathBuf> {
        let mut todo: Vec<PathBuf> = vec![PathBuf::from(path)];
        let mut done = PathBuf::from("/");
        let mut links = 0;
        while let Some(next) = todo.pop() {
            let mut parts = next.components();
            match parts.next() {
                None => continue,
                Some(Component::Normal(name)) => {
                    todo.push(parts.as_path().to_owned());
                    let here = done.join(name);
                    let on_host = self.on_host(&here);
                    let metadata = fs::symlink_metadata(&on_host).ok()?;
                    if metadata.is_symlink() {
                        links += 1;
                        if links > MAX_LINKS {
                            return None;
                        }
                        todo.push(fs::read_link(&on_host).ok()?);
                    } else {
                        done = here;
                    }
                    continue;
                }
                Some(Component::RootDir | Component::Prefix(_)) => done = PathBuf::from("/"),
                Some(Component::CurDir) => {}
                Some(Component::ParentDir) => {
                    done.pop();
                }
            }
            todo.push(parts.as_path().to_owned());
        }
        Some(done)
    }

    fn on_host(&self, inside: &Path) -> PathBuf {
        self.base.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    fn host_path(&self, path: &str) -> Option<PathBuf> {
        self.real_path(path).map(|inside| self.on_host(&inside))
    }

    pub(crate) fn stat(&self, path: &str) -> Option<Stat> {
        let metadata = fs::metadata(self.host_path(path)?).ok()?;
        Some(Stat {
            size: metadata.len(),
            mode: metadata.mode(),
            uid: metadata.uid(),
            gid: metadata.gid(),
            is_char_device: metadata.file_type().is_char_device(),
        })
    }

    /// The target of a symlink, as written.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        let parent = self.real_path(path.parent()?.to_str()?)?;
        let target = fs::read_link(self.on_host(&parent).join(path.file_name()?)).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The contents of a regular file of limited size.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        let path = self.host_path(path)?;
        // Opening a FIFO would block.
        if !path.metadata().ok()?.is_file() {
            return None;
        }
        let file = fs::File::open(path).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_TEXT + 1).read_to_end(&mut bytes).ok()? as u64;
        (read <= MAX_TEXT).then_some(bytes)
    }

    /// The trimmed first line of a file.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        Some(text.lines().next().unwrap_or_default().trim().to_owned())
    }
}

impl Files for Root {
    fn text(&self, path: &str) -> Option<String> {
        self.bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn names(&self, path: &str) -> Vec<String> {
        let Some(directory) = self.host_path(path).and_then(|path| fs::read_dir(path).ok()) else {
            return Vec::new();
        };
        let mut names: Vec<String> = directory
            .take(MAX_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn real(&self, path: &str) -> Option<String> {
        self.real_path(path).map(|path| path.to_string_lossy().into_owned())
    }

    fn is_dir(&self, path: &str) -> bool {
        self.host_path(path).is_some_and(|path| path.is_dir())
    }

    fn is_program(&self, path: &str) -> bool {
        self.stat(path).is_some_and(|stat| stat.mode & 0o170_000 == 0o100_000 && stat.mode & 0o111 != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn absolute_links_stay_inside_the_root() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("usr/lib")).unwrap();
        fs::write(directory.path().join("usr/lib/libcuda.so.535.1"), "x").unwrap();
        symlink("/usr/lib/libcuda.so.535.1", directory.path().join("usr/lib/libcuda.so.1")).unwrap();
        symlink("/etc", directory.path().join("outside")).unwrap();
        let root = Root::tree(directory.path()).unwrap();
        assert_eq!(root.real("/usr/lib/libcuda.so.1").as_deref(), Some("/usr/lib/libcuda.so.535.1"));
        assert_eq!(root.text("/usr/lib/libcuda.so.1").as_deref(), Some("x"));
        assert!(!root.exists("/outside/passwd"), "a link must not escape the root");
        assert!(!root.exists("/../../etc/passwd"), "`..` must not escape the root");
    }

    #[test]
    fn a_symlink_loop_does_not_resolve() {
        let directory = tempfile::tempdir().unwrap();
        symlink("b", directory.path().join("a")).unwrap();
        symlink("a", directory.path().join("b")).unwrap();
        let root = Root::tree(directory.path()).unwrap();
        assert_eq!(root.real("/a"), None);
    }

    #[test]
    fn a_missing_root_is_named_in_the_error() {
        let error = Root::tree(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read /nowhere/at/all");
    }
}
