//! The files beside an environment file, read from the disk within bounds.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_declared::Files;

/// Larger than any file of requirements that people write.
const LARGEST: u64 = 4 << 20;
/// More files than a build context is looked through for.
const MOST_FILES: usize = 4096;
/// Deeper than projects are.
const DEEPEST: usize = 12;

/// Directories that hold installed or generated files, and none that a project says of itself.
const SKIPPED: [&str; 8] =
    [".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"];

/// A directory that is the root of a build context.
#[derive(Debug, Clone)]
pub(super) struct Directory {
    root: PathBuf,
}

impl Directory {
    /// The directory, with links in its own path resolved.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.canonicalize().unwrap_or_else(|_| root.to_owned()) }
    }

    /// The directory that a Dockerfile's `COPY` instructions mean: its own, or the one above where only that has the
    /// files, as with `docker build -f docker/Dockerfile .`.
    pub(super) fn of_dockerfile(path: &Path, text: &str) -> Self {
        let own = Self::new(
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        );
        let sources = copied(text);
        let all_in = |directory: &Self| {
            !sources.is_empty() && sources.iter().all(|source| !directory.below(source).is_empty())
        };
        let above = own.root.parent().map(Self::new);
        match above {
            Some(above) if !all_in(&own) && all_in(&above) => above,
            _ => own,
        }
    }

    /// A file below the root, not one that a link leads out to.
    fn file(&self, path: &str) -> Option<PathBuf> {
        let real = self.root.join(path).canonicalize().ok()?;
        (real.starts_with(&self.root) && real.is_file()).then_some(real)
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

impl Files for Directory {
    fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        File::open(self.file(path)?).ok()?.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
        let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= LARGEST);
        fits.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    fn below(&self, path: &str) -> Vec<String> {
        if self.file(path).is_some() {
            return vec![path.to_owned()];
        }
        let directory = self.root.join(path);
        let is_inside = directory.canonicalize().is_ok_and(|real| real.starts_with(&self.root));
        let mut found = Vec::new();
        if is_inside {
            self.walk(&directory, 0, &mut found);
        }
        found
    }
}

/// The plain paths that `COPY` and `ADD` name in the context, without looking closer.
fn copied(text: &str) -> Vec<String> {
    let mut sources = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut words = line.split_whitespace();
        let is_copy = words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("copy") || word.eq_ignore_ascii_case("add"));
        let words: Vec<&str> = words.collect();
        if !is_copy || words.iter().any(|word| word.starts_with("--from") || word.contains("<<")) {
            continue;
        }
        let plain = words.split_last().map_or(&[][..], |(_, sources)| sources);
        let is_plain =
            |word: &&&str| !word.contains(['*', '$', '[', '"', ':', '\\']) && !word.starts_with("--");
        let named = plain.iter().filter(is_plain).map(|word| word.trim_start_matches("./").trim_matches('/'));
        sources.extend(named.filter(|word| !word.is_empty() && *word != ".").map(str::to_owned));
    }
    sources
}
