//! What a stage has in its file system, as far as it was copied from the build context.

use std::cell::Cell;

use crate::files::{Files, fits, join};
use crate::sources::{is_cuda_source, is_harmless};

/// The surroundings of a stage's commands.
pub(super) struct Scene<'a> {
    pub(super) files: &'a dyn Files,
    /// Without a `/` at the start.
    pub(super) workdir: String,
    /// The image the stage rests on.
    pub(super) image: Option<String>,
    /// Where packages were installed to, besides the system's own directories.
    pub(super) prefixes: Vec<String>,
    /// CUDA sources that were copied.
    pub(super) cuda_sources: Vec<String>,
    /// How many requirements files were included by others.
    pub(super) included: Cell<usize>,
    copies: Vec<Copied>,
    /// How often files were asked for.
    asked: Cell<usize>,
}

/// A file or directory of the context, or a text of the Dockerfile itself, and where it is in the container.
struct Copied {
    source: Source,
    target: String,
}

enum Source {
    File(String),
    Directory(String),
    Text(String),
}

/// What came of copying something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Copy {
    /// Files whose contents could be anything.
    pub(super) opaque: Vec<String>,
    /// Whether there was anything to copy.
    pub(super) is_there: bool,
}

impl<'a> Scene<'a> {
    pub(super) fn new(files: &'a dyn Files) -> Self {
        Self {
            files,
            workdir: String::new(),
            image: None,
            prefixes: Vec::new(),
            cuda_sources: Vec::new(),
            included: Cell::new(0),
            copies: Vec::new(),
            asked: Cell::new(0),
        }
    }

    /// Whether files may be asked for once more: a text names no more of them than people write.
    fn may_ask(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.asked.get() <= MOST_QUESTIONS
    }

    /// How many copies there are, to forget later ones by.
    pub(super) fn mark(&self) -> usize {
        self.copies.len()
    }

    /// Forgets what was mounted for one command.
    pub(super) fn forget(&mut self, mark: usize) {
        self.copies.truncate(mark);
    }

    /// Copies a source of the context, which may be a pattern.
    pub(super) fn copy(&mut self, source: &str, target: &str, into_directory: bool) -> Copy {
        if !self.may_ask() {
            return Copy::default();
        }
        let source = join("", source);
        let target = join(&self.workdir, target);
        let into_directory = into_directory || target == self.workdir;
        let is_pattern = source.contains(['*', '?']);
        let listed = if is_pattern {
            let fixed = source.split(['*', '?']).next().unwrap_or_default();
            let directory = fixed.rsplit_once('/').map_or("", |(directory, _)| directory);
            let below = self.files.below(directory).into_iter();
            let matches = |path: &str| {
                let depth = source.matches('/').count() + 1;
                let head = path.splitn(depth + 1, '/').take(depth).collect::<Vec<_>>().join("/");
                fits(&source, &head)
            };
            below.filter(|path| matches(path)).collect()
        } else {
            self.files.below(&source)
        };
        let is_itself = |path: &str| path == source;
        let name_of = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        if is_pattern {
            for path in listed.iter().take(MOST) {
                let copied =
                    Copied { source: Source::File(path.clone()), target: join(&target, &name_of(path)) };
                self.copies.push(copied);
            }
        } else if listed.iter().any(|path| is_itself(path)) {
            let target = if into_directory { join(&target, &name_of(&source)) } else { target };
            self.copies.push(Copied { source: Source::File(source.clone()), target });
        } else if !listed.is_empty() {
            self.copies.push(Copied { source: Source::Directory(source.clone()), target });
        }
        self.cuda_sources.extend(listed.iter().filter(|path| is_cuda_source(path)).take(MOST).cloned());
        let is_own = |path: &String| {
            let name = name_of(path).to_ascii_lowercase();
            name.contains("dockerfile") || name.contains("containerfile") || name == ".dockerignore"
        };
        Copy {
            // A Dockerfile alone means that the rest of the project is elsewhere.
            is_there: listed.iter().any(|path| !is_own(path)),
            opaque: listed.into_iter().filter(|path| !is_harmless(path) && !is_cuda_source(path)).collect(),
        }
    }

    /// A file that the Dockerfile itself writes.
    pub(super) fn write(&mut self, target: &str, text: String) {
        let target = join(&self.workdir, target);
        self.copies.push(Copied { source: Source::Text(text), target });
    }

    /// The text of a file in the container, and its name in the context.
    pub(super) fn text(&self, directory: &str, path: &str) -> Option<(String, String)> {
        if !self.may_ask() {
            return None;
        }
        let wanted = join(directory, path);
        self.copies.iter().rev().find_map(|copied| match &copied.source {
            Source::Text(text) => (copied.target == wanted).then(|| (wanted.clone(), text.clone())),
            Source::File(source) => {
                (copied.target == wanted).then(|| Some((source.clone(), self.files.text(source)?))).flatten()
            }
            Source::Directory(source) => {
                let rest = wanted.strip_prefix(copied.target.as_str())?;
                let rest = if copied.target.is_empty() { rest } else { rest.strip_prefix('/')? };
                let path = join(source, rest);
                Some((path.clone(), self.files.text(&path)?))
            }
        })
    }

    /// Whether packages that were installed are below a path of the container, or above it.
    pub(super) fn holds_packages(&self, path: &str) -> bool {
        let path = join("", path);
        let usual = ["site-packages", "dist-packages", "venv", ".local", "conda", "wheels"];
        let own = ["usr/local", "usr/lib/python3", "opt/conda", "root/.local"];
        let within = |one: &str, other: &str| {
            one == other
                || one.strip_prefix(other).is_some_and(|rest| other.is_empty() || rest.starts_with('/'))
        };
        let covers = |prefix: &str| within(prefix, &path) || within(&path, prefix);
        usual.iter().any(|word| path.contains(word))
            || own.iter().any(|prefix| within(prefix, &path))
            || path.starts_with("usr/local/lib/python")
            || self.prefixes.iter().any(|prefix| covers(prefix))
    }
}

/// More files than a pattern is taken for.
const MOST: usize = 256;
/// More files than a Dockerfile names.
const MOST_QUESTIONS: usize = 1024;
