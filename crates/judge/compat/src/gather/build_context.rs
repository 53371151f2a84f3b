//! Reads the build context of a Dockerfile and the files next to a dependency file, within bounds.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cudock_manifests::Files;

/// The limit of a file; requirements files are far smaller.
const LARGEST: u64 = 4 << 20;
/// The limit of files in a build context.
const MOST_FILES: usize = 4096;
/// The limit of a path: the kernel's.
const LONGEST_PATH: usize = 4096;
/// The limit of nested directories.
const DEEPEST: usize = 12;

/// Directories with installed or generated files.
const SKIPPED: [&str; 8] =
    [".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"];

/// The root directory of a build context.
#[derive(Debug)]
pub struct BuildContext {
    root: PathBuf,
    /// The entries at the paths looked up so far: most paths share a few directories, and are
    /// looked up more than once.
    entries: Mutex<HashMap<String, Option<Entry>>>,
}

/// The entry at a path of the context, with links resolved.
#[derive(Debug, Clone)]
enum Entry {
    File(PathBuf),
    Directory(PathBuf),
}

impl Entry {
    fn new(metadata: &fs::Metadata, path: PathBuf) -> Option<Self> {
        if metadata.is_dir() {
            return Some(Self::Directory(path));
        }
        metadata.is_file().then_some(Self::File(path))
    }
}

impl BuildContext {
    /// The directory, with links in its own path resolved.
    pub fn new(root: &Path) -> Self {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Self { root, entries: Mutex::default() }
    }

    /// The build context of a Dockerfile: its own directory, or the parent if only that has the files of its `COPY`
    /// instructions, as with `docker build -f docker/Dockerfile .`.
    pub fn of_dockerfile(path: &Path, text: &str) -> Self {
        let own = Self::new(
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        );
        let all_in = |directory: &Self| {
            let mut sources = copied(text).map(|source| !directory.below(source).is_empty()).peekable();
            sources.peek().is_some() && sources.all(|exists| exists)
        };
        let above = own.root.parent().map(Self::new);
        match above {
            Some(above) if !all_in(&own) && all_in(&above) => above,
            _ => own,
        }
    }

    /// The entry at a path below the root. Symlinks that lead out of it are not followed.
    fn entry(&self, path: &str) -> Option<Entry> {
        if path.len() > LONGEST_PATH {
            return None;
        }
        let entries = || self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let known = entries().get(path).cloned();
        known.unwrap_or_else(|| {
            let entry = self.find(path);
            entries().insert(path.to_owned(), entry.clone());
            entry
        })
    }

    fn find(&self, path: &str) -> Option<Entry> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if ["", ".", ".."].contains(&name) {
            return self.resolve(path);
        }
        let Entry::Directory(directory) = self.entry(parent)? else { return None };
        let real = directory.join(name);
        let metadata = fs::symlink_metadata(&real).ok()?;
        if metadata.is_symlink() { self.resolve(path) } else { Entry::new(&metadata, real) }
    }

    /// [`Self::find`] for any path, by a system call for each of its parts.
    fn resolve(&self, path: &str) -> Option<Entry> {
        let real = self.root.join(path).canonicalize().ok().filter(|real| real.starts_with(&self.root))?;
        Entry::new(&fs::symlink_metadata(&real).ok()?, real)
    }

    fn walk(&self, directory: &Path, depth: usize, found: &mut Vec<String>) {
        let Ok(entries) = fs::read_dir(directory) else { return };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            if found.len() >= MOST_FILES {
                return;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                if depth < DEEPEST && !SKIPPED.contains(&name.as_str()) {
                    self.walk(&entry.path(), depth + 1, found);
                }
            } else if let Ok(path) = entry.path().strip_prefix(&self.root) {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
}

impl Files for BuildContext {
    fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let Entry::File(path) = self.entry(path)? else { return None };
        File::open(path).ok()?.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= LARGEST);
        fits.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn below(&self, path: &str) -> Vec<String> {
        let mut found = Vec::new();
        match self.entry(path) {
            Some(Entry::File(_)) => found.push(path.to_owned()),
            Some(Entry::Directory(_)) => self.walk(&self.root.join(path), 0, &mut found),
            None => {}
        }
        found
    }
}

/// The plain paths that `COPY` and `ADD` copy from the context, by a rough parser.
fn copied(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut tokens = line.split_whitespace();
        let is_copy = |token: &str| token.eq_ignore_ascii_case("copy") || token.eq_ignore_ascii_case("add");
        let mut tokens: Vec<&str> =
            if tokens.next().is_some_and(is_copy) { tokens.collect() } else { Vec::new() };
        // The target.
        tokens.pop();
        if tokens.iter().any(|token| token.starts_with("--from") || token.contains("<<")) {
            tokens.clear();
        }
        let is_plain =
            |token: &&str| !token.contains(['*', '$', '[', '"', ':', '\\']) && !token.starts_with("--");
        let named = tokens.into_iter().filter(is_plain);
        let named = named.map(|token| token.trim_start_matches("./").trim_matches('/'));
        named.filter(|token| !token.is_empty() && *token != ".")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_inside_only() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::create_dir(directory.path().join("secret")).unwrap();
        for file in ["root/src/a.py", "root/src/deep/b.py", "secret/key"] {
            fs::write(directory.path().join(file), file).unwrap();
        }
        symlink("src", root.join("inner")).unwrap();
        symlink("src/a.py", root.join("a.py")).unwrap();
        symlink("../secret", root.join("outer")).unwrap();
        symlink("../secret/key", root.join("key")).unwrap();
        let context = BuildContext::new(&root);
        // Twice: the second time, all of it is known.
        for _ in 0..2 {
            for path in ["src/a.py", "inner/a.py", "a.py", "src/../a.py", "./src/a.py"] {
                assert_eq!(context.text(path).as_deref(), Some("root/src/a.py"), "{path}");
                assert_eq!(context.below(path), [path]);
            }
            for path in ["outer/key", "key", "../secret/key", "outer", "..", "nothing/a.py", "src/a.py/x"] {
                assert_eq!(context.text(path), None, "{path}");
                assert!(context.below(path).is_empty(), "{path}");
            }
            assert_eq!(context.below("src"), ["src/a.py", "src/deep/b.py"]);
            assert_eq!(context.text("src"), None);
            assert_eq!(context.text(&"src/".repeat(1 << 20)), None);
        }
    }
}
