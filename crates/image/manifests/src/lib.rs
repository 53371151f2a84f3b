//! Reads declared files: packages and their builds, base images, variables, and the command that is started.
//!
//! A project is judged before anything is built or installed, so these readers use the text only: they query no index
//! and run no shell. What the text does not determine becomes a [`Note`] with its span, never a guess. Files are
//! untrusted: their size is bounded, and reading takes time and memory in proportion to it.

mod compile;
mod conda;
mod dockerfile;
mod files;
mod lock_files;
mod pip;
mod pyproject;
mod select;
mod sources;
mod system;
mod tag;
mod toml_tree;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use cudock_base::{Arch, Span};
use cudock_facts::version::CudaVersion;
use pep440_rs::Version;

pub use compile::{Compiled, Targets};
pub use dockerfile::read_stages;
pub use files::{Files, NoFiles};
pub use sources::read_sources;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The size limit for files, in bytes.
pub const LARGEST_FILE: usize = 16 << 20;

/// The supported kinds of declared files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// pip's `requirements.txt`, and what `pip freeze` prints.
    Requirements,
    /// `pyproject.toml`, with the tables of Poetry and uv.
    Pyproject,
    UvLock,
    /// conda's `environment.yml`.
    CondaEnvironment,
    Dockerfile,
}

impl FileKind {
    /// Detects the kind of a file by its name and, if that is ambiguous, its text.
    pub fn guess(file_name: &str, text: &str) -> Option<Self> {
        let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name).to_ascii_lowercase();
        let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
        let docker = |word: &str| word == "dockerfile" || word == "containerfile";
        if docker(&name) || docker(extension) || docker(name.split('.').next().unwrap_or_default()) {
            return Some(Self::Dockerfile);
        }
        match (stem, extension) {
            ("pyproject", "toml") => Some(Self::Pyproject),
            ("uv", "lock") => Some(Self::UvLock),
            (_, "yml" | "yaml") => text
                .lines()
                .any(|line| line.starts_with("dependencies:") || line.starts_with("channels:"))
                .then_some(Self::CondaEnvironment),
            (_, "txt" | "in") if stem.contains("requirement") || stem.contains("constraint") => {
                Some(Self::Requirements)
            }
            (_, "txt" | "in" | "") => Self::guess_by_text(text),
            _ => None,
        }
    }

    fn guess_by_text(text: &str) -> Option<Self> {
        let first = text
            .trim_start_matches(BYTE_ORDER_MARK)
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))?;
        let word = first.split_whitespace().next().unwrap_or_default();
        if word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("arg") {
            return Some(Self::Dockerfile);
        }
        let pinned = |line: &str| line.contains("==") && pip::requirement::parse(line).is_ok();
        let option = ["-r ", "-c ", "-e ", "-i ", "-f ", "--index-url", "--extra-index-url", "--find-links"];
        (pinned(first) || option.iter().any(|option| first.starts_with(option))).then_some(Self::Requirements)
    }
}

/// The contents of a declared file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// Python and conda packages, in the order of the file.
    pub packages: Vec<DeclaredPackage>,
    /// The base image of a Dockerfile's last stage.
    pub base_image: Option<DeclaredImage>,
    /// Variables set for the program.
    pub environment: BTreeMap<String, String>,
    /// The required Python version, as written: `>=3.10`.
    pub python: Option<String>,
    /// The platform, if specified: `linux/arm64`.
    pub platform: Option<String>,
    /// CUDA and its libraries, from conda or system packages.
    pub cuda_packages: Vec<CudaPackage>,
    /// The entry point and its arguments.
    pub command: Option<Vec<String>>,
    /// conda channels, by priority.
    pub channels: Vec<String>,
    /// Whether the file is a lock file, in which a package may have several versions.
    pub is_lock: bool,
    /// Programs and extensions that are compiled.
    pub compiled: Vec<Compiled>,
    /// Packages that are upgraded to their newest release.
    pub upgraded: BTreeSet<String>,
    /// The extras and groups of a project.
    groups: select::Groups,
    /// Notes about what the text does not determine.
    pub notes: Vec<Note>,
}

/// A required package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredPackage {
    /// Normalized: lower case, with `-` only.
    pub name: String,
    pub extras: Vec<String>,
    /// The exact version, if there is only one.
    pub exact: Option<Version>,
    /// The version range, if there is more than one version.
    pub range: Option<String>,
    /// The build: `cu121`, `cpu`, `rocm6.0`; `cuda` if the CUDA version is unknown.
    pub tag: Option<String>,
    pub manager: Manager,
    /// The extra or group it belongs to, if it is not always installed.
    pub group: Option<String>,
    /// Whether it can only come from the index of its tag.
    pub exclusive: bool,
    /// The file that names it, if that is not the file that was read.
    pub file: Option<String>,
    pub span: Span,
}

impl DeclaredPackage {
    /// A package that pip installs, in any version.
    pub fn new(name: String, span: Span) -> Self {
        Self {
            name,
            extras: Vec::new(),
            exact: None,
            range: None,
            tag: None,
            manager: Manager::Pip,
            group: None,
            exclusive: false,
            file: None,
            span,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manager {
    /// pip, uv, Poetry: from wheels.
    Pip,
    /// conda, mamba, micromamba.
    Conda,
    /// apt, dnf and other package managers of distributions.
    System,
}

/// A package of CUDA or one of its libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaPackage {
    /// The name as written, in lower case: `cuda-toolkit-12-4`, `pytorch-cuda`.
    pub name: String,
    /// The required version, as written.
    pub version: Option<String>,
    pub cuda: Option<CudaVersion>,
    pub manager: Manager,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredImage {
    /// The reference, with build arguments expanded.
    pub reference: String,
    pub span: Span,
}

/// Something that the text does not determine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file, if that is not the file that was read.
    pub file: Option<String>,
    pub span: Span,
    pub text: String,
    /// Whether the unknown part could use a GPU or add a library.
    pub decides: bool,
}

/// An error at a position of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct DeclaredError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    pub message: String,
}

/// Reads the file `name` and the files it includes, for a Linux machine with a processor of the kind `arch`; `path` is its
/// own path among the files.
///
/// ```
/// use cudock_manifests::{FileKind, NoFiles, read_with_files};
///
/// let text = "--index-url https://download.pytorch.org/whl/cu121\ntorch==2.3.1\n";
/// let (kind, arch) = (FileKind::Requirements, cudock_base::Arch::X86_64);
/// let declared = read_with_files(kind, "requirements.txt", text, arch, "", &NoFiles).unwrap();
/// assert_eq!(declared.packages[0].tag.as_deref(), Some("cu121"));
/// ```
pub fn read_with_files(
    kind: FileKind,
    name: &str,
    text: &str,
    arch: Arch,
    path: &str,
    files: &dyn Files,
) -> Result<Declared, DeclaredError> {
    if text.len() > LARGEST_FILE {
        let message = format!("larger than {} MiB", LARGEST_FILE >> 20);
        return Err(PositionedError::new(1, 1, message).in_file(name));
    }
    let without_mark = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mark = text.len() - without_mark.len();
    let text = without_mark;
    let included = Cell::new(0);
    let declared = match kind {
        FileKind::Requirements => pip::requirements::read(
            text,
            arch,
            pip::requirements::IncludeContext::new(path, files, &included),
        ),
        FileKind::Pyproject => pyproject::read(text, arch),
        FileKind::UvLock => lock_files::uv::read(text, arch, None),
        FileKind::CondaEnvironment => conda::read(text, arch),
        FileKind::Dockerfile => dockerfile::read(text, arch, files),
    };
    let mut declared = declared.map_err(|error| error.in_file(name))?;
    declared.shift_spans(mark);
    Ok(declared)
}

impl Declared {
    /// Adds a note that may affect the verdict.
    fn note(&mut self, span: Span, text: impl Into<String>) {
        self.notes.push(Note { file: None, span, text: text.into(), decides: true });
    }

    /// Adds a note that does not affect the verdict by itself.
    fn remark(&mut self, span: Span, text: impl Into<String>) {
        self.notes.push(Note { file: None, span, text: text.into(), decides: false });
    }

    /// Shifts spans by the length of a byte order mark that was stripped.
    fn shift_spans(&mut self, bytes: usize) {
        let packages = self.packages.iter_mut().filter(|package| package.file.is_none());
        let notes = self.notes.iter_mut().filter(|note| note.file.is_none());
        let compiled = self.compiled.iter_mut().filter(|compiled| compiled.file.is_none());
        let spans = packages.map(|package| &mut package.span);
        let spans = spans.chain(notes.map(|note| &mut note.span));
        let spans = spans.chain(compiled.map(|compiled| &mut compiled.span));
        let spans = spans.chain(self.cuda_packages.iter_mut().map(|package| &mut package.span));
        for span in spans.chain(self.base_image.iter_mut().map(|image| &mut image.span)) {
            (span.start, span.end) = (span.start + bytes, span.end + bytes);
        }
    }

    /// The same with other packages, and without notes.
    #[must_use]
    pub fn with_packages(&self, packages: Vec<DeclaredPackage>) -> Self {
        Self {
            packages,
            base_image: self.base_image.clone(),
            environment: self.environment.clone(),
            python: self.python.clone(),
            platform: self.platform.clone(),
            cuda_packages: self.cuda_packages.clone(),
            command: self.command.clone(),
            channels: self.channels.clone(),
            is_lock: self.is_lock,
            compiled: self.compiled.clone(),
            upgraded: self.upgraded.clone(),
            groups: self.groups.clone(),
            notes: Vec::new(),
        }
    }

    /// Merges the contents of a file that is installed together with this one.
    pub fn merge(&mut self, other: Self, file: &str) {
        let named = |own: Option<String>| own.or_else(|| Some(file.to_owned()));
        let packages = other.packages.into_iter();
        self.packages
            .extend(packages.map(|package| DeclaredPackage { file: named(package.file.clone()), ..package }));
        let notes = other.notes.into_iter();
        self.notes.extend(notes.map(|note| Note { file: named(note.file.clone()), ..note }));
        let compiled = other.compiled.into_iter();
        self.compiled
            .extend(compiled.map(|compiled| Compiled { file: named(compiled.file.clone()), ..compiled }));
        self.cuda_packages.extend(other.cuda_packages);
        self.channels.extend(other.channels);
        self.upgraded.extend(other.upgraded);
        self.python = self.python.take().or(other.python);
    }
}

/// A [`DeclaredError`] without the file name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PositionedError {
    line: usize,
    column: usize,
    message: String,
}

impl PositionedError {
    fn new(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { line, column, message: message.into() }
    }

    /// An error at the start of a line.
    fn at_line(span: Span, message: impl Into<String>) -> Self {
        Self::new(span.line, 1, message)
    }

    fn in_file(self, name: &str) -> DeclaredError {
        let Self { line, column, message } = self;
        DeclaredError { file: name.to_owned(), line, column, message }
    }
}

impl From<cudock_dockerfile::SyntaxError> for PositionedError {
    fn from(error: cudock_dockerfile::SyntaxError) -> Self {
        Self::new(error.line, error.column, error.message)
    }
}

/// Shortens a text so that it fits in a message.
fn excerpt(text: &str) -> String {
    cudock_base::text::truncate(text, 80)
}

/// Whether a name is in a list whose entries are separated by white space.
fn is_listed(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == name)
}
