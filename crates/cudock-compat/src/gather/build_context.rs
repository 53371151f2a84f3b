//! Reads the build context of a Dockerfile and the files next to a dependency file, within bounds.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use cudock_declared::Files;

/// The limit of a file; requirements files are far smaller.
const LARGEST: u64 = 4 << 20;
/// The limit of files in a build context.
const MOST_FILES: usize = 4096;
/// The limit of nested directories.
const DEEPEST: usize = 12;

/// Directories with installed or generated files.
const SKIPPED: [&str; 8] =
    [".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache"];

/// The root directory of a build context.
#[derive(Debug, Clone)]
pub struct BuildContext {
    root: PathBuf,
}

impl BuildContext {
    /// The directory, with links in its own path resolved.
    pub fn new(root: &Path) -> Self {
        Self { root: root.canonicalize().unwrap_or_else(|_| root.to_owned()) }
    }

    /// The build context of a Dockerfile: its own directory, or the parent if only that has the files of its `COPY`
    /// instructions, as with `docker build -f docker/Dockerfile .`.
    pub fn of_dockerfile(path: &Path, text: &str) -> Self {
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

    /// A file below the root. Symlinks that lead out of it are not followed.
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

impl Files for BuildContext {
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

/// The plain paths that `COPY` and `ADD` copy from the context, by a rough parser.
fn copied(text: &str) -> Vec<String> {
    let mut sources = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut tokens = line.split_whitespace();
        let is_copy = |token: &str| token.eq_ignore_ascii_case("copy") || token.eq_ignore_ascii_case("add");
        if !tokens.next().is_some_and(is_copy) {
            continue;
        }
        let tokens: Vec<&str> = tokens.collect();
        if tokens.iter().any(|token| token.starts_with("--from") || token.contains("<<")) {
            continue;
        }
        let plain = tokens.split_last().map_or(&[][..], |(_, sources)| sources);
        let is_plain =
            |token: &&&str| !token.contains(['*', '$', '[', '"', ':', '\\']) && !token.starts_with("--");
        let named =
            plain.iter().filter(is_plain).map(|token| token.trim_start_matches("./").trim_matches('/'));
        sources.extend(named.filter(|token| !token.is_empty() && *token != ".").map(str::to_owned));
    }
    sources
}
