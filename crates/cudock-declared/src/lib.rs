//! What environment files say: packages and their builds, base images, variables, what is started.
//!
//! A project is judged before anything is built or installed, so these readers go by the text alone. They follow no
//! file that another names, ask no index and run no shell. Whatever can therefore not be told is a [`Note`] with its
//! span, never a guess. Files come from anybody: they are bounded in size, and reading takes time and memory in
//! proportion to it.

mod compile;
mod conda;
pub mod dockerfile;
mod files;
mod marker;
mod pip;
mod poetry_lock;
mod pyproject;
mod requirement;
mod requirements;
mod select;
mod sources;
mod system;
mod tag;
mod toml_tree;
mod uv_lock;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use cudock_base::{Arch, Span};
use cudock_facts::version::CudaVersion;
use pep440_rs::Version;

pub use compile::{Compiled, Targets};
pub use files::{Files, NoFiles};
pub use sources::{is_build_file, read_sources};

/// What some editors start a file of UTF-8 with.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The largest file that is read.
pub const LARGEST_FILE: usize = 16 << 20;

/// The kinds of file that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// pip's `requirements.txt`, and what `pip freeze` prints.
    Requirements,
    /// `pyproject.toml`: the standard tables, Poetry's and uv's.
    Pyproject,
    /// `uv.lock`.
    UvLock,
    /// conda's `environment.yml`.
    CondaEnvironment,
    /// A Dockerfile or Containerfile.
    Dockerfile,
}

impl FileKind {
    /// The kind of file, by its name and, where that does not tell, its text.
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
        let pinned = |line: &str| line.contains("==") && requirement::parse(line).is_ok();
        let option = ["-r ", "-c ", "-e ", "-i ", "-f ", "--index-url", "--extra-index-url", "--find-links"];
        (pinned(first) || option.iter().any(|option| first.starts_with(option))).then_some(Self::Requirements)
    }
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// Python and conda packages, in the order of the file.
    pub packages: Vec<DeclaredPackage>,
    /// The image a Dockerfile's last stage rests on.
    pub base_image: Option<DeclaredImage>,
    /// Variables set for the program.
    pub environment: BTreeMap<String, String>,
    /// Which Python is asked for, as written: `>=3.10`.
    pub python: Option<String>,
    /// `linux/arm64`, if the file says so.
    pub platform: Option<String>,
    /// CUDA itself and its libraries, from conda or the system's packages.
    pub cuda_packages: Vec<CudaPackage>,
    /// What is started: entry point and arguments.
    pub command: Option<Vec<String>>,
    /// conda's channels, first the one that wins.
    pub channels: Vec<String>,
    /// Whether the file is a lock: one resolution, in which a package may have several versions.
    pub is_lock: bool,
    /// Programs and extensions that are compiled.
    pub compiled: Vec<Compiled>,
    /// Packages that are brought to their newest release, whatever was installed before.
    pub upgraded: BTreeSet<String>,
    /// The extras and groups of a project, as far as installers choose among them.
    groups: select::Groups,
    /// What could not be told from the text.
    pub notes: Vec<Note>,
}

/// A package that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredPackage {
    /// Normalised: lower case, with `-` only.
    pub name: String,
    /// Its extras, normalised.
    pub extras: Vec<String>,
    /// The one version that satisfies what is asked.
    pub exact: Option<Version>,
    /// What is asked, where that is more than one version.
    pub range: Option<String>,
    /// The build: `cu121`, `cpu`, `rocm6.0`; `cuda` if it is one for some CUDA.
    pub tag: Option<String>,
    /// Who installs it.
    pub manager: Manager,
    /// The extra or group it belongs to, if it is not always installed.
    pub group: Option<String>,
    /// Whether the index of its tag is the only one that is asked.
    pub exclusive: bool,
    /// The file it is named in, where that is not the file that was read.
    pub file: Option<String>,
    /// Where.
    pub span: Span,
}

/// Who installs a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manager {
    /// pip, uv, Poetry: from wheels.
    Pip,
    /// conda, mamba, micromamba.
    Conda,
    /// apt, dnf and their like.
    System,
}

/// A package of CUDA or one of its libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaPackage {
    /// As written, in lower case: `cuda-toolkit-12-4`, `pytorch-cuda`.
    pub name: String,
    /// The version asked for, as written.
    pub version: Option<String>,
    /// The CUDA version that name or version tell.
    pub cuda: Option<CudaVersion>,
    /// Who installs it.
    pub manager: Manager,
    /// Where.
    pub span: Span,
}

/// A base image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredImage {
    /// With build arguments filled in.
    pub reference: String,
    /// Where.
    pub span: Span,
}

/// What could not be told from the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The file, where that is not the file that was read.
    pub file: Option<String>,
    /// Where.
    pub span: Span,
    /// What it is.
    pub text: String,
    /// Whether what is not known could use a GPU or bring a library.
    pub decides: bool,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct DeclaredError {
    /// The file, as the caller named it.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

/// What the file `name` says, for a machine with an x86-64 processor.
///
/// ```
/// use cudock_declared::{FileKind, read};
///
/// let text = "--index-url https://download.pytorch.org/whl/cu121\ntorch==2.3.1\n";
/// let declared = read(FileKind::Requirements, "requirements.txt", text).unwrap();
/// assert_eq!(declared.packages[0].tag.as_deref(), Some("cu121"));
/// ```
pub fn read(kind: FileKind, name: &str, text: &str) -> Result<Declared, DeclaredError> {
    read_for(kind, name, text, Arch::default())
}

/// What the file `name` says, for a Linux machine with a processor of the kind `arch`.
pub fn read_for(kind: FileKind, name: &str, text: &str, arch: Arch) -> Result<Declared, DeclaredError> {
    read_beside(kind, name, text, arch, "", &NoFiles)
}

/// What the file `name` says, with the files it names: `path` is its own path among them.
pub fn read_beside(
    kind: FileKind,
    name: &str,
    text: &str,
    arch: Arch,
    path: &str,
    files: &dyn Files,
) -> Result<Declared, DeclaredError> {
    if text.len() > LARGEST_FILE {
        let message = format!("larger than {} MiB", LARGEST_FILE >> 20);
        return Err(Fault { line: 1, column: 1, message }.in_file(name));
    }
    let without_mark = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mark = text.len() - without_mark.len();
    let text = without_mark;
    let included = Cell::new(0);
    let declared = match kind {
        FileKind::Requirements => {
            requirements::read_in(text, arch, requirements::Beside::new(path, files, &included))
        }
        FileKind::Pyproject => pyproject::read(text, arch),
        FileKind::UvLock => uv_lock::read(text, arch, None),
        FileKind::CondaEnvironment => conda::read(text, arch),
        FileKind::Dockerfile => dockerfile::read(text, arch, files),
    };
    let mut declared = declared.map_err(|fault| fault.in_file(name))?;
    declared.move_spans(mark);
    Ok(declared)
}

impl Declared {
    /// Notes something that could decide what is judged.
    fn note(&mut self, span: Span, text: impl Into<String>) {
        self.notes.push(Note { file: None, span, text: text.into(), decides: true });
    }

    /// Notes something that is worth knowing and decides nothing by itself.
    fn remark(&mut self, span: Span, text: impl Into<String>) {
        self.notes.push(Note { file: None, span, text: text.into(), decides: false });
    }

    /// Counts bytes from the start of the file, where a byte order mark was cut off.
    fn move_spans(&mut self, bytes: usize) {
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

    /// Takes over what another file says.
    fn absorb(&mut self, other: Self, file: &str) {
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

    /// Takes over the packages of a file that is installed together with this one.
    pub fn merge(&mut self, other: Self, file: &str) {
        self.absorb(other, file);
    }
}

/// A [`DeclaredError`] before the file's name is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fault {
    line: usize,
    column: usize,
    message: String,
}

impl Fault {
    fn new(line: usize, column: usize, message: impl Into<String>) -> Self {
        Self { line, column, message: message.into() }
    }

    fn in_file(self, name: &str) -> DeclaredError {
        let Self { line, column, message } = self;
        DeclaredError { file: name.to_owned(), line, column, message }
    }
}

/// As much of a text as fits in a message.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
