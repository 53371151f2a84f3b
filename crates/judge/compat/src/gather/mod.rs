//! Gathers evidence from images, directories, programs, wheels and dependency files.

mod binary;
mod build_context;
mod code_file;
mod contents;
mod declared;
mod directory;
mod file_facts;
mod image;
mod python;
mod subject;
mod survey;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cudock_base::{Arch, ErrorKind, NamedArch, Report};
use cudock_facts::Facts;
use cudock_image::{ImageError, walk_directory};

pub use build_context::BuildContext;
pub use image::image;
pub(crate) use image::image_start;
pub use subject::{Subject, image_subject, is_file_name, subject};

use self::code_file::Completeness;
use crate::evidence::Evidence;
use cudock_manifests::{Declared, DeclaredError, FileKind, Files};

/// An error while gathering evidence.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    #[error("{} not found", path.display())]
    NotFound { path: PathBuf },
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot check {}: unsupported file type", path.display())]
    NotASubject { path: PathBuf },
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{file}:{}:{}: {}", error.line, error.column, error.message)]
    Declared { file: String, error: DeclaredError },
    /// The program or wheel is invalid.
    #[error("{}: {message}", path.display())]
    Broken { path: PathBuf, message: String },
}

impl GatherError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { path: path.to_owned(), source }
    }
}

impl Report for GatherError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Image(error) => error.kind(),
            _ => ErrorKind::Input,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Image(error) => error.hints(),
            Self::NotFound { .. } => vec!["an image is named without a path: team/app:1.0".to_owned()],
            Self::NotASubject { .. } => vec![
                "give an image, a program, a library, a wheel, a directory, a Dockerfile, requirements.txt, \
                 pyproject.toml, uv.lock or environment.yml"
                    .to_owned(),
            ],
            Self::Io { .. } | Self::Declared { .. } | Self::Broken { .. } => Vec::new(),
        }
    }
}

pub struct Context<'a> {
    pub facts: &'a Facts,
    /// Variables that are set when it starts; they override those of the image.
    pub environment: &'a BTreeMap<String, String>,
    /// Whether a program will run on this machine, in the environment of this process.
    pub on_this_machine: bool,
}

impl Context<'_> {
    /// Whether missing files are really missing: on another machine, they may exist.
    fn completeness(&self) -> Completeness {
        if self.on_this_machine { Completeness::Complete } else { Completeness::Partial }
    }
}

/// Gathers evidence of anything but an image, which has to be opened first.
pub fn gather(subject: &Subject, name: &str, context: &Context<'_>) -> Result<Evidence, GatherError> {
    match subject {
        Subject::Image(_) => Err(GatherError::NotASubject { path: PathBuf::from(name) }),
        Subject::Root(root) => {
            let tree = walk_directory(root, false, file_facts::read)?;
            Ok(image::of_tree(&tree, name, None, context.environment.clone(), context.facts))
        }
        Subject::Directory(directory) => directory::evidence(directory, name, context),
        Subject::Program(path) => binary::program::evidence(path, name, context),
        Subject::Wheel(path) => python::wheel::evidence(path, name, context),
        Subject::Environment(path, kind) => environment(path, *kind, name, context),
    }
}

fn environment(
    path: &Path,
    kind: FileKind,
    name: &str,
    context: &Context<'_>,
) -> Result<Evidence, GatherError> {
    let text = std::fs::read(path).map_err(GatherError::io(path))?;
    let text = String::from_utf8_lossy(&text);
    let copied = if kind == FileKind::Dockerfile { &text } else { "" };
    let directory = BuildContext::of_dockerfile(path, copied);
    let (own, arch) = (file_name(path), Arch::default());
    let mut declared = cudock_manifests::read_with_files(kind, name, &text, arch, &own, &directory)
        .map_err(|error| GatherError::Declared { file: name.to_owned(), error })?;
    if kind == FileKind::Pyproject {
        declared.keep_default_groups();
    }
    Ok(of_environment(&declared, name, context))
}

/// Gathers evidence of the text of a Dockerfile in a build context, for a machine with a processor of the kind `arch`.
pub fn gather_dockerfile(
    text: &str,
    arch: Arch,
    files: &dyn Files,
    context: &Context<'_>,
) -> Result<Evidence, GatherError> {
    const NAME: &str = "Dockerfile";
    let mut declared = cudock_manifests::read_with_files(FileKind::Dockerfile, NAME, text, arch, NAME, files)
        .map_err(|error| GatherError::Declared { file: NAME.to_owned(), error })?;
    declared.platform.get_or_insert_with(|| format!("linux/{}", arch.oci_name()));
    Ok(of_environment(&declared, NAME, context))
}

/// Evidence of dependency files, with the variables that are set when it starts.
fn of_environment(declared: &Declared, name: &str, context: &Context<'_>) -> Evidence {
    let mut evidence = of_declared(declared, name, Arch::default(), context.facts);
    evidence.environment.extend(context.environment.clone());
    evidence
}

/// Evidence of a dependency file that was read before. `arch` is the processor that it is for, unless it names one.
pub fn of_declared(declared: &Declared, name: &str, arch: Arch, facts: &Facts) -> Evidence {
    let platform = declared.platform.as_deref().and_then(|platform| platform.split('/').nth(1));
    let arch = platform.and_then(Arch::parse).unwrap_or(arch);
    declared::evidence(facts, name, declared, arch)
}

/// The environment of a program that is started on this machine.
fn started_with(context: &Context<'_>) -> BTreeMap<String, String> {
    let matters = |name: &str| {
        name.starts_with("CUDA_")
            || name.starts_with("NVIDIA_")
            || matches!(name, "LD_LIBRARY_PATH" | "PATH" | "VIRTUAL_ENV" | "CONDA_PREFIX")
    };
    let own = std::env::vars().filter(|(name, _)| context.on_this_machine && matters(name));
    own.chain(context.environment.clone()).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The architecture of an ELF file as images name it.
fn architecture(machine: u16) -> Option<NamedArch> {
    let name = match machine {
        21 => "ppc64le",
        243 => "riscv64",
        22 => "s390x",
        _ => Arch::from_elf_machine(machine)?.oci_name(),
    };
    Some(NamedArch::new(name))
}
